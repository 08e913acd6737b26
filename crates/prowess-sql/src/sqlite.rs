//! SQLite: a read-only connection, an authorizer that decides what a statement may prepare, and a
//! progress handler that decides how long it runs.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use futures_util::{TryStreamExt as _, future::BoxFuture};
use serde_json::Value;
use sqlx::{
    AssertSqlSafe, Column as _, Connection as _, Either, Executor as _, Row as _, SqlSafeStr as _,
    Sqlite, SqliteConnection, Statement as _, TypeInfo as _, ValueRef as _,
    query::Query,
    sqlite::{SqliteArguments, SqliteColumn, SqliteRow},
};

use crate::{
    authorizer::{is_in_transaction, release, restrict},
    connections::{Connections, take_connection},
    database::{
        Access, Column, Database, NO_QUERY, RunError, SqlError, SqlLimits, Statement, Table,
    },
    memory::MemoryLimit,
    table::TableBuilder,
    task::{Deadline, spawn},
    temporary::{TemporaryFiles, limit_error},
};

/// The number of instructions between two calls of the progress handler. Each can allocate as much
/// memory as the longest value.
const STEP: i32 = 100;

/// A SQLite database.
///
/// A connection that the host passed in is used as it is, even if it is in memory or may write: it
/// is restricted while a statement runs, and released afterwards. An authorizer or progress handler
/// that the host has set itself is lost, because SQLite cannot return it. Its functions are those
/// of SQLite, some of which take long for long texts and cannot be stopped.
#[derive(Debug, Clone)]
pub struct SqliteDatabase {
    /// The source of connections.
    pub connections: Connections<Sqlite>,
}

impl Database for SqliteDatabase {
    fn dialect(&self) -> &'static str {
        "SQLite, with parameters as `?`"
    }

    fn run(&self, statement: Statement) -> BoxFuture<'_, Result<Table, SqlError>> {
        let connections = self.connections.clone();
        Box::pin(spawn(statement, async move |statement, deadline| {
            let (access, limits) = (statement.access, statement.limits);
            run(connections, statement, deadline)
                .await
                .map_err(|error| error.explain(|it| to_sql_error(&it, access, &limits)))
        }))
    }
}

async fn run(
    connections: Connections<Sqlite>,
    mut statement: Statement,
    mut deadline: Deadline,
) -> Result<Table, RunError> {
    match connections {
        Connections::Pool(pool) => {
            let mut connection = pool.acquire().await?;
            run_until(&mut connection, &statement, deadline).await
        }
        Connections::Single(single) => {
            let (mut slot, mut connection) =
                take_connection(single, &mut statement, &mut deadline).await?;
            let table = run_until(&mut connection, &statement, deadline).await;
            *slot = Some(connection);
            table
        }
    }
}

/// Executes a statement, and stops it at the deadline.
async fn run_until(
    connection: &mut SqliteConnection,
    statement: &Statement,
    mut deadline: Deadline,
) -> Result<Table, RunError> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut result = pin!(execute(connection, statement, stop.clone()));
    tokio::select! {
        table = &mut result => table,
        _ = deadline.wait() => {
            // The connection may contain a database in memory, so it is not discarded.
            stop.store(true, Ordering::Relaxed);
            result.await
        }
    }
}

async fn execute(
    connection: &mut SqliteConnection,
    statement: &Statement,
    stop: Arc<AtomicBool>,
) -> Result<Table, RunError> {
    if is_in_transaction(&mut connection.lock_handle().await?) {
        return Err(SqlError::InTransaction.into());
    }
    if statement.access == Access::Read {
        let before: bool =
            sqlx::query_scalar("PRAGMA query_only").fetch_one(&mut *connection).await?;
        connection.execute("PRAGMA query_only = 1").await?;
        let table = execute_restricted(connection, statement, stop).await;
        if !before {
            connection.execute("PRAGMA query_only = 0").await?;
        }
        return table;
    }
    let mut transaction = connection.begin().await?;
    let table = execute_restricted(&mut transaction, statement, stop).await;
    match table.is_ok() {
        true => transaction.commit().await?,
        false => transaction.rollback().await?,
    }
    table
}

/// Executes a statement on a connection that is restricted meanwhile.
async fn execute_restricted(
    connection: &mut SqliteConnection,
    statement: &Statement,
    stop: Arc<AtomicBool>,
) -> Result<Table, RunError> {
    let deadline = Instant::now() + statement.limits.timeout;
    let (mut files, is_over) = TemporaryFiles::new();
    let (memory, is_full) = MemoryLimit::new(statement.limits.memory);
    let previous = {
        let mut handle = connection.lock_handle().await?;
        handle.set_progress_handler(STEP, move || {
            let is_wanted = !stop.load(Ordering::Relaxed) && Instant::now() < deadline;
            is_wanted && files.has_room() && memory.has_room()
        });
        restrict(&mut handle, statement.access, &statement.limits)
    };
    let table = fetch_rows(connection, statement).await;
    let mut handle = connection.lock_handle().await?;
    handle.remove_progress_handler();
    release(&mut handle, previous);
    if is_full.load(Ordering::Relaxed) {
        return table.map_err(|_| SqlError::Memory(statement.limits.memory).into());
    }
    if is_over.load(Ordering::Relaxed) { table.map_err(|_| limit_error().into()) } else { table }
}

