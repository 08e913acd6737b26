//! Lets a superuser read without any other right.
//!
//! The statement runs in a function that is owned by `pg_read_all_data` and has its owner's rights.
//! Inside, the server prevents switching to another role, both by `set_config` and by a function
//! that executes a text; giving up a role before the statement would not prevent that. The function
//! is created in the transaction of the statement, and disappears with it without being visible to
//! others; nothing waits for it.
//!
//! The statement can still do what every user of the server may do, which includes calling
//! functions that were given the rights of a superuser. Rows that a policy would hide are an error,
//! not missing. If such a function cannot be created, nothing is run: on a standby, which allows
//! none, before PostgreSQL 14, which has no such role, and for users who are not superusers but can
//! access files or other sessions, since they cannot reduce rights.

use sqlx::{
    AssertSqlSafe, Column as _, Executor as _, PgConnection, Statement as _, TypeInfo as _,
};

use super::{Plan, type_names, types};

/// Calls the function with a query and its parameters.
pub(crate) const CALL: &str = "SELECT * FROM pg_temp.prowess_reader($1, $2)";

/// Keeps schemas that are found by the name of the user, and makes row-level policies an error
/// instead of hiding rows.
const SETTINGS: &str = "\
    SELECT set_config('row_security', 'off', true), set_config('search_path', coalesce(( \
        SELECT string_agg(quote_ident(it), ', ') FROM unnest(current_schemas(false)) it), ''), true)";

/// Creates the function, and makes the transaction read-only from then on.
pub(crate) async fn create(connection: &mut PgConnection, plan: &Plan) -> Result<(), sqlx::Error> {
    connection.execute(SETTINGS).await?;
    let columns = plan.prepared.columns().iter().zip(1..).map(|(column, nth)| {
        let kind = match (plan.formatted, column.type_info().name()) {
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
    let create = format!(
        "CREATE FUNCTION pg_temp.prowess_reader(text, text[]) RETURNS TABLE ({columns}) \
         LANGUAGE plpgsql SECURITY DEFINER AS E'{body}'; \
         ALTER FUNCTION pg_temp.prowess_reader(text, text[]) OWNER TO pg_read_all_data; \
         SET TRANSACTION READ ONLY"
    );
    connection.execute(sqlx::raw_sql(AssertSqlSafe(create))).await?;
    Ok(())
}
