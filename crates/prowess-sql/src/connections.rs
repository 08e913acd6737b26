//! The source of connections: a pool, or a single connection on which statements take turns.

use std::{fmt, sync::Arc};

use sqlx::Pool;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::{
    database::{RunError, SqlError, Statement, Table},
    task::Deadline,
};

/// A single connection of the host.
///
/// A statement uses it exclusively; others wait for the lock, and so does the host. It is left as
/// it was: with its settings, and outside of a transaction. Therefore nothing runs while the host
/// has left a transaction open on it, nor anything that could leave session state behind, such as a
/// lock, a setting or a table that is created on a server. The timeout is set on the server
/// beforehand, and nothing else can stop it: an abandoned statement keeps the connection until then.
///
/// It becomes `None` if a statement could not be ended or cleaned up.
pub type SingleConnection<C> = Arc<Mutex<Option<C>>>;

/// A source of connections.
pub enum Connections<D: sqlx::Database> {
    /// A pool. A connection to a server on which a statement ran is closed, not returned: locks,
    /// settings and all other session state end with it.
    Pool(Pool<D>),
    /// A single connection.
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

/// The result of a statement on a connection of the host, and whether that was restored.
pub(crate) struct SharedRun {
    pub(crate) table: Result<Table, RunError>,
    pub(crate) is_restored: bool,
}

/// Takes the connection out of its slot, and subtracts the waiting time from that of the statement.
///
/// It is put back after it is restored; so a statement that is aborted in the middle leaves the
/// slot empty.
pub(crate) async fn take_connection<C>(
    single: SingleConnection<C>,
    statement: &mut Statement,
    deadline: &mut Deadline,
) -> Result<(OwnedMutexGuard<Option<C>>, C), SqlError> {
    let mut slot = tokio::select! {
        slot = single.lock_owned() => slot,
        error = deadline.wait() => return Err(error),
    };
    statement.limits.timeout = deadline.remaining()?;
    let connection = slot.take().ok_or(SqlError::Lost)?;
    Ok((slot, connection))
}
