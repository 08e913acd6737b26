//! Named lists of directories, most of them those of one client.

use std::sync::LazyLock;

use super::{client::Preset, table::CLIENTS};

/// The preset of every directory of every client, in this project and of this user. Which these are
/// depends on where the host runs: see [`Surroundings::here`](crate::Surroundings::here).
pub const HERE: &str = "here";

/// Presets of no client in the table.
const OTHERS: &[Preset] = &[
    Preset {
        name: "agents",
        directories: &[".agents/skills", "~/.agents/skills", "~/.config/agents/skills"],
    },
    Preset { name: "aiq", directories: &["~/.aiqconfig/skills"] },
    Preset { name: "lango", directories: &["~/.lango/skills"] },
    Preset { name: "sisu", directories: &[".sisu/skills", "~/.sisu/skills"] },
];

/// All presets: [`HERE`], then the others by name.
pub static PRESETS: LazyLock<Vec<Preset>> = LazyLock::new(|| {
    let of_clients = CLIENTS.iter().filter_map(|it| it.preset);
    let mut presets: Vec<Preset> = OTHERS.iter().copied().chain(of_clients).collect();
    presets.sort_by_key(|it| it.name);
    presets.insert(0, Preset { name: HERE, directories: &[] });
    presets
});

/// Finds a preset by its name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|it| it.name == name)
}
