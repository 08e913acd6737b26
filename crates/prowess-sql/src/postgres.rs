//! PostgreSQL: a read-only transaction, in which the server formats every value as text.

mod reader;

use std::time::{Duration, Instant};

use futures_util::{TryStreamExt as _, future::BoxFuture};
use serde_json::Value;
use sqlx::{
    AssertSqlSafe, Column as _, Connection as _, Either, Encode, Executor as _, PgConnection,
    Postgres, Row as _, SqlSafeStr as _, Statement as _, Type, TypeInfo as _, ValueRef as _,
    encode::IsNull,
    error::BoxDynError,
    postgres::{
        PgArgumentBuffer, PgArguments, PgColumn, PgDatabaseError, PgRow, PgStatement, PgTypeInfo,
        PgTypeKind, types::Oid,
    },
    query::Query,
};

use crate::{
    connections::{Connections, SharedRun, take_connection},
    database::{
        Access, Column, Database, LARGEST, NO_QUERY, NO_ROWS, Privileges, RunError, SqlError,
        SqlLimits, Statement, Table, is_same,
    },
    table::TableBuilder,
    task::{Deadline, spawn},
};

/// Returns the user, whether that is a superuser, and its rights that no transaction restricts:
/// files and programs of the server, other sessions, replication.
const USER_RIGHTS: &str = "\
    SELECT me.rolname::text, me.rolsuper, CASE WHEN me.rolsuper THEN 'it is a superuser' \
        WHEN me.rolreplication THEN 'it may replicate' \
        ELSE (SELECT 'it is a member of ' || string_agg(it.rolname, ', ') FROM pg_roles it \
            WHERE it.rolname IN ('pg_read_server_files', 'pg_write_server_files', \
                'pg_execute_server_program', 'pg_signal_backend') \
            AND pg_has_role(me.oid, it.oid, 'MEMBER')) END \
    FROM pg_roles me WHERE me.rolname = session_user";

/// Functions that every user may call and no transaction restricts, because they affect other
/// sessions or write outside of it; and those that execute a text, in which such a name can be
/// composed.
const OUTSIDE_FUNCTIONS: &[&str] = &[
    "pg_cancel_backend",
    "pg_terminate_backend",
    "pg_logical_emit_message",
    "dblink",
    "dblink_connect",
    "dblink_connect_u",
    "dblink_exec",
    "dblink_open",
    "dblink_send_query",
    "query_to_xml",
    "query_to_xml_and_xmlschema",
    "query_to_xmlschema",
    "ts_rewrite",
    "ts_stat",
    "crosstab",
    "crosstab2",
    "crosstab3",
    "crosstab4",
    "crosstab_hash",
    "connectby",
    "xpath_table",
    "table_to_xml",
    "table_to_xml_and_xmlschema",
    "schema_to_xml",
    "schema_to_xml_and_xmlschema",
    "database_to_xml",
    "database_to_xml_and_xmlschema",
];

/// System tables that contain passwords or their hashes.
const PASSWORD_TABLES: &[&str] =
    &["pg_authid", "pg_shadow", "pg_subscription", "pg_user_mapping", "pg_user_mappings"];

/// Functions whose effect outlives the statement in the session.
const SESSION_FUNCTIONS: &[&str] = &[
    "set_config",
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    "pg_advisory_unlock",
    "pg_advisory_unlock_all",
    "pg_advisory_unlock_shared",
    "pg_try_advisory_lock",
    "pg_try_advisory_lock_shared",
];

/// Sets the timeout and the format of values. Because it is a query, the transaction cannot be made
/// writable after it.
const SETTINGS: &str = "\
    SELECT set_config('statement_timeout', $1, true), set_config('datestyle', 'ISO', true), \
        set_config('intervalstyle', 'iso_8601', true)";

