//! Where connections come from: a pool, or one connection on which statements take turns.

use std::{fmt, sync::Arc};

use sqlx::Pool;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::{
    database::{SqlError, Statement, Table},
    task::Deadline,
};

/// One connection of the host.
///
/// A statement has it for itself; whoever else wants it waits, the host by locking it. It is left as
/// it was: with its settings, and outside of a transaction. Therefore nothing runs while the host has
/// left a transaction open on it, nor what could keep something of the session, such as a lock, a
/// setting or a table that is created on a server. A server is told beforehand how long a statement
/// may take, and nobody else can stop it: one that nobody waits for any more keeps the connection
/// until its time is over.
///
/// It is `None` from then on when a statement could not be ended or cleared away.
pub type SingleConnection<C> = Arc<Mutex<Option<C>>>;

/// A source of connections.
pub enum Connections<D: sqlx::Database> {
    /// A pool. A connection to a server on which a statement ran is closed, not given back: locks,
    /// settings and whatever else a session keeps end with it.
    Pool(Pool<D>),
    /// One connection.
    Single(SingleConnection<D::Connection>),
}

impl<D: sqlx::Database> Clone for Connections<D> {
    fn clone(&self) -> Self {
        match self {
            Self::Pool(pool) => Self::Pool(pool.clone()),
            Self::Single(single) => Self::Single(single.clone()),
        }
    }
}

impl<D: sqlx::Database> fmt::Debug for Connections<D> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool(pool) => out.debug_tuple("Pool").field(pool).finish(),
            Self::Single(_) => out.debug_tuple("Single").finish_non_exhaustive(),
        }
    }
}

/// The result of a statement, and whether the connection is as it was before.
pub(crate) struct Turn {
    pub(crate) table: Result<Table, SqlError>,
    pub(crate) is_clear: bool,
}

/// Takes the connection out of its place, and from the time of the statement what it waited.
///
/// It is put back when it is clear; so whatever ends a statement in its middle leaves none.
pub(crate) async fn take<C>(
    single: SingleConnection<C>,
    statement: &mut Statement,
    deadline: &mut Deadline,
) -> Result<(OwnedMutexGuard<Option<C>>, C), SqlError> {
    let mut place = tokio::select! {
        place = single.lock_owned() => place,
        error = deadline.wait() => return Err(error),
    };
    statement.limits.timeout = deadline.left()?;
    let connection = place.take().ok_or(SqlError::Lost)?;
    Ok((place, connection))
}
