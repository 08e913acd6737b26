//! MySQL and MariaDB: a transaction that reads alone, in a session of its own.
//!
//! The server has no way for a session to give up rights. Of what somebody like `root` may do, a
//! transaction that reads alone stops everything that writes, and nothing runs that is no query; what
//! is left are functions that come with the server or were loaded into it and act with the rights of
//! whoever calls them. On MariaDB these can be listed, and a statement in which the name of one
//! stands anywhere, be it in a text, is refused: more than needed, and never less, because a call has
//! to spell the name, and nothing in a query runs what is put together. (The form into which the server
//! rewrites a query is no help: where it has worked out a call already, the call is not in it.)
//! Functions and views that somebody has written into the database do what they were written for.
//! MySQL brings more of such functions, as components too, and refuses such a user altogether.

use std::time::Instant;

use futures_util::TryStreamExt as _;
use serde_json::Value;
use sqlx::{
    AssertSqlSafe, Column as _, Connection as _, Either, Executor as _, MySql, MySqlConnection,
    MySqlPool, Row as _, SqlSafeStr as _, Statement as _, Type, TypeInfo as _, ValueRef as _,
    mysql::{MySqlArguments, MySqlColumn, MySqlDatabaseError, MySqlRow, MySqlStatement},
    query::Query,
};

use super::{
    Access, Asked, Bounds, Column, Database, DatabaseError, NO_QUERY, Statement, Table, Users,
    apart::apart, collect::Collect,
};

/// What a user may hold of the whole server that no transaction holds back.
const BEYOND: &[&str] = &["ALL PRIVILEGES", "FILE", "SHUTDOWN", "SUPER"];

/// Functions of MariaDB that act beyond the database with the rights of whoever calls them, or keep
/// others waiting.
const REACHING: &[&str] = &["load_file", "get_lock"];

/// Has every transaction of the session read alone, also one that a statement would begin itself.
const READ_ONLY: &str = "SET SESSION TRANSACTION READ ONLY";

/// A MySQL or MariaDB database.
///
/// A connection on which a statement ran is closed, not given back: locks, variables and whatever
/// else a session keeps end with it.
#[derive(Debug, Clone)]
pub struct MySqlDatabase {
    /// Where connections come from.
    pub pool: MySqlPool,
    /// Who may ask. With [`Users::Ordinary`], somebody like `root` may too where it only reads from
    /// MariaDB, and names no function that reaches beyond the database.
    pub users: Users,
}

impl Database for MySqlDatabase {
    fn dialect(&self) -> &'static str {
        "MySQL, with parameters as `?`"
    }

    fn ask(&self, statement: Statement) -> Asked<'_> {
        let Self { pool, users } = self.clone();
        Box::pin(apart(statement, move |statement, over| async move {
            let failed = |error| failed(error, &statement.bounds);
            let mut connection = pool.acquire().await.map_err(failed)?;
            connection.close_on_drop();
            let own = sqlx::query_scalar("SELECT CONNECTION_ID()");
            let own: u64 = own.fetch_one(&mut *connection).await.map_err(failed)?;
            let over = tokio::select! {
                table = ask(&mut connection, &statement, users) => return table,
                over = over.wait() => over,
            };
            drop(connection);
            // The server stops it by itself, only later, if it cannot be told.
            if let Ok(mut other) = MySqlConnection::connect_with(&pool.connect_options()).await {
                let kill = AssertSqlSafe(format!("KILL {own}"));
                let _ = other.execute(sqlx::raw_sql(kill)).await;
            }
            Err(over)
        }))
    }
}

async fn ask(
    connection: &mut MySqlConnection,
    statement: &Statement,
    users: Users,
) -> Result<Table, DatabaseError> {
    let Statement { sql, parameters, access, bounds } = statement;
    let failed = |error| failed(error, bounds);
    if users == Users::Ordinary {
        ordinary(connection, statement).await?;
    }
    if *access == Access::Read {
        connection.execute(READ_ONLY).await.map_err(failed)?;
    }
    let prepared = connection.prepare(AssertSqlSafe(sql.as_str()).into_sql_str());
    let prepared = prepared.await.map_err(failed)?;
    let wanted = match prepared.parameters() {
        Some(Either::Right(wanted)) => wanted,
        _ => 0,
    };
    if wanted != parameters.len() {
        return Err(DatabaseError::Parameters { wanted, given: parameters.len() });
    }
    if *access == Access::Read && !is_query(connection, &prepared).await {
        return Err(DatabaseError::ReadOnly(NO_QUERY.to_owned()));
    }
    settle(connection, bounds).await.map_err(failed)?;
    connection.execute("START TRANSACTION").await.map_err(failed)?;
    let mut collect = Collect::new(columns(prepared.columns()), *bounds);
    let query = parameters.iter().fold(prepared.query(), bind);
    let start = Instant::now();
    rows(connection, query, &mut collect).await.map_err(failed)?;
    // Some functions end early and well when the server stops them.
    if start.elapsed() >= bounds.timeout {
        return Err(DatabaseError::TimedOut(bounds.timeout));
    }
    if *access == Access::Write {
        connection.execute("COMMIT").await.map_err(failed)?;
    }
    Ok(collect.table())
}

