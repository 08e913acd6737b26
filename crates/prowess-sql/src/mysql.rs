//! MySQL and MariaDB: a read-only transaction, in a session of its own.
//!
//! On these servers a session cannot give up rights. For a user like `root`, a read-only
//! transaction stops everything that writes, and nothing runs that is not a query; what remains are
//! functions that come with the server or were loaded into it and act with the rights of the
//! caller. On MariaDB these can be listed, and a statement that contains the name of one anywhere,
//! even in a string, is refused: more than necessary, and never less, because a call has to spell
//! the name, and nothing in a query executes a composed text. (The form into which the server
//! rewrites a query does not help: a call that the server has already evaluated is not in it.)
//! Functions and views that users have written into the database do what they were written for.
//! MySQL has more of such functions, also as components, so such a user is refused altogether.

use std::time::Instant;

use futures_util::{TryStreamExt as _, future::BoxFuture};
use serde_json::Value;
use sqlx::{
    AssertSqlSafe, Column as _, Connection as _, Either, Executor as _, MySql, MySqlConnection,
    Row as _, SqlSafeStr as _, Statement as _, Type, TypeInfo as _, ValueRef as _,
    mysql::{MySqlArguments, MySqlColumn, MySqlDatabaseError, MySqlRow, MySqlStatement},
    query::Query,
};

use crate::{
    connections::{Connections, SharedRun, take_connection},
    database::{
        Access, Column, Database, NO_QUERY, NO_ROWS, Privileges, RunError, SqlError, SqlLimits,
        Statement, Table, is_same,
    },
    table::TableBuilder,
    task::{Deadline, spawn},
};

/// Rights over the whole server that no transaction restricts.
const SERVER_RIGHTS: &[&str] = &["ALL PRIVILEGES", "FILE", "SHUTDOWN", "SUPER"];

/// Functions of MariaDB that act beyond the database with the rights of the caller, or block other
/// sessions.
const OUTSIDE_FUNCTIONS: &[&str] = &["load_file", "get_lock"];

/// Functions whose effect outlives the statement in the session.
const SESSION_FUNCTIONS: &[&str] = &["get_lock", "release_lock", "release_all_locks"];

/// A MySQL or MariaDB database.
///
/// Tables that the host has locked on a connection of its own are unlocked by a statement, because
/// the server releases them when a transaction begins.
#[derive(Debug, Clone)]
pub struct MySqlDatabase {
    /// The source of connections.
    pub connections: Connections<MySql>,
    /// The users whose statements are run. With [`Privileges::Limited`], a user like `root` is
    /// accepted too if it only reads from MariaDB, and the statement names no function that reaches
    /// beyond the database.
    pub privileges: Privileges,
}

impl Database for MySqlDatabase {
    fn dialect(&self) -> &'static str {
        "MySQL, with parameters as `?`"
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
    connections: Connections<MySql>,
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
    let session: u64 =
        sqlx::query_scalar("SELECT CONNECTION_ID()").fetch_one(&mut *connection).await?;
    let timed_out = tokio::select! {
        table = execute(&mut connection, &statement, privileges, Instant::now()) => return table,
        error = deadline.wait() => error,
    };
    drop(connection);
    // If this fails, the server stops it by itself, only later.
    if let Ok(mut other) = MySqlConnection::connect_with(&pool.connect_options()).await {
        let kill = AssertSqlSafe(format!("KILL {session}"));
        let _ = other.execute(sqlx::raw_sql(kill)).await;
    }
    Err(timed_out.into())
}

/// Runs a statement on a connection that has to be restored afterwards.
async fn run_and_restore(
    connection: &mut MySqlConnection,
    statement: &Statement,
    privileges: Privileges,
) -> SharedRun {
    let start = Instant::now();
    let settings = match read_settings(connection, &statement.limits).await {
        Ok(settings) => settings,
        Err(error) => return SharedRun { table: Err(error), is_restored: true },
    };
    let table = match check_session_state(connection, statement).await {
        Ok(()) => execute(connection, statement, privileges, start).await,
        Err(error) => Err(error),
    };
    SharedRun { table, is_restored: restore(connection, settings).await.is_ok() }
}

