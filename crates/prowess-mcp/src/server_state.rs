//! What is served: the skills and tools of one process, to any number of clients at once.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use prowess::{Library, Marker, Skill, Tokenizer};
use prowess_runtime::{SkillProvider, Toolbox, fresh_marker};
use rmcp::ErrorData;

use crate::instructions::instructions;

/// What is served.
#[derive(Debug)]
pub struct ServerState {
    /// Whoever has the skills; those that a policy conceals are not among them.
    pub(crate) provider: Arc<dyn SkillProvider>,
    /// The tools that a client may call, however many skills there are.
    pub(crate) toolbox: Toolbox,
    /// How much is told, and what.
    pub(crate) telling: ServeOptions,
    /// What stands around the texts of skills for as long as this is served. One revision of the protocol
    /// has no sessions, so that all clients have the same.
    pub(crate) marker: Marker,
    /// The last library, and what its instructions are.
    instructions: Mutex<Option<(Arc<Library>, Option<String>)>>,
}

/// How much clients are told, and what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeOptions {
    /// How many tokens the instructions of the server may take.
    pub budget: usize,
    /// Whose tokens they are.
    pub vocabulary: Tokenizer,
    /// Whether clients are told where skills lie: only those on the same machine have use for it.
    pub folders: bool,
    /// Whether skills are offered as prompts. Some frameworks make a tool of each.
    pub prompts: bool,
    /// Whether skills are offered as resources, and by the Skills extension, which reads them as such.
    pub resources: bool,
}

impl ServerState {
    /// Serves the skills of a provider that conceals those that a policy does, and the tools of a
    /// toolbox, which are as many however many skills there are.
    pub fn new(provider: Arc<dyn SkillProvider>, toolbox: Toolbox, telling: ServeOptions) -> Self {
        let (marker, instructions) = (fresh_marker(), Mutex::default());
        Self { provider, toolbox, telling, marker, instructions }
    }

    /// The skills of this moment.
    pub(crate) fn library(&self) -> Arc<Library> {
        self.provider.library()
    }

    /// The instructions of this moment. They are written once for each library, since every client
    /// begins with them.
    pub(crate) fn instructions(&self) -> Option<String> {
        let library = self.library();
        let mut last = self.instructions.lock().unwrap_or_else(PoisonError::into_inner);
        match last.as_ref() {
            Some((of, text)) if Arc::ptr_eq(of, &library) => text.clone(),
            _ => {
                let ServeOptions { budget, vocabulary, .. } = self.telling;
                let text = instructions(&library, budget, vocabulary, &self.marker);
                *last = Some((library, text.clone()));
                text
            }
        }
    }

    /// A text about a skill as clients may read it: where they are not told where skills lie, its
    /// paths begin at its folder.
    pub(crate) fn told(&self, skill: Option<&Skill>, text: String) -> String {
        match skill {
            Some(skill) if !self.telling.folders => without_folder(skill, text),
            _ => text,
        }
    }

    /// Does what reads files or takes long where it holds up nobody else.
    pub(crate) async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, ErrorData> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let served = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&served)).await;
        done.unwrap_or_else(|_| Err(ErrorData::internal_error("the server failed", None)))
    }
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            budget: 2000,
            vocabulary: Tokenizer::default(),
            folders: true,
            prompts: true,
            resources: true,
        }
    }
}

/// Takes the folder of a skill out of a text, as it is configured, as it is on disk, and as its links
/// lead.
fn without_folder(skill: &Skill, text: String) -> String {
    let absolute = skill.absolute_folder();
    let real = absolute.as_ref().and_then(|it| std::fs::canonicalize(it).ok());
    let folders = [real.as_deref(), absolute.as_deref(), Some(skill.folder())];
    let folders = folders.into_iter().flatten().filter(|it| it.is_absolute());
    folders.fold(text, |text, folder| without(&text, folder))
}

/// Writes paths below a folder as they are there, and the folder itself as `.`.
fn without(text: &str, folder: &Path) -> String {
    let folder = folder.to_string_lossy();
    let mut parts = text.split(&*folder);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.chars().next() {
            Some('/') => out.push_str(part.trim_start_matches('/')),
            // The name of another folder begins with that of this one.
            Some(c) if c.is_alphanumeric() || matches!(c, '-' | '_') => {
                out.push_str(&folder);
                out.push_str(part);
            }
            _ => {
                out.push('.');
                out.push_str(part);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_taken_out_of_a_text_and_another_is_not() {
        let text = "see /s/x/a.md, file:///s/x/b, `/s/x`, /s/x. and /s/x-2/c";
        let left = "see a.md, file://b, `.`, .. and /s/x-2/c";
        assert_eq!(without(text, Path::new("/s/x")), left);
    }
}
