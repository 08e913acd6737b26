//! Sensitive files, which are asked about each time they are written: files with secrets, and files
//! that programs or agents act on automatically. Those with secrets are asked about before they are
//! read, too.

use std::{ffi::OsStr, path::Path};

use super::{
    glob::fits,
    protected::{fold, is_named},
};

/// Names in lower case, with `*`, and the reason to ask about such files.
type Rows = &'static [(&'static [&'static str], &'static str)];

/// Files with secrets.
const SECRETS: Rows = &[
    (
        &[
            ".env",
            ".env.*",
            "*.env",
            "*.env.local",
            ".envrc",
            ".netrc",
            "_netrc",
            ".npmrc",
            ".pypirc",
            ".pgpass",
            ".my.cnf",
            ".htpasswd",
            ".git-credentials",
            ".vault-token",
            ".*_history",
            "fish_history",
            ".histfile",
            ".lesshst",
            ".viminfo",
            ".s3cfg",
            ".boto",
            "credentials",
            "credentials.*",
            ".credentials*",
            "secrets",
            "secrets.*",
            "client_secret*.json",
            "service-account*.json",
            "service_account*.json",
            "kubeconfig*",
            "*.kubeconfig",
            "*.tfstate",
            "*.tfstate.backup",
            "*.auto.tfvars",
            "terraform.tfvars",
        ],
        "it may contain secrets",
    ),
    (
        &[
            "*.pem",
            "*.key",
            "*.p12",
            "*.pfx",
            "*.p8",
            "*.jks",
            "*.keystore",
            "*.kdbx",
            "*.ppk",
            "id_rsa*",
            "id_dsa*",
            "id_ecdsa*",
            "id_ed25519*",
            "secring.*",
        ],
        "it may be a private key",
    ),
];

/// Folders with secrets, wherever they are, and files that are only recognizable by their folder.
const SECRET_FOLDERS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".password-store",
    ".config/gcloud",
    ".config/gh",
    ".config/rclone",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".mozilla",
    ".thunderbird",
    ".librewolf",
    ".config/mozilla",
    ".config/bravesoftware",
    ".config/chromium",
    ".config/google-chrome",
    ".config/google-chrome-beta",
    ".config/microsoft-edge",
    ".config/opera",
    ".config/vivaldi",
    "snap/chromium",
    "snap/firefox",
    ".var/app/com.brave.browser",
    ".var/app/com.google.chrome",
    ".var/app/org.chromium.chromium",
    ".var/app/org.mozilla.firefox",
    "etc/gshadow",
    "etc/shadow",
    "etc/sudoers",
    "etc/sudoers.d",
];

/// Names of files that are not secret: certificates of authorities, examples, public keys, and
/// source code.
const NO_SECRETS: &[&str] = &[
    "cacert.pem",
    "ca-bundle.pem",
    "ca-bundle.crt",
    "ca-certificates.crt",
    "*.example",
    "*.sample",
    "*.template",
    "*.dist",
    "*.pub",
    "*.md",
    "*.rs",
    "*.py",
    "*.pyi",
    "*.go",
    "*.js",
    "*.mjs",
    "*.jsx",
    "*.ts",
    "*.tsx",
    "*.java",
    "*.kt",
    "*.swift",
    "*.rb",
    "*.php",
    "*.c",
    "*.h",
    "*.cc",
    "*.cpp",
    "*.cs",
    "*.ex",
    "*.exs",
    "*.html",
    "*.css",
    "*.vue",
    "*.svelte",
];

/// Files that are asked about when they are written, but not when they are read.
const NAMES: Rows = &[
    (&["*.env.*", "credentials*", "secrets*"], "it may contain secrets"),
    (
        &[
            "*.pem",
            "*.crt",
            "*.cer",
            "*.der",
            "*.csr",
            "*.asc",
            "*.gpg",
            "id_*",
            "authorized_keys",
            "known_hosts",
        ],
        "it may be a key or a certificate",
    ),
];

/// Files that agents and programs act on automatically.
const ACTED_ON: Rows = &[
    (
        &[
            "agent.md",
            "agents.md",
            "agents.*.md",
            "amp.md",
            "claude.md",
            "claude.*.md",
            "codex.md",
            "conventions.md",
            "copilot-instructions.md",
            "crush.md",
            "gemini.md",
            ".hermes.md",
            "hermes.md",
            "jules.md",
            "opencode.md",
            "qwen.md",
            "skill.md",
            "warp.md",
            "*.instructions.md",
            "*.prompt.md",
            "*.chatmode.md",
            "*.mdc",
            "llms.txt",
            ".cursorrules",
            ".windsurfrules",
            ".clinerules*",
            ".roorules*",
            ".goosehints",
            ".rules",
        ],
        "agents follow its instructions",
    ),
    (
        &["mcp.json", ".mcp.json", "mcp_config.json", "mcp_settings.json", "*.mcp.json"],
        "agents start the servers it lists",
    ),
    (
        &["usercustomize.py", "sitecustomize.py", "*.pth", "autorun.inf", "*.desktop"],
        "programs run it automatically",
    ),
    (&["*.code-workspace", ".gvimrc", ".nvimrc", ".vimrc"], "editors act on it"),
    (&[".gitattributes", ".gitmodules"], "git acts on it"),
    (&[".tool-versions"], "it selects the versions of programs"),
];

/// Folders of third-party files, created by tools.
const DEPENDENCIES: &[&str] =
    &["node_modules", "target", "vendor", "venv", ".venv", ".tox", "site-packages"];