/// A PostgreSQL database.
///
/// A statement that only reads may not name functions that reach beyond its transaction, not even
/// in a string. Functions and views that users have written into the database do what they were
/// written for.
#[derive(Debug, Clone)]
pub struct PostgresDatabase {
    /// The source of connections.
    pub connections: Connections<Postgres>,
    /// The users whose statements are run. With [`Privileges::Limited`], a superuser is accepted
    /// too if it only reads, and then has no more rights than `pg_read_all_data`.
    pub privileges: Privileges,
}

impl Database for PostgresDatabase {
    fn dialect(&self) -> &'static str {
        "PostgreSQL, with parameters as `$1`"
    }

    fn run(&self, statement: Statement) -> BoxFuture<'_, Result<Table, SqlError>> {
        let Self { connections, privileges } = self.clone();
        Box::pin(spawn(statement, async move |statement, deadline| {
            let limits = statement.limits;
            run(connections, privileges, statement, deadline)
                .await
                .map_err(|error| error.explain(|it| to_sql_error(&it, &limits)))
        }))
    }
}

async fn run(
    connections: Connections<Postgres>,
    privileges: Privileges,
    mut statement: Statement,
    mut deadline: Deadline,
) -> Result<Table, RunError> {
    let pool = match connections {
        Connections::Pool(pool) => pool,
        Connections::Single(single) => {
            let (mut slot, mut connection) =
                take_connection(single, &mut statement, &mut deadline).await?;
            let run =
                deadline.limit(run_and_restore(&mut connection, &statement, privileges)).await?;
            *slot = run.is_restored.then_some(connection);
            return run.table;
        }
    };
    let mut connection = pool.acquire().await?;
    connection.close_on_drop();
    let process: i32 =
        sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut *connection).await?;
    let timed_out = tokio::select! {
        table = execute(&mut connection, &statement, privileges, Instant::now()) => return table,
        error = deadline.wait() => error,
    };
    drop(connection);
    // If this fails, the server stops it by itself, only later.
    if let Ok(mut other) = PgConnection::connect_with(&pool.connect_options()).await {
        let cancel = sqlx::query("SELECT pg_cancel_backend($1)").bind(process);
        let _ = cancel.execute(&mut other).await;
    }
    Err(timed_out.into())
}

/// Runs a statement on a connection that has to be restored afterwards.
async fn run_and_restore(
    connection: &mut PgConnection,
    statement: &Statement,
    privileges: Privileges,
) -> SharedRun {
    let start = Instant::now();
    let previous_timeout = match set_timeout(connection, &statement.limits).await {
        Ok(previous) => previous,
        Err(error) => return SharedRun { table: Err(error), is_restored: true },
    };
    let table = match check_session_state(connection, statement).await {
        Ok(()) => execute(connection, statement, privileges, start).await,
        Err(error) => Err(error),
    };
    SharedRun { table, is_restored: restore(connection, &previous_timeout).await.is_ok() }
}

/// Sets a timeout on the server, and returns the previous one.
async fn set_timeout(
    connection: &mut PgConnection,
    limits: &SqlLimits,
) -> Result<String, RunError> {
    // As one message: only then both are the time of that message, unless a transaction is older.
    let is_open = sqlx::raw_sql("SELECT statement_timestamp() <> now()");
    match connection.fetch_one(is_open).await.and_then(|it| it.try_get(0)) {
        Ok(false) => {}
        Ok(true) => return Err(SqlError::InTransaction.into()),
        Err(sqlx::Error::Database(it)) if it.code().as_deref() == Some("25P02") => {
            return Err(SqlError::InTransaction.into());
        }
        Err(error) => return Err(error.into()),
    }
    let previous =
        "SELECT current_setting('statement_timeout'), set_config('statement_timeout', $1, false)";
    let previous = sqlx::query_scalar(previous).bind(milliseconds(limits.timeout));
    Ok(previous.fetch_one(connection).await?)
}

