//! A server that somebody here has set.

use std::path::PathBuf;

use crate::config::description::McpServerConfig;

/// A server, under the label that somebody here gave it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSetting {
    /// How it is reached; its name is the label.
    pub description: McpServerConfig,
    /// Whether it is used without a question: the user set it, not a project's file.
    pub is_trusted: bool,
    /// The file and line where it is set.
    pub place: Option<(PathBuf, usize)>,
}

impl ServerSetting {
    /// Where it is set, as `FILE:LINE`.
    pub fn origin(&self) -> String {
        match &self.place {
            Some((file, line)) => format!("{}:{line}", file.display()),
            None => "default".to_owned(),
        }
    }

    /// The file where it is set.
    pub fn file(&self) -> Option<PathBuf> {
        self.place.as_ref().map(|it| it.0.clone())
    }
}
