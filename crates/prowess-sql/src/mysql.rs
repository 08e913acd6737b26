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
    connections::{Connections, Turn, take},
    database::{
        Access, Column, Database, NO_QUERY, NO_ROWS, Privileges, SqlError, SqlLimits, Statement,
        Table, is_same,
    },
    table::TableBuilder,
    task::spawn,
};

/// Rights over the whole server that no transaction restricts.
const BEYOND: &[&str] = &["ALL PRIVILEGES", "FILE", "SHUTDOWN", "SUPER"];

/// Functions of MariaDB that act beyond the database with the rights of the caller, or block other
/// sessions.
const REACHING: &[&str] = &["load_file", "get_lock"];

/// Functions whose effect outlives the statement in the session.
const KEEPING: &[&str] = &["get_lock", "release_lock", "release_all_locks"];

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
        Box::pin(spawn(statement, move |mut statement, mut deadline| async move {
            let pool = match connections {
                Connections::Pool(pool) => pool,
                Connections::Single(single) => {
                    let (mut place, mut connection) =
                        take(single, &mut statement, &mut deadline).await?;
                    let turn =
                        deadline.bound(turn(&mut connection, &statement, privileges)).await?;
                    *place = turn.is_clear.then_some(connection);
                    return turn.table;
                }
            };
            let failed = |error| failed(error, &statement.limits);
            let mut connection = pool.acquire().await.map_err(failed)?;
            connection.close_on_drop();
            let own = sqlx::query_scalar("SELECT CONNECTION_ID()");
            let own: u64 = own.fetch_one(&mut *connection).await.map_err(failed)?;
            let timed_out = tokio::select! {
                table = ask(&mut connection, &statement, privileges, Instant::now()) => return table,
                error = deadline.wait() => error,
            };
            drop(connection);
            // If this fails, the server stops it by itself, only later.
            if let Ok(mut other) = MySqlConnection::connect_with(&pool.connect_options()).await {
                let kill = AssertSqlSafe(format!("KILL {own}"));
                let _ = other.execute(sqlx::raw_sql(kill)).await;
            }
            Err(timed_out)
        }))
    }
}

/// Runs a statement on a connection that has to be restored afterwards.
async fn turn(
    connection: &mut MySqlConnection,
    statement: &Statement,
    privileges: Privileges,
) -> Turn {
    let start = Instant::now();
    let before = match before(connection, &statement.limits).await {
        Ok(before) => before,
        Err(error) => return Turn { table: Err(error), is_clear: true },
    };
    let table = match leaves_nothing(connection, statement).await {
        Ok(()) => ask(connection, statement, privileges, start).await,
        Err(error) => Err(error),
    };
    Turn { table, is_clear: clear(connection, before).await.is_ok() }
}

/// Sets a timeout on the server, and returns the statement that restores its settings.
async fn before(connection: &mut MySqlConnection, limits: &SqlLimits) -> Result<String, SqlError> {
    let failed = |error| failed(error, limits);
    // The server accepts this only outside of a transaction, and forgets it with the next one.
    connection.execute("SET TRANSACTION READ ONLY").await.map_err(|error| {
        match number(&error) {
            1568 => SqlError::InTransaction,
            _ => failed(error),
        }
    })?;
    connection.execute("ROLLBACK").await.map_err(failed)?;
    let time = time_setting(is_mariadb(connection).await.map_err(failed)?);
    let settings = [time, "lock_wait_timeout", "sql_select_limit"];
    let settings = settings.map(|it| format!("'{it} = ', @@SESSION.{it}")).join(", ', ', ");
    let before = AssertSqlSafe(format!("SELECT CONCAT('SET SESSION ', {settings})"));
    let before = sqlx::query_scalar(before).fetch_one(&mut *connection).await.map_err(failed)?;
    settle(connection, limits).await.map_err(failed)?;
    Ok(before)
}

/// Fails unless the server treats a statement as one about rows, and it names nothing that outlives
/// it.
async fn leaves_nothing(
    connection: &mut MySqlConnection,
    statement: &Statement,
) -> Result<(), SqlError> {
    // The syntax that sets a variable: an assignment, and if writing is allowed also `INTO`.
    let variables = if statement.access == Access::Write { "@" } else { ":=" };
    if let Some(name) = KEEPING.iter().chain([&variables]).find(|it| names(&statement.sql, it)) {
        return Err(SqlError::SessionState(format!("`{name}` is not allowed in it")));
    }
    if statement.access == Access::Read {
        return Ok(());
    }
    let sql = AssertSqlSafe(statement.sql.as_str()).into_sql_str();
    let prepared = connection.prepare(sql).await.map_err(|it| failed(it, &statement.limits))?;
    match is_explained(connection, &prepared).await {
        true => Ok(()),
        false => Err(SqlError::SessionState(NO_ROWS.to_owned())),
    }
}