async fn fetch_rows(
    connection: &mut SqliteConnection,
    statement: &Statement,
) -> Result<Table, RunError> {
    let sql = AssertSqlSafe(statement.sql.as_str()).into_sql_str();
    let prepared = connection.prepare(sql.clone()).await?;
    let wanted = match prepared.parameters() {
        Some(Either::Right(wanted)) => wanted,
        _ => 0,
    };
    let given = statement.parameters.len();
    if wanted != given {
        return Err(SqlError::Parameters { wanted, given }.into());
    }
    if statement.access == Access::Read && prepared.columns().is_empty() {
        return Err(SqlError::ReadOnly(NO_QUERY.to_owned()).into());
    }
    let mut table = TableBuilder::new(columns(prepared.columns()), statement.limits);
    let query = statement.parameters.iter().fold(sqlx::query(sql), bind).persistent(false);
    let mut steps = connection.fetch_many(query);
    let mut ended = false;
    while let Some(step) = steps.try_next().await? {
        match step {
            _ if ended => return Err(not_one_statement()),
            Either::Left(done) => {
                ended = true;
                table.add_affected(done.rows_affected());
            }
            Either::Right(row) if table.wants_more() => {
                let values = values(&row, &mut table)?;
                table.add_row(values);
            }
            Either::Right(_) => return Ok(table.finish()),
        }
    }
    if ended { Ok(table.finish()) } else { Err(not_one_statement()) }
}

fn not_one_statement() -> RunError {
    SqlError::Failed("expected exactly one statement".to_owned()).into()
}

fn bind<'q>(
    query: Query<'q, sqlx::Sqlite, SqliteArguments>,
    value: &Value,
) -> Query<'q, sqlx::Sqlite, SqliteArguments> {
    match value {
        Value::Null => query.bind(None::<i64>),
        Value::Bool(it) => query.bind(*it),
        Value::Number(it) => match (it.as_i64(), it.as_f64()) {
            (Some(it), _) => query.bind(it),
            (None, it) => query.bind(it),
        },
        Value::String(it) => query.bind(it.clone()),
        Value::Array(_) | Value::Object(_) => query.bind(value.to_string()),
    }
}

fn columns(columns: &[SqliteColumn]) -> Vec<Column> {
    columns
        .iter()
        .map(|it: &SqliteColumn| Column {
            name: it.name().to_owned(),
            kind: if it.type_info().is_null() {
                "any".to_owned()
            } else {
                it.type_info().name().to_lowercase()
            },
        })
        .collect()
}

/// Returns the values of a row, each by its own type: a column of SQLite does not guarantee one.
fn values(row: &SqliteRow, table: &mut TableBuilder) -> Result<Vec<Value>, sqlx::Error> {
    (0..row.len())
        .map(|at: usize| {
            let value = row.try_get_raw(at)?;
            if value.is_null() {
                return Ok(Value::Null);
            }
            Ok(match value.type_info().name() {
                "INTEGER" => row.try_get_unchecked::<i64, _>(at)?.into(),
                "REAL" => to_number(row.try_get_unchecked(at)?),
                "BLOB" => table.bytes(row.try_get_unchecked(at)?),
                _ => table.text(&String::from_utf8_lossy(row.try_get_unchecked(at)?)),
            })
        })
        .collect()
}

/// Returns a number, as a word if JSON cannot represent it.
fn to_number(number: f64) -> Value {
    match number {
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        number => number.into(),
    }
}

fn to_sql_error(error: &sqlx::Error, access: Access, limits: &SqlLimits) -> SqlError {
    let sqlx::Error::Database(error) = error else { return SqlError::unreachable(error) };
    let code: i32 = error.code().and_then(|it| it.parse().ok()).unwrap_or(0);
    let message = error.message().to_owned();
    // The lowest byte of an extended code is the primary code.
    match code & 0xff {
        libsqlite3_sys::SQLITE_INTERRUPT => SqlError::TimedOut(limits.timeout),
        libsqlite3_sys::SQLITE_NOMEM => SqlError::Memory(limits.memory),
        libsqlite3_sys::SQLITE_AUTH | libsqlite3_sys::SQLITE_READONLY => match access {
            Access::Read => SqlError::ReadOnly(message),
            Access::Write => SqlError::Refused(message),
        },
        // A refused function has the generic error code.
        _ if message.starts_with("not authorized") => SqlError::Refused(message),
        libsqlite3_sys::SQLITE_CANTOPEN | libsqlite3_sys::SQLITE_NOTADB => {
            SqlError::Unreachable(message)
        }
        _ => SqlError::Failed(message),
    }
}
