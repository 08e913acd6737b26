//! A database that statements run on: one at a time, within bounds, and reading alone unless
//! somebody lets them write.
//!
//! Whether a statement writes is never read off its text: each implementation has the database
//! itself refuse it.

mod apart;
mod lone;
mod collect;
mod hold;
mod temporary;
mod memory;
mod functions;
mod sqlite;
mod postgres;
mod mysql;

use std::{fmt, pin::Pin, str::FromStr as _, sync::Arc, time::Duration};

use serde::Serialize;
use serde_json::Value;
use sqlx::{
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
    pool::PoolOptions,
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};

pub use self::{
    lone::{Connections, Lone},
    memory::limit_sqlite_memory,
    mysql::MySqlDatabase,
    postgres::PostgresDatabase,
    sqlite::SqliteDatabase,
};

/// What a statement comes to, once it is waited for.
pub type Asked<'a> = Pin<Box<dyn Future<Output = Result<Table, DatabaseError>> + Send + 'a>>;

/// A database that statements run on.
///
/// An implementation runs exactly one statement, binds its parameters, takes no more rows than the
/// bounds allow, and has stopped the statement soon after its time is over or its answer is dropped.
/// With [`Access::Read`] the database refuses whatever would change it.
pub trait Database: Send + Sync + fmt::Debug {
    /// Whose SQL it speaks, and how parameters are written in it.
    fn dialect(&self) -> &'static str;

    /// Runs one statement.
    fn ask(&self, statement: Statement) -> Asked<'_>;
}

/// One statement, and how far it may go.
#[derive(Debug, Clone)]
pub struct Statement {
    /// The statement, as the database takes it.
    pub sql: String,
    /// What is bound to its placeholders, in order.
    pub parameters: Vec<Value>,
    /// What it may do.
    pub access: Access,
    /// How long and how much it may take.
    pub bounds: Bounds,
}

/// What a statement may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It reads.
    Read,
    /// It reads and writes; what it did is kept when it comes to its end.
    Write,
}

/// Who may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Users {
    /// Those who can be held back; a superuser where it only reads.
    Ordinary,
    /// Everybody, with all rights that they have.
    All,
}

/// How long and how much a statement may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// From its start to its end.
    pub timeout: Duration,
    /// Rows that are taken.
    pub rows: usize,
    /// Bytes of one value that are taken.
    pub cell: usize,
    /// Bytes of all values together.
    pub total: usize,
    /// Bytes of memory, where the database runs in this process.
    pub memory: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            timeout: Duration::from_secs(30),
            rows: 1000,
            cell: 64 * 1024,
            total: MIB,
            memory: 1024 * MIB as u64,
        }
    }
}

impl Bounds {
    /// How many rows a server is asked for: one more tells that there are more.
    fn rows_asked(&self) -> usize {
        self.rows.saturating_add(1).min(LARGEST)
    }
}

/// What a statement came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// The columns, in order; two may have one name.
    pub columns: Vec<Column>,
    /// The rows, each with a value a column.
    pub rows: Vec<Vec<Value>>,
    /// How many rows a statement changed that gives none.
    pub rows_affected: Option<u64>,
    /// What was left out.
    pub left_out: Vec<String>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Its name, as the statement gives it.
    pub name: String,
    /// Its type, as the database calls it.
    #[serde(rename = "type")]
    pub kind: String,
}

/// A statement came to nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// The address of the database is none.
    #[error("the address of the database cannot be used: {0}")]
    Address(String),
    /// The database could not be reached.
    #[error("cannot reach the database: {0}")]
    Unreachable(String),
    /// Whoever the connection belongs to may do more than a transaction can hold back.
    #[error("`{user}` is no ordinary user of the database: {may}")]
    Privileged {
        /// The user.
        user: String,
        /// What it may do.
        may: String,
    },
    /// It does more than read, and may not.
    #[error("only what reads may run here: {0}")]
    ReadOnly(String),
    /// The database refused it.
    #[error("the database refused it: {0}")]
    Refused(String),
    /// It could leave something behind on a connection of the host.
    #[error("it could leave something behind on the connection: {0}")]
    Leaving(String),
    /// The host has a transaction open on its connection.
    #[error("the connection is in a transaction already")]
    InTransaction,
    /// There is no connection any more.
    #[error("the connection was given up, because a statement on it could not be cleared away")]
    Lost,
    /// There are more or fewer parameters than placeholders.
    #[error("it takes {wanted} parameters and was given {given}")]
    Parameters {
        /// How many placeholders there are.
        wanted: usize,
        /// How many parameters there are.
        given: usize,
    },
    /// The database could not run it.
    #[error("{0}")]
    Failed(String),
    /// Its time was over.
    #[error("it was stopped after {} ms", .0.as_millis())]
    TimedOut(Duration),
}