/// Cleans up after a statement.
async fn clear(connection: &mut MySqlConnection, before: String) -> Result<(), sqlx::Error> {
    connection.execute("ROLLBACK").await?;
    connection.execute(sqlx::raw_sql(AssertSqlSafe(before))).await?;
    connection.clear_cached_statements().await
}

async fn ask(
    connection: &mut MySqlConnection,
    statement: &Statement,
    privileges: Privileges,
    start: Instant,
) -> Result<Table, SqlError> {
    let Statement { sql, parameters, access, limits } = statement;
    let failed = |error| failed(error, limits);
    if privileges == Privileges::Limited {
        ordinary(connection, statement).await?;
    }
    let prepared = connection.prepare(AssertSqlSafe(sql.as_str()).into_sql_str());
    let prepared = prepared.await.map_err(failed)?;
    let wanted = match prepared.parameters() {
        Some(Either::Right(wanted)) => wanted,
        _ => 0,
    };
    if wanted != parameters.len() {
        return Err(SqlError::Parameters { wanted, given: parameters.len() });
    }
    if *access == Access::Read && !is_query(connection, &prepared).await {
        return Err(SqlError::ReadOnly(NO_QUERY.to_owned()));
    }
    // It may already have waited for a table.
    let left = limits.timeout.saturating_sub(start.elapsed());
    settle(connection, &SqlLimits { timeout: left, ..*limits }).await.map_err(failed)?;
    let begin = match access {
        Access::Read => "START TRANSACTION READ ONLY",
        Access::Write => "START TRANSACTION",
    };
    connection.execute(begin).await.map_err(failed)?;
    let mut collect = TableBuilder::new(columns(prepared.columns()), *limits);
    let query = parameters.iter().fold(prepared.query(), bind);
    rows(connection, query, &mut collect).await.map_err(failed)?;
    // Some functions return early and successfully when the server stops them.
    if start.elapsed() >= limits.timeout {
        return Err(SqlError::TimedOut(limits.timeout));
    }
    if *access == Access::Write {
        connection.execute("COMMIT").await.map_err(failed)?;
    }
    Ok(collect.table())
}

/// Fails if the user has rights that no transaction restricts, unless the statement cannot use
/// them.
async fn ordinary(connection: &mut MySqlConnection, statement: &Statement) -> Result<(), SqlError> {
    let failed = |error| failed(error, &statement.limits);
    let user: String = sqlx::query_scalar("SELECT CURRENT_USER()")
        .fetch_one(&mut *connection)
        .await
        .map_err(failed)?;
    let grants: Vec<String> =
        sqlx::query_scalar("SHOW GRANTS").fetch_all(&mut *connection).await.map_err(failed)?;
    let global =
        grants.iter().filter_map(|it| it.strip_prefix("GRANT ")?.split_once(" ON *.* TO "));
    let held: Vec<&str> =
        global.flat_map(|it| it.0.split(", ")).filter(|it| BEYOND.contains(it)).collect();
    if held.is_empty() {
        return Ok(());
    }
    let refused = |may| SqlError::Privileged { user, may };
    let may = format!("it has {} on the whole server", held.join(", "));
    if statement.access == Access::Write || !is_mariadb(connection).await.map_err(failed)? {
        return Err(refused(may));
    }
    // With an explicit limit, so that a limit of the session omits none.
    let loaded = "SELECT CAST(name AS CHAR) FROM mysql.func LIMIT 18446744073709551615";
    let loaded = sqlx::query_scalar(loaded);
    let Ok(loaded) = loaded.fetch_all(connection).await as Result<Vec<String>, _> else {
        return Err(refused(may));
    };
    let mut functions = REACHING.iter().copied().chain(loaded.iter().map(String::as_str));
    match functions.find(|it| names(&statement.sql, it)) {
        Some(name) => {
            Err(refused(format!("`{name}` would reach beyond the database with its rights")))
        }
        None => Ok(()),
    }
}

/// Whether the name of a function occurs anywhere in a statement.
fn names(sql: &str, function: &str) -> bool {
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
    let tells = prepared.sql().as_str().split_whitespace().next().is_some_and(|first| {
        ["SHOW", "DESCRIBE", "DESC", "EXPLAIN"].iter().any(|it| it.eq_ignore_ascii_case(first))
    });
    !prepared.columns().is_empty() && (tells || is_explained(connection, prepared).await)
}

/// Whether a statement is about rows, so that the server can explain it.
async fn is_explained(connection: &mut MySqlConnection, prepared: &MySqlStatement) -> bool {
    // With a format, `ANALYZE TABLE` cannot be parsed as an analyzed statement.
    let explained = format!("EXPLAIN FORMAT=JSON {}", prepared.sql().as_str());
    connection.prepare(AssertSqlSafe(explained).into_sql_str()).await.is_ok()
}

