//! A server from the settings.

use std::path::PathBuf;

use crate::config::description::McpServerConfig;

/// A server from the settings, with its label.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSetting {
    /// Its configuration; its name is the label.
    pub description: McpServerConfig,
    /// Whether it is used without asking: it is in the user's settings, not in a project file.
    pub is_trusted: bool,
    /// The file and line of its configuration.
    pub place: Option<(PathBuf, usize)>,
}

impl ServerSetting {
    /// Returns the place of its configuration, as `FILE:LINE`.
    pub fn origin(&self) -> String {
        match &self.place {
            Some((file, line)) => format!("{}:{line}", file.display()),
            None => "default".to_owned(),
        }
    }

    /// Returns the file that configures it.
    pub fn file(&self) -> Option<PathBuf> {
        self.place.as_ref().map(|it| it.0.clone())
    }
}