/// Folders with instructions for agents.
const AGENT_FOLDERS: &[&str] = &[".agents", ".agent", ".github/instructions", ".github/prompts"];

/// Returns the reason to ask before a file is read; `None` if it is not secret. The path is
/// relative to a root.
pub(crate) fn why_secret(path: &Path) -> Option<&'static str> {
    if is_in_any(path, SECRET_FOLDERS) {
        return Some("files in this folder may be secret");
    }
    let name = fold(path.file_name()?);
    if NO_SECRETS.iter().any(|it| fits(it, &name)) {
        return None;
    }
    find_reason(SECRETS, &name)
}

/// Whether a folder is known to contain folders with secrets, such as `.config`.
pub fn holds_secrets(folder: &Path) -> bool {
    let text = format!("/{}", fold(folder.as_os_str()));
    SECRET_FOLDERS.iter().any(|it| {
        let above = Path::new(it).ancestors().skip(1).filter_map(Path::to_str);
        above.into_iter().any(|it| !it.is_empty() && text.ends_with(&format!("/{it}")))
    })
}

/// Returns the reason to guard a file while an unapproved command runs: it may contain secrets, or
/// agents and programs act on it. `None` for other files, and for those of dependencies.
pub(crate) fn why_guarded(path: &Path) -> Option<&'static str> {
    if path.iter().any(|it: &OsStr| DEPENDENCIES.iter().any(|own| it == *own)) {
        return None;
    }
    why_secret(path).or_else(|| why_acted_on(path))
}

/// Returns the reason why a file should not be written unnoticed: agents and programs act on it.
pub(crate) fn why_acted_on(path: &Path) -> Option<&'static str> {
    let name = fold(path.file_name()?);
    find_reason(ACTED_ON, &name)
        .or_else(|| is_in_any(path, AGENT_FOLDERS).then_some("agents follow its instructions"))
}

/// Returns the reason to ask each time a file is written; `None` if it is not sensitive.
pub(crate) fn why_sensitive(path: &Path) -> Option<&'static str> {
    let name = fold(path.file_name()?);
    let by_name =
        why_secret(path).or_else(|| find_reason(NAMES, &name)).or_else(|| why_acted_on(path));
    if by_name.is_some() {
        return by_name;
    }
    if path.iter().any(|it| it.as_encoded_bytes().starts_with(b".")) {
        return Some("it is hidden, and programs may act on it");
    }
    let folder = path.parent().and_then(Path::file_name);
    if folder.is_some_and(|it| is_named(it, "bin") || is_named(it, "sbin")) {
        return Some("programs in `bin` may be run by name");
    }
    None
}

fn find_reason(rows: Rows, name: &str) -> Option<&'static str> {
    rows.iter().find(|it| it.0.iter().any(|pattern| fits(pattern, name))).map(|it| it.1)
}

/// Whether a path is one of these folders or inside of one.
fn is_in_any(path: &Path, folders: &[&str]) -> bool {
    let text = format!("/{}/", fold(path.as_os_str()));
    folders.iter().any(|it| text.contains(&format!("/{it}/")))
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
            ".ſsh/config",
            ".\u{200c}env",
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
            "AGENT.md",
            "WARP.md",
            "CRUSH.md",
            "CONVENTIONS.md",
            "mcp.json",
            "kubeconfig",
            ".github/copilot-instructions.md",
            ".windsurfrules",
            ".clinerules",
            ".goosehints",
            "certs/cacert.pem",
            "x.code-workspace",
            ".gitattributes",
            "sub/.gitmodules",
            ".tool-versions",
            ".hermes.md",
        ] {
            assert!(why_sensitive(Path::new(path)).is_some(), "{path}");
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
            assert_eq!(why_sensitive(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn secrets_are_distinguished_from_examples_and_source_code() {
        for path in [
            ".env",
            "a/.ENV.production",
            "prod.env",
            "id_rsa",
            "tls/server.KEY",
            ".netrc",
            ".npmrc",
            ".pypirc",
            "credentials.json",
            "config/secrets.yml",
            "kubeconfig",
            ".kube/config",
            "x/.aws/config",
            ".ssh/known",
            ".SSH/Config",
            ".gnupg/x",
            ".config/gcloud/a/b",
            ".env.pem",
            ".bash_history",
            ".python_history",
            ".local/share/fish/fish_history",
            ".mozilla/firefox/x/logins.json",
            ".config/Google-Chrome/Default/Cookies",
            ".local/share/keyrings/login.keyring",
            "/etc/shadow",
        ] {
            assert!(why_secret(Path::new(path)).is_some(), "{path}");
            assert!(why_sensitive(Path::new(path)).is_some(), "{path}");
        }
        for path in [
            ".env.example",
            ".env.sample",
            ".env.template",
            "id_rsa.pub",
            "id_generator.py",
            "src/credentials.rs",
            "secrets.md",
            "AGENTS.md",
            ".gitignore",
            "server.crt",
            "environment.yml",
            "docs/ssh/x",
            ".venv/lib/certifi/cacert.pem",
            "ca-bundle.crt",
            "chat_history",
            "docs/shadow",
            ".config/app/settings.json",
        ] {
            assert_eq!(why_secret(Path::new(path)), None, "{path}");
        }
        for path in ["/home/x/.config", "/home/x/.local", "x/.local/share", "/etc", ".var/app"] {
            assert!(holds_secrets(Path::new(path)), "{path}");
        }
        for path in ["/home/x/.config/app", "/home/x/notes", "config", "my.local", "/"] {
            assert!(!holds_secrets(Path::new(path)), "{path}");
        }
    }
}