/// Sets a timeout on the server, and returns the statement that restores its settings.
async fn read_settings(
    connection: &mut MySqlConnection,
    limits: &SqlLimits,
) -> Result<String, RunError> {
    // The server accepts this only outside of a transaction, and forgets it with the next one.
    match connection.execute("SET TRANSACTION READ ONLY").await {
        Err(error) if error_number(&error) == 1568 => return Err(SqlError::InTransaction.into()),
        set => set?,
    };
    connection.execute("ROLLBACK").await?;
    let time = time_setting(is_mariadb(connection).await?);
    let settings = [time, "lock_wait_timeout", "sql_select_limit"];
    let settings = settings.map(|it| format!("'{it} = ', @@SESSION.{it}")).join(", ', ', ");
    let settings = AssertSqlSafe(format!("SELECT CONCAT('SET SESSION ', {settings})"));
    let settings = sqlx::query_scalar(settings).fetch_one(&mut *connection).await?;
    set_limits(connection, limits).await?;
    Ok(settings)
}

/// Fails unless the server treats a statement as one about rows, and it names nothing that outlives
/// it.
async fn check_session_state(
    connection: &mut MySqlConnection,
    statement: &Statement,
) -> Result<(), RunError> {
    // The syntax that sets a variable: an assignment, and if writing is allowed also `INTO`.
    let variables = if statement.access == Access::Write { "@" } else { ":=" };
    if let Some(name) =
        SESSION_FUNCTIONS.iter().chain([&variables]).find(|it| mentions(&statement.sql, it))
    {
        return Err(SqlError::SessionState(format!("`{name}` is not allowed")).into());
    }
    if statement.access == Access::Read {
        return Ok(());
    }
    let sql = AssertSqlSafe(statement.sql.as_str()).into_sql_str();
    let prepared = connection.prepare(sql).await?;
    match is_explainable(connection, &prepared).await {
        true => Ok(()),
        false => Err(SqlError::SessionState(NO_ROWS.to_owned()).into()),
    }
}

/// Restores a connection after a statement.
async fn restore(connection: &mut MySqlConnection, settings: String) -> Result<(), sqlx::Error> {
    connection.execute("ROLLBACK").await?;
    connection.execute(sqlx::raw_sql(AssertSqlSafe(settings))).await?;
    connection.clear_cached_statements().await
}

async fn execute(
    connection: &mut MySqlConnection,
    statement: &Statement,
    privileges: Privileges,
    start: Instant,
) -> Result<Table, RunError> {
    let Statement { sql, parameters, access, limits } = statement;
    if privileges == Privileges::Limited {
        check_rights(connection, statement).await?;
    }
    let prepared = connection.prepare(AssertSqlSafe(sql.as_str()).into_sql_str()).await?;
    let wanted = match prepared.parameters() {
        Some(Either::Right(wanted)) => wanted,
        _ => 0,
    };
    if wanted != parameters.len() {
        return Err(SqlError::Parameters { wanted, given: parameters.len() }.into());
    }
    if *access == Access::Read && !is_query(connection, &prepared).await {
        return Err(SqlError::ReadOnly(NO_QUERY.to_owned()).into());
    }
    // It may already have waited for a table.
    let left = limits.timeout.saturating_sub(start.elapsed());
    set_limits(connection, &SqlLimits { timeout: left, ..*limits }).await?;
    let begin = match access {
        Access::Read => "START TRANSACTION READ ONLY",
        Access::Write => "START TRANSACTION",
    };
    connection.execute(begin).await?;
    let mut table = TableBuilder::new(columns(prepared.columns()), *limits);
    let query = parameters.iter().fold(prepared.query(), bind);
    fetch_rows(connection, query, &mut table).await?;
    // Some functions return early and successfully when the server stops them.
    if start.elapsed() >= limits.timeout {
        return Err(SqlError::TimedOut(limits.timeout).into());
    }
    if *access == Access::Write {
        connection.execute("COMMIT").await?;
    }
    Ok(table.finish())
}

/// Fails if the user has rights that no transaction restricts, unless the statement cannot use
/// them.
async fn check_rights(
    connection: &mut MySqlConnection,
    statement: &Statement,
) -> Result<(), RunError> {
    let user: String =
        sqlx::query_scalar("SELECT CURRENT_USER()").fetch_one(&mut *connection).await?;
    let grants: Vec<String> = sqlx::query_scalar("SHOW GRANTS").fetch_all(&mut *connection).await?;
    let global =
        grants.iter().filter_map(|it| it.strip_prefix("GRANT ")?.split_once(" ON *.* TO "));
    let rights: Vec<&str> =
        global.flat_map(|it| it.0.split(", ")).filter(|it| SERVER_RIGHTS.contains(it)).collect();
    if rights.is_empty() {
        return Ok(());
    }
    let may = format!("it has {} on the whole server", rights.join(", "));
    if statement.access == Access::Write || !is_mariadb(connection).await? {
        return Err(SqlError::Privileged { user, may }.into());
    }
    // With an explicit limit, so that a limit of the session omits none.
    let loaded = "SELECT CAST(name AS CHAR) FROM mysql.func LIMIT 18446744073709551615";
    let loaded = sqlx::query_scalar(loaded);
    let Ok(loaded) = loaded.fetch_all(connection).await as Result<Vec<String>, _> else {
        return Err(SqlError::Privileged { user, may }.into());
    };
    let mut functions = OUTSIDE_FUNCTIONS.iter().copied().chain(loaded.iter().map(String::as_str));
    match functions.find(|it| mentions(&statement.sql, it)) {
        Some(name) => {
            let may = format!("`{name}` could access more than the database with its rights");
            Err(SqlError::Privileged { user, may }.into())
        }
        None => Ok(()),
    }
}