/// Makes the server stop a statement in time, and send no more rows than the limit.
async fn settle(connection: &mut MySqlConnection, limits: &SqlLimits) -> Result<(), sqlx::Error> {
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

async fn rows(
    connection: &mut MySqlConnection,
    query: Query<'_, MySql, MySqlArguments>,
    collect: &mut TableBuilder,
) -> Result<(), sqlx::Error> {
    let mut steps = connection.fetch_many(query);
    while let Some(step) = steps.try_next().await? {
        match step {
            Either::Left(done) => collect.affected(done.rows_affected()),
            Either::Right(row) if collect.wants_more() => {
                if collect.is_empty() {
                    // Only now the types of placeholders are known.
                    collect.columns(columns(row.columns()));
                }
                let values = row
                    .columns()
                    .iter()
                    .enumerate()
                    .map(|(at, column)| value(&row, at, column, collect));
                let values = values.collect::<Result<_, _>>()?;
                collect.row(values);
            }
            Either::Right(_) => break,
        }
    }
    Ok(())
}

fn columns(columns: &[MySqlColumn]) -> Vec<Column> {
    let column = |it: &MySqlColumn| {
        let name = it.type_info().name();
        // A text with a binary collation has the name of a binary type.
        let name = match is_text(it) {
            true => name.replace("BLOB", "TEXT").replace("BINARY", "CHAR"),
            false => name.to_owned(),
        };
        Column { name: it.name().to_owned(), kind: name.to_lowercase() }
    };
    columns.iter().map(column).collect()
}

fn is_text(column: &MySqlColumn) -> bool {
    <str as Type<MySql>>::compatible(column.type_info())
}

fn value(
    row: &MySqlRow,
    at: usize,
    column: &MySqlColumn,
    collect: &mut TableBuilder,
) -> Result<Value, sqlx::Error> {
    if row.try_get_raw(at)?.is_null() {
        return Ok(Value::Null);
    }
    let kind = column.type_info().name();
    Ok(match kind {
        "FLOAT" => shortest(row.try_get_unchecked(at)?),
        "DOUBLE" => row.try_get_unchecked::<f64, _>(at)?.into(),
        "BIT" | "YEAR" => row.try_get_unchecked::<u64, _>(at)?.into(),
        "BOOLEAN" => row.try_get_unchecked::<i64, _>(at)?.into(),
        "DATE" | "DATETIME" | "TIMESTAMP" => {
            date(row.try_get_unchecked(at)?, kind == "DATE").into()
        }
        "TIME" => time(row.try_get_unchecked(at)?).into(),
        "JSON" => collect.json(row.try_get_unchecked(at)?),
        "DECIMAL" | "ENUM" | "SET" => collect.text(row.try_get_unchecked(at)?),
        _ if kind.ends_with("INT UNSIGNED") => row.try_get_unchecked::<u64, _>(at)?.into(),
        _ if kind.ends_with("INT") => row.try_get_unchecked::<i64, _>(at)?.into(),
        _ if is_text(column) => collect.text(row.try_get_unchecked(at)?),
        _ => collect.bytes(row.try_get_unchecked(at)?),
    })
}

/// Returns a four-byte float with its shortest digits, not those of its conversion to eight bytes.
fn shortest(number: f32) -> Value {
    number.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// Formats a date with its time, from the bytes of the protocol: their length, and as many parts as
/// are not zero.
fn date(bytes: &[u8], alone: bool) -> String {
    let part = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let year = u16::from_le_bytes([part(1), part(2)]);
    let day = format!("{year:04}-{:02}-{:02}", part(3), part(4));
    if alone {
        return day;
    }
    let micros = micros([part(8), part(9), part(10), part(11)]);
    format!("{day} {:02}:{:02}:{:02}{micros}", part(5), part(6), part(7))
}

/// Formats a time, which may be negative and exceed a day.
fn time(bytes: &[u8]) -> String {
    let part = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let sign = if part(1) == 1 { "-" } else { "" };
    let days = u32::from_le_bytes([part(2), part(3), part(4), part(5)]);
    let hours = u64::from(days) * 24 + u64::from(part(6));
    let micros = micros([part(9), part(10), part(11), part(12)]);
    format!("{sign}{hours:02}:{:02}:{:02}{micros}", part(7), part(8))
}

fn micros(bytes: [u8; 4]) -> String {
    match u32::from_le_bytes(bytes) {
        0 => String::new(),
        micros => format!(".{micros:06}"),
    }
}

fn failed(error: sqlx::Error, limits: &SqlLimits) -> SqlError {
    let number = number(&error);
    let sqlx::Error::Database(error) = &error else {
        return SqlError::unreachable(&error);
    };
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
fn number(error: &sqlx::Error) -> u16 {
    let error = error.as_database_error();
    let error = error.and_then(|it| it.try_downcast_ref::<MySqlDatabaseError>());
    error.map_or(0, MySqlDatabaseError::number)
}
