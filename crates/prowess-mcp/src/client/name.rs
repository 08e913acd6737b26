//! The names of servers' tools.

use std::collections::BTreeSet;

use crate::config::plain_name;

/// The maximum length of a tool's name, for the strictest provider.
const LENGTH: usize = 64;

/// Returns the prefix of a server's tools: `mcp__<server>`, short enough for their names.
pub(super) fn server(name: &str) -> String {
    let name = plain_name(name);
    let end = name.len().min(LENGTH / 2);
    format!("mcp__{}", &name[..end])
}

/// Returns the unique name of a tool: `mcp__<server>__<tool>`.
pub(super) fn tool(server: &str, tool: &str, taken: &mut BTreeSet<String>) -> String {
    let whole = format!("{server}__{}", plain_name(tool));
    let mut name = whole[..whole.len().min(LENGTH)].to_owned();
    let mut number = 1;
    while !taken.insert(name.clone()) {
        number += 1;
        let ending = format!("_{number}");
        name = format!("{}{ending}", &whole[..whole.len().min(LENGTH - ending.len())]);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_unlike_each_other() {
        let files = server("my files");
        assert_eq!(files, "mcp__my_files");
        let mut taken = BTreeSet::new();
        assert_eq!(tool(&files, "read.file", &mut taken), "mcp__my_files__read_file");
        assert_eq!(tool(&files, "read file", &mut taken), "mcp__my_files__read_file_2");
        assert_eq!(tool(&files, "read/file", &mut taken), "mcp__my_files__read_file_3");
        let long = "x".repeat(500);
        for end in ["a", "b"] {
            let name = tool(&server(&long), &format!("{long}{end}"), &mut taken);
            assert_eq!(name.len(), 64, "{name}");
        }
    }
}