/// Fails when the user may do what no transaction holds back, unless the statement cannot do it.
async fn ordinary(
    connection: &mut MySqlConnection,
    statement: &Statement,
) -> Result<(), DatabaseError> {
    let failed = |error| failed(error, &statement.bounds);
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
    let refused = |may| DatabaseError::Privileged { user, may };
    let may = format!("it holds {} on the whole server", held.join(", "));
    if statement.access == Access::Write || !is_mariadb(connection).await.map_err(failed)? {
        return Err(refused(may));
    }
    let loaded = sqlx::query_scalar("SELECT CAST(name AS CHAR) FROM mysql.func");
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

/// Whether the name of a function stands anywhere in a statement. To some servers a letter is the
/// same with and without an accent, so one that is Latin and not ASCII may be any letter.
fn names(sql: &str, function: &str) -> bool {
    let function: Vec<char> = function.chars().collect();
    let sql: Vec<char> = sql.chars().collect();
    let same = |(one, other): (&char, &char)| {
        one.eq_ignore_ascii_case(other) || matches!(one, 'À'..='ɏ' | 'Ḁ'..='ỿ')
    };
    sql.windows(function.len().max(1)).any(|it| it.iter().zip(&function).all(same))
}

async fn is_mariadb(connection: &mut MySqlConnection) -> Result<bool, sqlx::Error> {
    let version: String = sqlx::query_scalar("SELECT VERSION()").fetch_one(connection).await?;
    Ok(version.contains("MariaDB"))
}

/// Whether the server takes a statement for a query. A transaction that reads alone stops what
/// writes rows; this stops what ends the transaction first, such as `OPTIMIZE TABLE`, because the
/// server cannot explain it; and what writes to a file or variable, because it has no columns.
async fn is_query(connection: &mut MySqlConnection, prepared: &MySqlStatement) -> bool {
    let sql = prepared.sql();
    // With a format, `ANALYZE TABLE` cannot be read on as something that is analyzed.
    let explained = AssertSqlSafe(format!("EXPLAIN FORMAT=JSON {}", sql.as_str())).into_sql_str();
    // The first word of these decides what they are, and they only tell.
    let tells = sql.as_str().split_whitespace().next().is_some_and(|first| {
        ["SHOW", "DESCRIBE", "DESC", "EXPLAIN"].iter().any(|it| it.eq_ignore_ascii_case(first))
    });
    !prepared.columns().is_empty() && (tells || connection.prepare(explained).await.is_ok())
}

/// Has the server stop a statement in time, and send no more rows than are taken.
async fn settle(connection: &mut MySqlConnection, bounds: &Bounds) -> Result<(), sqlx::Error> {
    let time = match is_mariadb(connection).await? {
        true => format!("max_statement_time = {:.3}", bounds.timeout.as_secs_f64().max(0.001)),
        false => format!("max_execution_time = {}", bounds.timeout.as_millis().max(1)),
    };
    let settings = format!("SET SESSION {time}, sql_select_limit = {}", bounds.rows_asked());
    connection.execute(sqlx::raw_sql(AssertSqlSafe(settings))).await?;
    Ok(())
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
    collect: &mut Collect,
) -> Result<(), sqlx::Error> {
    let mut steps = connection.fetch_many(query);
    while let Some(step) = steps.try_next().await? {
        match step {
            Either::Left(done) => collect.affected(done.rows_affected()),
            Either::Right(row) if collect.wants_more() => {
                if collect.is_empty() {
                    // Only now it is known what placeholders stand for.
                    collect.columns(columns(row.columns()));
                }
                let value = |(at, column)| value(&row, at, column, collect);
                let values = row.columns().iter().enumerate().map(value);
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
        // A text that is compared byte for byte is called after bytes.
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
    collect: &mut Collect,
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

/// A number of four bytes with the digits that it has, not those that it is near to.
fn shortest(number: f32) -> Value {
    number.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// A date with its time, from the bytes of the protocol: their length, and as many parts as differ
/// from zero.
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

/// A time, which may be over a day and before midnight.
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

fn failed(error: sqlx::Error, bounds: &Bounds) -> DatabaseError {
    let sqlx::Error::Database(error) = &error else {
        return DatabaseError::unreachable(&error);
    };
    let message = error.message().to_owned();
    match error.try_downcast_ref::<MySqlDatabaseError>().map_or(0, MySqlDatabaseError::number) {
        1792 => DatabaseError::ReadOnly(message),
        // Rights that are missing.
        1044 | 1142 | 1143 | 1227 | 1290 | 1370 => DatabaseError::Refused(message),
        // A query that took too long, on MariaDB and on MySQL.
        1969 | 3024 => DatabaseError::TimedOut(bounds.timeout),
        _ => DatabaseError::Failed(message),
    }
}