/// Fails unless the server treats a statement as one about rows, and it names nothing that outlives
/// it.
async fn check_session_state(
    connection: &mut PgConnection,
    statement: &Statement,
) -> Result<(), RunError> {
    let functions = [SESSION_FUNCTIONS, OUTSIDE_FUNCTIONS].concat();
    if let Some(name) = find_name(&statement.sql, &functions) {
        return Err(SqlError::SessionState(format!("`{name}` is not allowed")).into());
    }
    if statement.access == Access::Read {
        return Ok(());
    }
    prepare(connection, &statement.sql).await?;
    let explained = format!("EXPLAIN (COSTS FALSE) {}", statement.sql);
    match prepare(connection, &explained).await {
        Ok(_) => Ok(()),
        Err(_) => Err(SqlError::SessionState(NO_ROWS.to_owned()).into()),
    }
}

/// Restores a connection after a statement.
async fn restore(connection: &mut PgConnection, timeout: &str) -> Result<(), sqlx::Error> {
    connection.execute("ROLLBACK").await?;
    let restore = sqlx::query("SELECT set_config('statement_timeout', $1, false)").bind(timeout);
    connection.execute(restore).await?;
    // Prepared statements become invalid once the host has changed a table.
    connection.clear_cached_statements().await
}

async fn execute(
    connection: &mut PgConnection,
    statement: &Statement,
    privileges: Privileges,
    start: Instant,
) -> Result<Table, RunError> {
    if statement.access == Access::Read
        && let Some(name) = find_name(&statement.sql, OUTSIDE_FUNCTIONS)
    {
        return Err(SqlError::ReadOnly(format!("`{name}` is not allowed")).into());
    }
    if let Some(name) =
        find_name(&statement.sql, PASSWORD_TABLES).filter(|_| privileges == Privileges::Limited)
    {
        return Err(SqlError::Refused(format!("`{name}` contains passwords")).into());
    }
    let (user, superuser, rights): (String, bool, Option<String>) =
        sqlx::query_as(USER_RIGHTS).fetch_one(&mut *connection).await?;
    let privileged = rights
        .filter(|_| privileges == Privileges::Limited)
        .map(|may| SqlError::Privileged { user, may });
    let privileged = match privileged {
        Some(error) if !superuser || statement.access == Access::Write => return Err(error.into()),
        privileged => privileged,
    };
    let plan = Plan::new(connection, statement).await?;
    let begin = match statement.access {
        Access::Read if privileged.is_none() => "BEGIN READ ONLY",
        Access::Read => "BEGIN READ WRITE",
        Access::Write => "BEGIN",
    };
    connection.execute(begin).await?;
    // It may already have waited for a table.
    let left = statement.limits.timeout.saturating_sub(start.elapsed());
    let settings = sqlx::query(SETTINGS).bind(milliseconds(left));
    settings.execute(&mut *connection).await?;
    let query = match privileged {
        Some(privileged) => {
            reader::create(connection, &plan).await.map_err(|error| match error {
                sqlx::Error::Database(_) => RunError::Sql(privileged),
                _ => RunError::Driver(error),
            })?;
            let texts = texts(&statement.parameters, &plan);
            // The next function is a different one.
            sqlx::query(reader::CALL).persistent(false).bind(&plan.sql).bind(texts)
        }
        None => {
            let parameters = encode(connection, &statement.parameters, &plan).await?;
            let query = sqlx::query(AssertSqlSafe(plan.sql.as_str()));
            parameters.into_iter().fold(query, Query::bind)
        }
    };
    let table = fetch_rows(connection, query, &plan, statement.limits).await?;
    if statement.access == Access::Write {
        connection.execute("COMMIT").await?;
    }
    Ok(table)
}

/// Returns the first of some names that occurs in a statement, even in a string. A call has to
/// spell the name of its function; one with escaped characters may be any.
fn find_name<'n>(sql: &str, names: &[&'n str]) -> Option<&'n str> {
    if sql.to_ascii_lowercase().contains("u&\"") {
        return Some("U&");
    }
    sql.split(|it: char| !it.is_alphanumeric() && it != '_').find_map(|word| {
        names.iter().copied().find(|name| {
            word.chars().count() == name.len() && word.chars().zip(name.chars()).all(is_same)
        })
    })
}

