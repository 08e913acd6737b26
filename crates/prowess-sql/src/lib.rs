//! One bounded SQL statement on SQLite, PostgreSQL, MySQL or MariaDB, read-only unless the host
//! allows writing.
//!
//! ```
//! use prowess_sql::{Access, Privileges, SqlLimits, Statement};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), prowess_sql::SqlError> {
//! let database = prowess_sql::open("sqlite::memory:", Access::Read, Privileges::Limited)?;
//! let table = database
//!     .run(Statement {
//!         parameters: vec!["hello".into()],
//!         limits: SqlLimits { rows: 10, ..SqlLimits::default() },
//!         ..Statement::new("SELECT ? || '!' AS greeting")
//!     })
//!     .await?;
//! assert_eq!(table.columns[0].name, "greeting");
//! assert_eq!(table.rows, [["hello!"]]);
//! # Ok(())
//! # }
//! ```
//!
//! A statement runs in a transaction of its own, with limits of time and size. Whether it writes is
//! never inferred from its text: the database itself refuses it. A host can pass in a pool or a
//! single connection.
//!
//! A `tokio` runtime is required. Migrations, several statements at once and mapping rows to types
//! are not in this crate.
#![warn(missing_docs)]

mod database;
mod task;
mod connections;
mod table;
mod authorizer;
mod temporary;
mod memory;
mod functions;
mod sqlite;
mod postgres;
mod mysql;
mod open;

pub use crate::{
    connections::{Connections, SingleConnection},
    database::{Access, Column, Database, Privileges, SqlError, SqlLimits, Statement, Table},
    memory::limit_sqlite_memory,
    mysql::MySqlDatabase,
    open::open,
    postgres::PostgresDatabase,
    sqlite::SqliteDatabase,
};