/// Whether the name of a function occurs anywhere in a statement.
fn mentions(sql: &str, function: &str) -> bool {
    let function: Vec<char> = function.chars().collect();
    let sql: Vec<char> = sql.chars().collect();
    sql.windows(function.len().max(1))
        .any(|it: &[char]| it.iter().copied().zip(function.iter().copied()).all(is_same))
}

async fn is_mariadb(connection: &mut MySqlConnection) -> Result<bool, sqlx::Error> {
    let version: String = sqlx::query_scalar("SELECT VERSION()").fetch_one(connection).await?;
    Ok(version.contains("MariaDB"))
}

/// Whether the server treats a statement as a query. A read-only transaction stops what writes
/// rows; this stops what first ends the transaction, such as `OPTIMIZE TABLE`, because the server
/// cannot explain it; and what writes to a file or variable, because it has no columns.
async fn is_query(connection: &mut MySqlConnection, prepared: &MySqlStatement) -> bool {
    // The first word of these determines their kind, and they only read.
    let describes = prepared.sql().as_str().split_whitespace().next().is_some_and(|first| {
        ["SHOW", "DESCRIBE", "DESC", "EXPLAIN"].iter().any(|it| it.eq_ignore_ascii_case(first))
    });
    !prepared.columns().is_empty() && (describes || is_explainable(connection, prepared).await)
}

/// Whether a statement is about rows, so that the server can explain it.
async fn is_explainable(connection: &mut MySqlConnection, prepared: &MySqlStatement) -> bool {
    // With a format, `ANALYZE TABLE` cannot be parsed as an analyzed statement.
    let explained = format!("EXPLAIN FORMAT=JSON {}", prepared.sql().as_str());
    connection.prepare(AssertSqlSafe(explained).into_sql_str()).await.is_ok()
}

/// Makes the server stop a statement in time, and send no more rows than the limit.
async fn set_limits(
    connection: &mut MySqlConnection,
    limits: &SqlLimits,
) -> Result<(), sqlx::Error> {
    let is_mariadb = is_mariadb(connection).await?;
    let seconds = limits.timeout.as_secs_f64();
    let time = match is_mariadb {
        true => format!("{:.3}", seconds.max(0.001)),
        false => limits.timeout.as_millis().max(1).to_string(),
    };
    let settings = format!(
        "SET SESSION {} = {time}, lock_wait_timeout = {}, sql_select_limit = {}",
        time_setting(is_mariadb),
        seconds.ceil().max(1.0),
        limits.rows_asked()
    );
    connection.execute(sqlx::raw_sql(AssertSqlSafe(settings))).await?;
    Ok(())
}

/// Returns the name of the server's timeout setting.
fn time_setting(is_mariadb: bool) -> &'static str {
    if is_mariadb { "max_statement_time" } else { "max_execution_time" }
}

fn bind<'q>(
    query: Query<'q, MySql, MySqlArguments>,
    value: &Value,
) -> Query<'q, MySql, MySqlArguments> {
    match value {
        Value::Null => query.bind(None::<String>),
        Value::Bool(it) => query.bind(*it),
        Value::Number(it) => match (it.as_i64(), it.as_u64(), it.as_f64()) {
            (Some(it), ..) => query.bind(it),
            (_, Some(it), _) => query.bind(it),
            (.., it) => query.bind(it),
        },
        Value::String(it) => query.bind(it.clone()),
        Value::Array(_) | Value::Object(_) => query.bind(value.to_string()),
    }
}

async fn fetch_rows(
    connection: &mut MySqlConnection,
    query: Query<'_, MySql, MySqlArguments>,
    table: &mut TableBuilder,
) -> Result<(), sqlx::Error> {
    let mut steps = connection.fetch_many(query);
    while let Some(step) = steps.try_next().await? {
        match step {
            Either::Left(done) => table.add_affected(done.rows_affected()),
            Either::Right(row) if table.wants_more() => {
                if table.is_empty() {
                    // Only now the types of placeholders are known.
                    table.set_columns(columns(row.columns()));
                }
                let values = row
                    .columns()
                    .iter()
                    .enumerate()
                    .map(|(at, column)| value(&row, at, column, table));
                let values = values.collect::<Result<_, _>>()?;
                table.add_row(values);
            }
            Either::Right(_) => break,
        }
    }
    Ok(())
}