/// Formats a timeout for the server, where 0 means none.
fn milliseconds(time: Duration) -> String {
    time.as_millis().max(1).to_string()
}

/// The plan for running a statement.
struct Plan {
    /// The statement as given: its columns and parameters.
    prepared: PgStatement,
    /// The text that is run: usually a query around it that makes the server format its values.
    sql: String,
    /// Whether the values arrive as formatted by the server.
    formatted: bool,
}

impl Plan {
    /// Wraps a statement in a query, if the server accepts that: so rows and values are cut to the
    /// limits before they are sent.
    async fn new(connection: &mut PgConnection, statement: &Statement) -> Result<Self, RunError> {
        let Statement { sql, parameters, access, limits } = statement;
        let sql = sql.trim_end_matches(|it: char| it == ';' || it.is_whitespace());
        let prepared = prepare(connection, sql).await?;
        let (wanted, given) = (types(&prepared).len(), parameters.len());
        if wanted != given {
            return Err(SqlError::Parameters { wanted, given }.into());
        }
        let columns = prepared.columns();
        if columns.is_empty() {
            return match access {
                Access::Read => Err(SqlError::ReadOnly(NO_QUERY.to_owned()).into()),
                Access::Write => Ok(Self { prepared, sql: sql.to_owned(), formatted: false }),
            };
        }
        let names: Vec<String> = (1..=columns.len()).map(|it| format!("c{it}")).collect();
        let values: Vec<String> =
            names.iter().zip(columns).map(|(name, it)| expression(name, it, limits.cell)).collect();
        let (names, values, most) = (names.join(", "), values.join(", "), limits.rows_asked());
        let query = format!("SELECT {values} FROM (\n{sql}\n) AS q({names}) LIMIT {most}");
        let change = format!("WITH q({names}) AS (\n{sql}\n) SELECT {values} FROM q LIMIT {most}");
        for sql in [query, change].into_iter().take(if *access == Access::Write { 2 } else { 1 }) {
            if prepare(connection, &sql).await.is_ok() {
                return Ok(Self { prepared, sql, formatted: true });
            }
        }
        // A statement that was prepared on the connection may call anything.
        if *access == Access::Read && find_name(sql, &["execute"]).is_some() {
            return Err(SqlError::ReadOnly(NO_QUERY.to_owned()).into());
        }
        // Statements that cannot be wrapped, such as `EXPLAIN` and `SHOW`, return texts.
        match columns.iter().find(|it| !is_simple(it.type_info())) {
            None => Ok(Self { prepared, sql: sql.to_owned(), formatted: false }),
            Some(column) => {
                let (name, kind) = (column.name(), column.type_info().name());
                let message = format!("column `{name}` of type `{kind}` must be cast to text");
                Err(SqlError::Failed(message).into())
            }
        }
    }
}

async fn prepare(connection: &mut PgConnection, sql: &str) -> Result<PgStatement, sqlx::Error> {
    connection.prepare(AssertSqlSafe(sql).into_sql_str()).await
}

fn types(prepared: &PgStatement) -> &[PgTypeInfo] {
    match prepared.parameters() {
        Some(Either::Left(types)) => types,
        _ => &[],
    }
}

/// Returns an expression for a value that the server formats as text or, if it is bytes, returns
/// unchanged.
fn expression(name: &str, column: &PgColumn, cell: usize) -> String {
    let most = cell.saturating_add(1).min(LARGEST);
    match (column.type_info().name(), column.type_info().kind()) {
        ("BYTEA", _) => format!("substring({name} FOR {most})"),
        (_, PgTypeKind::Array(it)) if is_plain(it) => {
            format!("left(to_jsonb({name})::text, {most})")
        }
        (_, PgTypeKind::Array(_)) => format!("left(to_jsonb({name}::text[])::text, {most})"),
        _ => format!("left({name}::text, {most})"),
    }
}

