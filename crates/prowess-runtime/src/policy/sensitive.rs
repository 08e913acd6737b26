//! Files that are asked about each time they are written: what holds secrets, and what programs or
//! agents act on without being told to.

use std::path::Path;

use super::glob::fits;

/// Names of such files in lower case, with `*`, and why they are asked about.
const NAMES: &[(&[&str], &str)] = &[
    (&["*.env", "*.env.*", "credentials*", "secrets*"], "it may hold secrets"),
    (
        &[
            "*.pem",
            "*.key",
            "*.p12",
            "*.pfx",
            "*.p8",
            "*.jks",
            "*.keystore",
            "*.crt",
            "*.cer",
            "*.der",
            "*.csr",
            "*.asc",
            "*.gpg",
            "*.kdbx",
            "*.ppk",
            "id_*",
            "authorized_keys",
            "known_hosts",
        ],
        "it may be a key or a certificate",
    ),
    (
        &[
            "agents.md",
            "agents.*.md",
            "claude.md",
            "claude.*.md",
            "gemini.md",
            "qwen.md",
            "skill.md",
            "copilot-instructions.md",
            "*.instructions.md",
            "*.mdc",
            "llms.txt",
        ],
        "agents follow what it says",
    ),
    (
        &["usercustomize.py", "sitecustomize.py", "*.pth", "autorun.inf", "*.desktop"],
        "programs run it by themselves",
    ),
    (&["*.code-workspace"], "editors act on it"),
];

/// Why a file is asked about each time it is written; nothing for any other. The path is the one
/// behind the directory that tools may use.
pub(super) fn sensitive(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let named = NAMES.iter().find(|it| it.0.iter().any(|pattern| fits(pattern, &name)));
    if let Some((_, why)) = named {
        return Some(why);
    }
    if path.iter().any(|it| it.as_encoded_bytes().starts_with(b".")) {
        return Some("it is hidden, and programs may act on it");
    }
    let folder = path.parent().and_then(Path::file_name);
    if folder.is_some_and(|it| it.eq_ignore_ascii_case("bin") || it.eq_ignore_ascii_case("sbin")) {
        return Some("what is in `bin` may be run by its name");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_startup_files_and_instructions_are_sensitive_and_ordinary_files_are_not() {
        for path in [
            ".env",
            ".env.local",
            "prod.env",
            "a/b/.ENV",
            "server.PEM",
            "tls/server.key",
            "id_rsa",
            "backup/id_ed25519.pub",
            "store.p12",
            ".bashrc",
            ".xprofile",
            ".vimrc",
            ".tmux.conf",
            ".gdbinit",
            ".cargo/env",
            ".cargo/bin/x",
            "bin/ls",
            "go/bin/tool",
            ".oh-my-zsh/custom/x.zsh",
            "AGENTS.md",
            "sub/Claude.md",
            "GEMINI.md",
            ".agents/skills/x/SKILL.md",
            "skills/x/SKILL.md",
            ".idea/workspace.xml",
            ".config/Code/User/settings.json",
            "usercustomize.py",
            "lib/x.pth",
            ".hidden/file",
        ] {
            assert!(sensitive(Path::new(path)).is_some(), "{path}");
        }
        for path in [
            "notes.txt",
            "src/main.rs",
            "environment.md",
            "keys.rs",
            "key",
            "README.md",
            "bin",
            "binary/x",
            "src/agents.rs",
            "a.b/c",
            "monkey.txt",
        ] {
            assert_eq!(sensitive(Path::new(path)), None, "{path}");
        }
    }
}
