//! A superuser reads as somebody who can do nothing else.
//!
//! The statement runs in a function that belongs to `pg_read_all_data` and has its owner's rights.
//! Inside, the server lets nobody take up another role, neither by `set_config` nor by a function
//! that runs what it is given; giving up a role before the statement would not hold that. The
//! function is made in the transaction that the statement runs in, and goes with it unseen; nobody
//! waits for it.
//!
//! The statement can still do what every user of the server may do, which includes calling functions that
//! somebody has given the rights of a superuser. Rows that a policy would hide are an error, not
//! missing. Where such a function cannot be made, nothing is asked: on a standby, which takes none,
//! before PostgreSQL 14, which has no such role, and for users who are no superusers but reach files
//! or other sessions, since they can give nobody fewer rights.

use sqlx::{
    AssertSqlSafe, Column as _, Executor as _, PgConnection, Statement as _, TypeInfo as _,
};

use super::{Plan, type_names, types};

/// Asks the function for what is in the query and the parameters that it is given.
pub(crate) const ASK: &str = "SELECT * FROM pg_temp.prowess_reader($1, $2)";

/// Keeps schemas that are found by the name of the user, and has policies for rows hide none.
const SETTINGS: &str = "\
    SELECT set_config('row_security', 'off', true), set_config('search_path', coalesce(( \
        SELECT string_agg(quote_ident(it), ', ') FROM unnest(current_schemas(false)) it), ''), true)";

/// Makes the function, in a transaction that can only read from then on.
pub(crate) async fn make(connection: &mut PgConnection, plan: &Plan) -> Result<(), sqlx::Error> {
    connection.execute(SETTINGS).await?;
    let columns = plan.prepared.columns().iter().zip(1..).map(|(column, nth)| {
        let kind = match (plan.written, column.type_info().name()) {
            (true, "BYTEA") => "bytea",
            (true, _) => "text",
            (false, name) => name,
        };
        format!("c{nth} {kind}")
    });
    let columns = columns.collect::<Vec<_>>().join(", ");
    let names = type_names(connection, types(&plan.prepared)).await?;
    let values = names.iter().zip(1..).map(|(name, nth)| format!("CAST($2[{nth}] AS {name})"));
    let using = match values.collect::<Vec<_>>().join(", ") {
        values if values.is_empty() => values,
        values => format!(" USING {values}"),
    };
    let body = format!("BEGIN RETURN QUERY EXECUTE $1{using}; END");
    let body = body.replace('\\', r"\\").replace('\'', "''");
    let make = format!(
        "CREATE FUNCTION pg_temp.prowess_reader(text, text[]) RETURNS TABLE ({columns}) \
         LANGUAGE plpgsql SECURITY DEFINER AS E'{body}'; \
         ALTER FUNCTION pg_temp.prowess_reader(text, text[]) OWNER TO pg_read_all_data; \
         SET TRANSACTION READ ONLY"
    );
    connection.execute(sqlx::raw_sql(AssertSqlSafe(make))).await?;
    Ok(())
}