/// Whether JSON can represent a value of a type unchanged.
fn is_plain(kind: &PgTypeInfo) -> bool {
    matches!(
        kind.name(),
        "BOOL" | "INT2" | "INT4" | "INT8" | "OID" | "FLOAT4" | "FLOAT8" | "JSON" | "JSONB"
    )
}

/// Whether a value of a type can be read as the server sends it.
fn is_simple(kind: &PgTypeInfo) -> bool {
    let is_text = matches!(kind.name(), "TEXT" | "VARCHAR" | "CHAR" | "NAME" | "XML" | "UNKNOWN");
    is_text || is_plain(kind) && kind.name() != "JSONB"
}

/// A parameter in the form that the server expects for its type.
struct EncodedParameter {
    kind: PgTypeInfo,
    bytes: Option<Vec<u8>>,
}

/// Makes the server parse each parameter from a text, as the type of its placeholder.
async fn encode(
    connection: &mut PgConnection,
    parameters: &[Value],
    plan: &Plan,
) -> Result<Vec<EncodedParameter>, sqlx::Error> {
    let types = types(&plan.prepared);
    if types.is_empty() {
        return Ok(Vec::new());
    }
    let names = type_names(connection, types).await?;
    let casts: Vec<String> =
        names.iter().zip(1..).map(|(name, nth)| format!("CAST(${nth}::text AS {name})")).collect();
    let query = sqlx::query(AssertSqlSafe(format!("SELECT {}", casts.join(", "))));
    let query = texts(parameters, plan).into_iter().fold(query, Query::bind);
    let row = connection.fetch_one(query).await?;
    types
        .iter()
        .enumerate()
        .map(|(at, kind): (usize, &PgTypeInfo)| {
            let value = row.try_get_raw(at)?;
            let bytes = value.as_bytes().ok().map(<[u8]>::to_vec);
            Ok(EncodedParameter { kind: kind.clone(), bytes })
        })
        .collect()
}

/// Returns the names of types in a statement.
async fn type_names(
    connection: &mut PgConnection,
    types: &[PgTypeInfo],
) -> Result<Vec<String>, sqlx::Error> {
    let ids: Vec<Oid> = types.iter().filter_map(PgTypeInfo::oid).collect();
    let names =
        "SELECT format_type(id, NULL) FROM unnest($1) WITH ORDINALITY AS it(id, nth) ORDER BY nth";
    sqlx::query_scalar(names).bind(ids).fetch_all(connection).await
}

/// Returns the parameters as texts that PostgreSQL parses as their types.
fn texts(parameters: &[Value], plan: &Plan) -> Vec<Option<String>> {
    parameters.iter().zip(types(&plan.prepared)).map(|(value, kind)| text(value, kind)).collect()
}

fn text(value: &Value, kind: &PgTypeInfo) -> Option<String> {
    match (value, kind.kind()) {
        (Value::Null, _) => None,
        (Value::String(it), _) if !matches!(kind.name(), "JSON" | "JSONB") => Some(it.clone()),
        (Value::Array(items), PgTypeKind::Array(_)) => Some(format_array(items)),
        _ => Some(value.to_string()),
    }
}

/// Formats a list as a PostgreSQL array.
fn format_array(items: &[Value]) -> String {
    format!(
        "{{{}}}",
        items
            .iter()
            .map(|value: &Value| match value {
                Value::Null => "NULL".to_owned(),
                Value::Array(items) => format_array(items),
                Value::String(it) => quote(it),
                _ => quote(&value.to_string()),
            })
            .collect::<Vec<_>>()
            .join(",")
    )
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

impl Type<Postgres> for EncodedParameter {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("text")
    }
}

