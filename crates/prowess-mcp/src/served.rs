//! What is served: the skills and tools of one process, to any number of clients at once.

use std::sync::Arc;

use prowess::{Library, Vocabulary};
use prowess_runtime::{Provider, Toolbox};
use rmcp::ErrorData;

/// What is served.
#[derive(Debug)]
pub struct Served {
    /// Whoever has the skills; those that a policy conceals are not among them.
    pub provider: Arc<dyn Provider>,
    /// The tools that a client may call, however many skills there are.
    pub toolbox: Toolbox,
    /// How much is told, and what.
    pub telling: Telling,
}

/// How much clients are told, and what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Telling {
    /// How many tokens the instructions of the server may take.
    pub budget: usize,
    /// Whose tokens they are.
    pub vocabulary: Vocabulary,
    /// Whether clients are told where skills lie: only those on the same machine have use for it.
    pub folders: bool,
}

impl Served {
    /// The skills of this moment.
    pub(crate) fn library(&self) -> Arc<Library> {
        self.provider.library()
    }

    /// Does what reads files or takes long where it holds up nobody else.
    pub(crate) async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, ErrorData> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let served = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&served)).await;
        done.unwrap_or_else(|_| Err(ErrorData::internal_error("the server broke down at it", None)))
    }
}

impl Default for Telling {
    fn default() -> Self {
        Self { budget: 2000, vocabulary: Vocabulary::default(), folders: true }
    }
}
