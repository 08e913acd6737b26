//! The interface of all databases: statements, limits, tables and errors.

use std::{fmt, time::Duration};

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;

/// A database that runs statements.
///
/// An implementation runs exactly one statement, binds its parameters, returns no more rows than
/// the limits allow, and stops the statement soon after its timeout or after its future is dropped.
/// With [`Access::Read`] the database itself refuses every change.
pub trait Database: Send + Sync + fmt::Debug {
    /// The SQL dialect and its placeholders, such as ``SQLite, with parameters as `?` ``.
    fn dialect(&self) -> &'static str;

    /// Runs one statement.
    fn run(&self, statement: Statement) -> BoxFuture<'_, Result<Table, SqlError>>;
}

/// One statement, with its rights and limits.
#[derive(Debug, Clone)]
pub struct Statement {
    /// The text, in the dialect of the database.
    pub sql: String,
    /// The values of its placeholders, in order.
    pub parameters: Vec<Value>,
    /// Whether it may write.
    pub access: Access,
    /// Its limits of time and size.
    pub limits: SqlLimits,
}

impl Statement {
    /// Creates a statement without parameters that only reads, within the default limits.
    pub fn new(sql: impl Into<String>) -> Self {
        Self {
            sql: sql.into(),
            parameters: Vec::new(),
            access: Access::Read,
            limits: SqlLimits::default(),
        }
    }
}

/// Whether a statement may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It only reads.
    Read,
    /// It reads and writes; its changes are committed when it succeeds.
    Write,
}

/// The users of a database server whose statements are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privileges {
    /// Those without rights over the whole server. A superuser only reads, without its other rights.
    Limited,
    /// All users, with all of their rights.
    All,
}

/// Limits of one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SqlLimits {
    /// The time from its start to its end.
    pub timeout: Duration,
    /// The maximum number of rows returned.
    pub rows: usize,
    /// The maximum size of a returned value in bytes.
    pub cell: usize,
    /// The maximum size of all values together in bytes.
    pub total: usize,
    /// The maximum memory in bytes, if the database runs in this process.
    pub memory: u64,
}

impl Default for SqlLimits {
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

impl SqlLimits {
    /// Returns the number of rows to request from a server: one more shows that there are more.
    pub(crate) fn rows_asked(&self) -> usize {
        self.rows.saturating_add(1).min(LARGEST)
    }
}

/// The result of a statement.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Table {
    /// The columns, in order. Two may have the same name.
    pub columns: Vec<Column>,
    /// The rows, each with one value per column.
    pub rows: Vec<Vec<Value>>,
    /// The number of changed rows, if the statement returns none.
    pub rows_affected: Option<u64>,
    /// A description of each omission, such as rows over the limit.
    pub left_out: Vec<String>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Column {
    /// Its name, as the statement gives it.
    pub name: String,
    /// Its type, as the database calls it.
    #[serde(rename = "type")]
    pub kind: String,
}

/// A statement was not run, or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// The address of the database is not valid.
    #[error("invalid database address: {0}")]
    Address(String),
    /// The database could not be reached.
    #[error("cannot reach the database: {0}")]
    Unreachable(String),
    /// The user of the connection has rights that a transaction cannot restrict.
    #[error("`{user}` is a privileged database user: {may}")]
    Privileged {
        /// The user.
        user: String,
        /// The rights, in words.
        may: String,
    },
    /// The statement would write, and may not.
    #[error("only statements that read are allowed: {0}")]
    ReadOnly(String),
    /// The database refused the statement, or it is not allowed.
    #[error("the database refused the statement: {0}")]
    Refused(String),
    /// The statement could leave something behind on a connection of the host.
    #[error("the statement would change the connection: {0}")]
    SessionState(String),
    /// The host has a transaction open on its connection.
    #[error("the connection is already in a transaction")]
    InTransaction,
    /// The connection was discarded after an earlier statement.
    #[error("the connection was closed, because it could not be restored after a statement")]
    Lost,
    /// There are more or fewer parameters than placeholders.
    #[error("expected {wanted} parameters, got {given}")]
    Parameters {
        /// The number of placeholders.
        wanted: usize,
        /// The number of parameters.
        given: usize,
    },
    /// The database could not run the statement.
    #[error("{0}")]
    Failed(String),
    /// It needs more memory than [`SqlLimits::memory`].
    #[error("the statement needs more than {} MiB of memory: collect, group or join fewer rows", .0 / (1024 * 1024))]
    Memory(u64),
    /// The timeout expired.
    #[error("the statement timed out after {} ms", .0.as_millis())]
    TimedOut(Duration),
}

impl SqlError {
    pub(crate) fn unreachable(error: &sqlx::Error) -> Self {
        match error {
            sqlx::Error::PoolTimedOut => Self::Unreachable("it does not respond".to_owned()),
            _ => Self::Unreachable(error.to_string()),
        }
    }
}

/// The error of a statement, before that of a driver is explained.
#[derive(Debug)]
pub(crate) enum RunError {
    Sql(SqlError),
    Driver(sqlx::Error),
}

impl RunError {
    /// Converts the error of a driver.
    pub(crate) fn explain(self, explain: impl FnOnce(sqlx::Error) -> SqlError) -> SqlError {
        match self {
            Self::Sql(error) => error,
            Self::Driver(error) => explain(error),
        }
    }
}

impl From<SqlError> for RunError {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

impl From<sqlx::Error> for RunError {
    fn from(error: sqlx::Error) -> Self {
        Self::Driver(error)
    }
}

/// Whether a server may treat two letters as equal. Some ignore accents, so a Latin letter that is
/// not ASCII may equal any letter.
pub(crate) fn is_same((one, other): (char, char)) -> bool {
    one.eq_ignore_ascii_case(&other) || matches!(one, 'À'..='ɏ' | 'Ḁ'..='ỿ')
}

/// The message about a statement that the database does not take for a query.
pub(crate) const NO_QUERY: &str = "it is not a query";

/// The message about a statement that changes something else than rows.
pub(crate) const NO_ROWS: &str = "it does not only read or change rows";

/// The maximum length of a statement in bytes.
pub(crate) const LONGEST: usize = 100_000;

/// The largest number that every server accepts.
pub(crate) const LARGEST: usize = i32::MAX as usize;