impl Encode<'_, Postgres> for EncodedParameter {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let Some(bytes) = &self.bytes else { return Ok(IsNull::Yes) };
        buffer.extend_from_slice(bytes);
        Ok(IsNull::No)
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(self.kind.clone())
    }
}

async fn fetch_rows(
    connection: &mut PgConnection,
    query: Query<'_, Postgres, PgArguments>,
    plan: &Plan,
    limits: SqlLimits,
) -> Result<Table, sqlx::Error> {
    let columns = plan.prepared.columns();
    let mut table = TableBuilder::new(columns.iter().map(column).collect(), limits);
    let mut steps = connection.fetch_many(query);
    while let Some(step) = steps.try_next().await? {
        match step {
            Either::Left(done) => table.add_affected(done.rows_affected()),
            Either::Right(row) if table.wants_more() => {
                let values = columns
                    .iter()
                    .enumerate()
                    .map(|(at, column)| match plan.formatted {
                        true => read_formatted(&row, at, column, &mut table),
                        false => read_raw(&row, at, column, &mut table),
                    })
                    .collect::<Result<_, _>>()?;
                table.add_row(values);
            }
            Either::Right(_) => break,
        }
    }
    Ok(table.finish())
}

fn column(column: &PgColumn) -> Column {
    let (name, kind) = (column.name(), column.type_info().name());
    Column { name: name.to_owned(), kind: kind.to_lowercase() }
}

/// Reads a value formatted by the server.
fn read_formatted(
    row: &PgRow,
    at: usize,
    column: &PgColumn,
    table: &mut TableBuilder,
) -> Result<Value, sqlx::Error> {
    let value = row.try_get_raw(at)?;
    if value.is_null() {
        return Ok(Value::Null);
    }
    if column.type_info().name() == "BYTEA" {
        return Ok(table.bytes(row.try_get_unchecked(at)?));
    }
    let text: &str = row.try_get_unchecked(at)?;
    let is_json =
        is_plain(column.type_info()) || matches!(column.type_info().kind(), PgTypeKind::Array(_));
    Ok(if is_json { table.json(text) } else { table.text(text) })
}

/// Reads a value as the server sends it.
fn read_raw(
    row: &PgRow,
    at: usize,
    column: &PgColumn,
    table: &mut TableBuilder,
) -> Result<Value, sqlx::Error> {
    let value = row.try_get_raw(at)?;
    if value.is_null() {
        return Ok(Value::Null);
    }
    Ok(match column.type_info().name() {
        "BOOL" => row.try_get::<bool, _>(at)?.into(),
        "INT2" => row.try_get::<i16, _>(at)?.into(),
        "INT4" => row.try_get::<i32, _>(at)?.into(),
        "INT8" => row.try_get::<i64, _>(at)?.into(),
        "OID" => row.try_get::<Oid, _>(at)?.0.into(),
        "FLOAT4" => row.try_get::<f32, _>(at)?.into(),
        "FLOAT8" => row.try_get::<f64, _>(at)?.into(),
        "JSON" => table.json(row.try_get_unchecked(at)?),
        _ => table.text(row.try_get_unchecked(at)?),
    })
}

fn to_sql_error(error: &sqlx::Error, limits: &SqlLimits) -> SqlError {
    let sqlx::Error::Database(error) = error else { return SqlError::unreachable(error) };
    let hint = error.try_downcast_ref::<PgDatabaseError>().and_then(PgDatabaseError::hint);
    let hint = hint.map(|it| format!(" ({it})")).unwrap_or_default();
    let message = format!("{}{hint}", error.message());
    match error.code().as_deref() {
        Some("25006") => SqlError::ReadOnly(message),
        // Missing rights, and a transaction that can no longer be made writable.
        Some("42501" | "25001") => SqlError::Refused(message),
        Some("57014") => SqlError::TimedOut(limits.timeout),
        _ => SqlError::Failed(message),
    }
}
