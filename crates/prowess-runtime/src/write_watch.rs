//! Watches protected files where a server can write: changes are reported, and can be undone.
//!
//! A server runs as long as a session, while its user keeps working: the author of a change is
//! unknown, so nothing is restored without being asked for.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use prowess::visible;
use tokio::task::spawn_blocking;

use crate::{
    change_history::ChangeHistory,
    commands::{ProtectedChange, ProtectedFiles},
    repository,
};

/// Reports changes of protected files where a server can write.
#[derive(Debug, Clone)]
pub struct WriteWatch {
    files: Arc<Mutex<ProtectedFiles>>,
    history: Option<ChangeHistory>,
}

/// The maximum number of named files.
const NAMED: usize = 5;
/// The maximum number of files saved for `undo` at a time, of existing and of new ones: the history
/// is shared with all changes by people and tools.
const MAX_SAVED_LOSSES: usize = 100;
const MAX_SAVED_NEW: usize = 20;

impl WriteWatch {
    /// Notes the state of these files now. `None` if nothing can be written.
    pub fn new(writes: &[PathBuf], history: Option<ChangeHistory>) -> Option<Self> {
        let writes: BTreeSet<PathBuf> =
            writes.iter().filter_map(|it| prowess::real_path(it).ok()).collect();
        let tops: Vec<PathBuf> = writes
            .iter()
            .filter(|it: &&PathBuf| !it.ancestors().skip(1).any(|above| writes.contains(above)))
            .cloned()
            .collect();
        let above: BTreeSet<&Path> = tops.iter().flat_map(|it| it.ancestors()).collect();
        let named = above.into_iter().flat_map(repository::named_by_settings).collect();
        (!tops.is_empty()).then(|| {
            let files = ProtectedFiles::new(tops, named);
            Self { files: Arc::new(Mutex::new(files)), history }
        })
    }

    /// Describes the changes since the last report.
    pub async fn report(&self, server: &str) -> Option<String> {
        let (own, server) = (self.clone(), server.to_owned());
        spawn_blocking(move || own.describe_changes(&server)).await.ok().flatten()
    }

    fn describe_changes(&self, server: &str) -> Option<String> {
        let mut changes = self.files.lock().unwrap_or_else(PoisonError::into_inner).changes();
        if changes.is_empty() {
            return None;
        }
        // Existing files come first: only these can be lost.
        changes.sort_by_key(|it| !it.is_loss());
        let named = changes.iter().take(NAMED).map(|it| {
            let shown = |it: &Path| visible(&it.to_string_lossy()).replace('`', "'");
            let by = it.link.as_ref().map(|it| format!(", linked from `{}`", shown(it)));
            format!("`{}` ({}{})", shown(&it.path), it.what, by.unwrap_or_default())
        });
        let more = changes.len().saturating_sub(NAMED);
        let named: Vec<String> =
            named.chain((more > 0).then(|| format!("and {more} more"))).collect();
        let remedy = match self.save_for_undo(&changes) {
            Some((group, kept)) if kept == changes.len() => {
                format!("`prowess undo {group}` restores them")
            }
            Some((group, kept)) => {
                let all = changes.len();
                format!("`prowess undo {group}` restores {kept} of {all}; check the others")
            }
            None => "check each of them before other programs use it".to_owned(),
        };
        let named = named.join(", ");
        Some(format!(
            "files that agents, editors or git act on have changed where the server `{server}` can write: {named}; {remedy}"
        ))
    }

    /// Saves them for `undo` as far as possible, and returns the ID of their group, and their
    /// number.
    fn save_for_undo(&self, changes: &[ProtectedChange]) -> Option<(String, usize)> {
        let history = self.history.clone()?.of_one_command();
        let (losses, new): (Vec<_>, Vec<_>) = changes.iter().partition(|it| it.is_loss());
        let some =
            losses.into_iter().take(MAX_SAVED_LOSSES).chain(new.into_iter().take(MAX_SAVED_NEW));
        let kept = some.filter_map(|it| it.save(&history)).count();
        let group = history.group().filter(|_| kept > 0)?;
        Some((group.to_owned(), kept))
    }
}
