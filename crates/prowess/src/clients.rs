//! A table of the clients that load skills: the directories that each one reads, its treatment of
//! skills, and its settings files.

pub(crate) mod verdict;
pub(crate) mod symptom;
pub(crate) mod citation;
pub(crate) mod mcp;
pub(crate) mod client;
pub(crate) mod table;
pub(crate) mod preset;

pub use self::{
    citation::Citation,
    client::{Clash, Client, Fact, Preset, Spot, VARIABLES},
    mcp::{McpSettings, ServerShape, SettingsFormat},
    preset::{HERE, PRESETS, preset},
    symptom::{Form, Letters, Symptom},
    table::{CLIENTS, mcp_clients},
    verdict::Verdict,
};

/// Finds a client by its name.
pub fn client(name: &str) -> Option<&'static Client> {
    CLIENTS.iter().find(|it| it.name == name)
}