impl DatabaseError {
    fn unreachable(error: &sqlx::Error) -> Self {
        match error {
            sqlx::Error::PoolTimedOut => Self::Unreachable("it does not answer".to_owned()),
            _ => Self::Unreachable(error.to_string()),
        }
    }
}

/// Whether two letters are one to a server. To some a letter is the same with and without an accent,
/// so one that is Latin and not ASCII may be any letter.
fn is_same((one, other): (char, char)) -> bool {
    one.eq_ignore_ascii_case(&other) || matches!(one, 'À'..='ɏ' | 'Ḁ'..='ỿ')
}

/// What is said of a statement that the database itself takes for something else than a query.
const NO_QUERY: &str = "the database says that it is no query";

/// What is said of a statement that changes something else than rows.
const NO_ROWS: &str = "only rows are read and written on it";

/// The longest statement, in bytes.
const LONGEST: usize = 100_000;

/// The largest number that every server takes.
const LARGEST: usize = i32::MAX as usize;

/// How long a connection may take to come about.
const CONNECTING: Duration = Duration::from_secs(5);

/// Gets ready to use the database at an address such as `sqlite:notes.db`. Nothing is opened before
/// the first statement; a SQLite file is then opened for reading alone unless `access` says more.
pub fn database(
    address: &str,
    access: Access,
    users: Users,
) -> Result<Arc<dyn Database>, DatabaseError> {
    // What sqlx says about an address names the part that is wrong, never the password.
    let wrong = |error: sqlx::Error| {
        let message = error.to_string();
        DatabaseError::Address(message.trim_start_matches("error with configuration: ").to_owned())
    };
    Ok(match address.split_once(':').map_or("", |it| it.0) {
        "sqlite" => {
            let options = SqliteConnectOptions::from_str(address).map_err(wrong)?;
            let options = options.create_if_missing(false).read_only(access == Access::Read);
            // A row is a copy of all its values; few of them wait at once.
            let options = options.row_buffer_size(1);
            let pool = lazy(SqlitePoolOptions::new()).after_connect(|connection, _| {
                Box::pin(async move {
                    functions::replace(&mut connection.lock_handle().await?);
                    Ok(())
                })
            });
            let pool = pool.connect_lazy_with(options);
            Arc::new(SqliteDatabase { connections: Connections::Pool(pool) })
        }
        "postgres" | "postgresql" => {
            let options = PgConnectOptions::from_str(address).map_err(wrong)?;
            let pool = lazy(PgPoolOptions::new()).connect_lazy_with(options);
            Arc::new(PostgresDatabase { connections: Connections::Pool(pool), users })
        }
        "mysql" | "mariadb" => {
            let options = MySqlConnectOptions::from_str(address).map_err(wrong)?;
            let pool = lazy(MySqlPoolOptions::new()).connect_lazy_with(options);
            Arc::new(MySqlDatabase { connections: Connections::Pool(pool), users })
        }
        _ => {
            let known = "it does not begin with `sqlite:`, `postgres:` or `mysql:`";
            return Err(DatabaseError::Address(known.to_owned()));
        }
    })
}

/// Options of a pool that does nothing by itself, so that it can be made anywhere.
fn lazy<D: sqlx::Database>(options: PoolOptions<D>) -> PoolOptions<D> {
    options.acquire_timeout(CONNECTING).idle_timeout(None).max_lifetime(None)
}
