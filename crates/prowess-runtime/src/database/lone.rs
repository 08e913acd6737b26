//! Where connections come from: a pool, or one connection on which statements take turns.

use std::{fmt, sync::Arc};

use sqlx::Pool;
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{DatabaseError, Statement, Table, apart::Over};

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
pub type Lone<C> = Arc<Mutex<Option<C>>>;

/// Where connections come from.
pub enum Connections<D: sqlx::Database> {
    /// A pool. A connection to a server on which a statement ran is closed, not given back: locks,
    /// settings and whatever else a session keeps end with it.
    Pool(Pool<D>),
    /// One connection.
    Lone(Lone<D::Connection>),
}

impl<D: sqlx::Database> Clone for Connections<D> {
    fn clone(&self) -> Self {
        match self {
            Self::Pool(pool) => Self::Pool(pool.clone()),
            Self::Lone(lone) => Self::Lone(lone.clone()),
        }
    }
}

impl<D: sqlx::Database> fmt::Debug for Connections<D> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool(pool) => out.debug_tuple("Pool").field(pool).finish(),
            Self::Lone(_) => out.debug_tuple("Lone").finish_non_exhaustive(),
        }
    }
}

/// What came of a statement, and whether nothing of it is left on the connection.
pub(super) struct Turn {
    pub(super) table: Result<Table, DatabaseError>,
    pub(super) is_clear: bool,
}

/// Takes the connection out of its place, and from the time of the statement what it waited.
///
/// It is put back when it is clear; so whatever ends a statement in its middle leaves none.
pub(super) async fn take<C>(
    lone: Lone<C>,
    statement: &mut Statement,
    over: &mut Over,
) -> Result<(OwnedMutexGuard<Option<C>>, C), DatabaseError> {
    let mut place = tokio::select! {
        place = lone.lock_owned() => place,
        over = over.wait() => return Err(over),
    };
    statement.bounds.timeout = over.left()?;
    let connection = place.take().ok_or(DatabaseError::Lost)?;
    Ok((place, connection))
}
