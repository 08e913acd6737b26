//! The shared state of the server: the skills and tools of one process, for any number of clients.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use prowess::{Library, Marker, Skill, Tokenizer, lock};
use prowess_runtime::{SkillProvider, Toolbox, text::fresh_marker};
use rmcp::ErrorData;

use crate::server::instructions::instructions;

/// The shared state of the server.
#[derive(Debug)]
pub struct ServerState {
    /// The provider of skills; those that a policy conceals are not among them.
    pub(crate) provider: Arc<dyn SkillProvider>,
    /// The tools for clients, the same for any number of skills.
    pub(crate) toolbox: Toolbox,
    /// The options.
    pub(crate) options: ServeOptions,
    /// The marker around texts of skills, for the lifetime of the server. One revision of the
    /// protocol has no sessions, so all clients share it.
    pub(crate) marker: Marker,
    /// The last library, and its instructions.
    instructions: Mutex<Option<(Arc<Library>, Option<String>)>>,
}

/// Options for what clients are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeOptions {
    /// The maximum size of the server's instructions in tokens.
    pub budget: usize,
    /// The tokenizer that counts them.
    pub vocabulary: Tokenizer,
    /// Whether clients receive the paths of skills: only clients on the same machine can use them.
    pub folders: bool,
    /// Whether skills are offered as prompts. Some frameworks turn each prompt into a tool.
    pub prompts: bool,
    /// Whether skills are offered as resources, and by the Skills extension, which reads them as
    /// such.
    pub resources: bool,
}

impl ServerState {
    /// Serves the skills of a provider, which leaves out those that a policy conceals, and the
    /// tools of a toolbox, which are the same for any number of skills.
    pub fn new(provider: Arc<dyn SkillProvider>, toolbox: Toolbox, options: ServeOptions) -> Self {
        let (marker, instructions) = (fresh_marker(), Mutex::default());
        Self { provider, toolbox, options, marker, instructions }
    }

    /// Returns the current library.
    pub(crate) fn library(&self) -> Arc<Library> {
        self.provider.library()
    }

    /// Returns the current instructions. They are generated once per library, because every client
    /// begins with them.
    pub(crate) fn instructions(&self) -> Option<String> {
        let library = self.library();
        let mut last = lock(&self.instructions);
        match last.as_ref() {
            Some((of, text)) if Arc::ptr_eq(of, &library) => text.clone(),
            _ => {
                let ServeOptions { budget, vocabulary, .. } = self.options;
                let text = instructions(&library, budget, vocabulary, &self.marker);
                *last = Some((library, text.clone()));
                text
            }
        }
    }

    /// Returns a text about a skill as clients may read it: if they do not receive paths, those in
    /// it are relative to the skill's folder.
    pub(crate) fn hide_folder(&self, skill: Option<&Skill>, text: String) -> String {
        match skill {
            Some(skill) if !self.options.folders => without_folder(skill, text),
            _ => text,
        }
    }

    /// Runs blocking work, such as reading files, on a separate thread.
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

/// Removes the folder of a skill from a text: as configured, as on disk, and as its links resolve.
fn without_folder(skill: &Skill, text: String) -> String {
    let absolute = skill.absolute_folder();
    let real = absolute.as_ref().and_then(|it| prowess::real_path(it).ok());
    let folders = [real.as_deref(), absolute.as_deref(), Some(skill.folder())];
    let folders = folders.into_iter().flatten().filter(|it| it.is_absolute());
    folders.fold(text, |text, folder| relative_to(&text, folder))
}

/// Makes paths below a folder relative to it, and the folder itself `.`.
fn relative_to(text: &str, folder: &Path) -> String {
    let folder = folder.to_string_lossy();
    let mut parts = text.split(&*folder);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.chars().next() {
            Some('/') => out.push_str(part.trim_start_matches('/')),
            // The name of a different folder begins with that of this one.
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
        assert_eq!(relative_to(text, Path::new("/s/x")), left);
    }
}
