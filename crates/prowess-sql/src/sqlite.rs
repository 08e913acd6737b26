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
    authorizer::{hold, is_in_transaction, release},
    connections::{Connections, take},
    database::{Access, Column, Database, NO_QUERY, SqlError, Statement, Table},
    memory::Memory,
    table::TableBuilder,
    task::{Deadline, spawn},
    temporary::{TemporaryFiles, too_much},
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
        Box::pin(spawn(statement, move |mut statement, mut deadline| async move {
            match connections {
                Connections::Pool(pool) => {
                    let connection = pool.acquire().await;
                    let mut connection = connection.map_err(|it| failed(it, &statement))?;
                    stoppable(&mut connection, &statement, deadline).await
                }
                Connections::Single(single) => {
                    let (mut place, mut connection) =
                        take(single, &mut statement, &mut deadline).await?;
                    let table = stoppable(&mut connection, &statement, deadline).await;
                    *place = Some(connection);
                    table
                }
            }
        }))
    }
}

async fn stoppable(
    connection: &mut SqliteConnection,
    statement: &Statement,
    mut deadline: Deadline,
) -> Result<Table, SqlError> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut answer = pin!(ask(connection, statement, stop.clone()));
    tokio::select! {
        table = &mut answer => table,
        _ = deadline.wait() => {
            // The connection may contain a database in memory, so it is not discarded.
            stop.store(true, Ordering::Relaxed);
            answer.await
        }
    }
}

async fn ask(
    connection: &mut SqliteConnection,
    statement: &Statement,
    stop: Arc<AtomicBool>,
) -> Result<Table, SqlError> {
    let failed = |error| failed(error, statement);
    if is_in_transaction(&mut connection.lock_handle().await.map_err(failed)?) {
        return Err(SqlError::InTransaction);
    }
    if statement.access == Access::Read {
        let before: bool = sqlx::query_scalar("PRAGMA query_only")
            .fetch_one(&mut *connection)
            .await
            .map_err(failed)?;
        connection.execute("PRAGMA query_only = 1").await.map_err(failed)?;
        let table = held(connection, statement, stop).await;
        if !before {
            connection.execute("PRAGMA query_only = 0").await.map_err(failed)?;
        }
        return table;
    }
    let mut transaction = connection.begin().await.map_err(failed)?;
    let table = held(&mut transaction, statement, stop).await;
    match table.is_ok() {
        true => transaction.commit().await.map_err(failed)?,
        false => transaction.rollback().await.map_err(failed)?,
    }
    table
}

/// Runs a statement on a connection that is restricted meanwhile.
async fn held(
    connection: &mut SqliteConnection,
    statement: &Statement,
    stop: Arc<AtomicBool>,
) -> Result<Table, SqlError> {
    let failed = |error| failed(error, statement);
    let deadline = Instant::now() + statement.limits.timeout;
    let (mut temporary, is_over) = TemporaryFiles::new();
    let (memory, is_full) = Memory::new(statement.limits.memory);
    let held = {
        let mut handle = connection.lock_handle().await.map_err(failed)?;
        handle.set_progress_handler(STEP, move || {
            let is_wanted = !stop.load(Ordering::Relaxed) && Instant::now() < deadline;
            is_wanted && temporary.is_left() && memory.is_left()
        });
        hold(&mut handle, statement.access, &statement.limits)
    };
    let table = rows(connection, statement).await;
    let mut handle = connection.lock_handle().await.map_err(failed)?;
    handle.remove_progress_handler();
    release(&mut handle, held);
    if is_full.load(Ordering::Relaxed) {
        return table.map_err(|_| SqlError::Memory(statement.limits.memory));
    }
    if is_over.load(Ordering::Relaxed) { table.map_err(|_| too_much()) } else { table }
}

async fn rows(connection: &mut SqliteConnection, statement: &Statement) -> Result<Table, SqlError> {
    let failed = |error| failed(error, statement);
    let sql = AssertSqlSafe(statement.sql.as_str()).into_sql_str();
    let prepared = connection.prepare(sql.clone()).await.map_err(failed)?;
    let wanted = match prepared.parameters() {
        Some(Either::Right(wanted)) => wanted,
        _ => 0,
    };
    let given = statement.parameters.len();
    if wanted != given {
        return Err(SqlError::Parameters { wanted, given });
    }
    if statement.access == Access::Read && prepared.columns().is_empty() {
        return Err(SqlError::ReadOnly(NO_QUERY.to_owned()));
    }
    let mut collect = TableBuilder::new(columns(prepared.columns()), statement.limits);
    let query = statement.parameters.iter().fold(sqlx::query(sql), bind).persistent(false);
    let mut steps = connection.fetch_many(query);
    let mut ended = false;
    while let Some(step) = steps.try_next().await.map_err(failed)? {
        match step {
            _ if ended => return Err(not_one()),
            Either::Left(done) => {
                ended = true;
                collect.affected(done.rows_affected());
            }
            Either::Right(row) if collect.wants_more() => {
                let values = values(&row, &mut collect).map_err(failed)?;
                collect.row(values);
            }
            Either::Right(_) => return Ok(collect.table()),
        }
    }
    if ended { Ok(collect.table()) } else { Err(not_one()) }
}

fn not_one() -> SqlError {
    SqlError::Failed("it is not one statement".to_owned())
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
fn values(row: &SqliteRow, collect: &mut TableBuilder) -> Result<Vec<Value>, sqlx::Error> {
    (0..row.len())
        .map(|at: usize| {
            let value = row.try_get_raw(at)?;
            if value.is_null() {
                return Ok(Value::Null);
            }
            Ok(match value.type_info().name() {
                "INTEGER" => row.try_get_unchecked::<i64, _>(at)?.into(),
                "REAL" => number(row.try_get_unchecked(at)?),
                "BLOB" => collect.bytes(row.try_get_unchecked(at)?),
                _ => collect.text(&String::from_utf8_lossy(row.try_get_unchecked(at)?)),
            })
        })
        .collect()
}

/// Returns a number, as a word if JSON cannot represent it.
fn number(number: f64) -> Value {
    match number {
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        number => number.into(),
    }
}

fn failed(error: sqlx::Error, statement: &Statement) -> SqlError {
    let sqlx::Error::Database(error) = &error else {
        return SqlError::unreachable(&error);
    };
    let code: i32 = error.code().and_then(|it| it.parse().ok()).unwrap_or(0);
    let message = error.message().to_owned();
    // The lowest byte of an extended code is the primary code.
    match code & 0xff {
        libsqlite3_sys::SQLITE_INTERRUPT => SqlError::TimedOut(statement.limits.timeout),
        libsqlite3_sys::SQLITE_NOMEM => SqlError::Memory(statement.limits.memory),
        libsqlite3_sys::SQLITE_AUTH | libsqlite3_sys::SQLITE_READONLY => match statement.access {
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