fn columns(columns: &[MySqlColumn]) -> Vec<Column> {
    columns
        .iter()
        .map(|column| {
            let kind = column.type_info().name();
            // A text with a binary collation has the name of a binary type.
            let kind = match is_text(column) {
                true => kind.replace("BLOB", "TEXT").replace("BINARY", "CHAR"),
                false => kind.to_owned(),
            };
            Column { name: column.name().to_owned(), kind: kind.to_lowercase() }
        })
        .collect()
}

fn is_text(column: &MySqlColumn) -> bool {
    <str as Type<MySql>>::compatible(column.type_info())
}

fn value(
    row: &MySqlRow,
    at: usize,
    column: &MySqlColumn,
    table: &mut TableBuilder,
) -> Result<Value, sqlx::Error> {
    if row.try_get_raw(at)?.is_null() {
        return Ok(Value::Null);
    }
    let kind = column.type_info().name();
    Ok(match kind {
        "FLOAT" => shortest_float(row.try_get_unchecked(at)?),
        "DOUBLE" => row.try_get_unchecked::<f64, _>(at)?.into(),
        "BIT" | "YEAR" => row.try_get_unchecked::<u64, _>(at)?.into(),
        "BOOLEAN" => row.try_get_unchecked::<i64, _>(at)?.into(),
        "DATE" | "DATETIME" | "TIMESTAMP" => {
            format_date(row.try_get_unchecked(at)?, kind == "DATE").into()
        }
        "TIME" => format_time(row.try_get_unchecked(at)?).into(),
        "JSON" => table.json(row.try_get_unchecked(at)?),
        "DECIMAL" | "ENUM" | "SET" => table.text(row.try_get_unchecked(at)?),
        _ if kind.ends_with("INT UNSIGNED") => row.try_get_unchecked::<u64, _>(at)?.into(),
        _ if kind.ends_with("INT") => row.try_get_unchecked::<i64, _>(at)?.into(),
        _ if is_text(column) => table.text(row.try_get_unchecked(at)?),
        _ => table.bytes(row.try_get_unchecked(at)?),
    })
}

/// Returns a four-byte float with its shortest digits, not those of its conversion to eight bytes.
fn shortest_float(number: f32) -> Value {
    number.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// Formats a date with its time, from the bytes of the protocol: their length, and as many parts as
/// are not zero.
fn format_date(bytes: &[u8], is_alone: bool) -> String {
    let part = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let year = u16::from_le_bytes([part(1), part(2)]);
    let day = format!("{year:04}-{:02}-{:02}", part(3), part(4));
    if is_alone {
        return day;
    }
    let micros = format_micros([part(8), part(9), part(10), part(11)]);
    format!("{day} {:02}:{:02}:{:02}{micros}", part(5), part(6), part(7))
}

/// Formats a time, which may be negative and exceed a day.
fn format_time(bytes: &[u8]) -> String {
    let part = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let sign = if part(1) == 1 { "-" } else { "" };
    let days = u32::from_le_bytes([part(2), part(3), part(4), part(5)]);
    let hours = u64::from(days) * 24 + u64::from(part(6));
    let micros = format_micros([part(9), part(10), part(11), part(12)]);
    format!("{sign}{hours:02}:{:02}:{:02}{micros}", part(7), part(8))
}

fn format_micros(bytes: [u8; 4]) -> String {
    match u32::from_le_bytes(bytes) {
        0 => String::new(),
        micros => format!(".{micros:06}"),
    }
}

fn to_sql_error(error: &sqlx::Error, limits: &SqlLimits) -> SqlError {
    let number = error_number(error);
    let sqlx::Error::Database(error) = error else { return SqlError::unreachable(error) };
    let message = error.message().to_owned();
    match number {
        1792 => SqlError::ReadOnly(message),
        // Missing rights.
        1044 | 1142 | 1143 | 1227 | 1290 | 1370 => SqlError::Refused(message),
        // A query that timed out, on MariaDB and on MySQL.
        1969 | 3024 => SqlError::TimedOut(limits.timeout),
        _ => SqlError::Failed(message),
    }
}

/// Returns the number of an error, 0 if the server did not send one.
fn error_number(error: &sqlx::Error) -> u16 {
    let error = error.as_database_error();
    let error = error.and_then(|it| it.try_downcast_ref::<MySqlDatabaseError>());
    error.map_or(0, MySqlDatabaseError::number)
}
