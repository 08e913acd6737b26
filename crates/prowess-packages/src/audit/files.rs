//! Tells files apart: text of some language, or something that is not text.

use super::markdown::Place;

/// The kind of a file that is not text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Program(&'static str),
    Archive(&'static str),
    Media,
}

/// The kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Markup,
    Shell,
    Script,
    Notebook,
    Picture,
    Data,
}

impl Language {
    pub(super) fn place(self) -> Place {
        match self {
            Self::Markup => Place::Prose,
            Self::Shell | Self::Script | Self::Notebook => Place::Script,
            Self::Picture => Place::Hidden,
            Self::Data => Place::Data,
        }
    }
}

/// The first bytes of files, and what such a file is.
const MAGIC: &[(&[u8], Binary)] = &[
    (b"\x7FELF", Binary::Program("an ELF program")),
    (b"MZ", Binary::Program("a Windows program")),
    (b"\xFE\xED\xFA\xCE", Binary::Program("a macOS program")),
    (b"\xFE\xED\xFA\xCF", Binary::Program("a macOS program")),
    (b"\xCE\xFA\xED\xFE", Binary::Program("a macOS program")),
    (b"\xCF\xFA\xED\xFE", Binary::Program("a macOS program")),
    (b"\xCA\xFE\xBA\xBE", Binary::Program("a macOS program or Java class")),
    (b"\0asm", Binary::Program("a WebAssembly program")),
    (b"dex\n", Binary::Program("an Android program")),
    (b"\x1BLua", Binary::Program("a compiled Lua program")),
    (b"BC\xC0\xDE", Binary::Program("LLVM bitcode")),
    (b"PK\x03\x04", Binary::Archive("a zip archive")),
    (b"PK\x05\x06", Binary::Archive("a zip archive")),
    (b"\x1F\x8B", Binary::Archive("a gzip archive")),
    (b"BZh", Binary::Archive("a bzip2 archive")),
    (b"\xFD7zXZ\0", Binary::Archive("an xz archive")),
    (b"7z\xBC\xAF\x27\x1C", Binary::Archive("a 7-Zip archive")),
    (b"Rar!\x1A\x07", Binary::Archive("a RAR archive")),
    (b"\x28\xB5\x2F\xFD", Binary::Archive("a zstd archive")),
    (b"!<arch>\n", Binary::Archive("an ar archive or Debian package")),
    (b"MSCF", Binary::Archive("a cabinet archive")),
    (b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", Binary::Archive("an old Office document or installer")),
    (b"xar!", Binary::Archive("a macOS installer")),
];

/// Names of formats that are zip archives and no danger of their own.
const DOCUMENTS: &[&str] =
    &["docx", "xlsx", "pptx", "odt", "ods", "odp", "epub", "skill", "dotx", "potx", "xltx"];
const MACROS: &[&str] = &["docm", "xlsm", "pptm", "dotm", "xlam"];
const PROGRAMS: &[&str] = &[
    "exe", "dll", "so", "dylib", "bin", "o", "a", "node", "wasm", "class", "jar", "pyc", "pyd",
    "pyo", "msi", "com", "scr", "sys", "dex", "apk", "luac", "out", "elf", "",
];
const ARCHIVES: &[&str] = &[
    "zip", "tar", "gz", "tgz", "bz2", "xz", "txz", "7z", "rar", "zst", "deb", "rpm", "whl", "jar",
    "war", "apk", "ipa", "vsix", "crx", "nupkg", "egg", "cab", "msi", "pkg", "doc", "xls", "ppt",
    "mcpb", "dxt", "xpi", "gem",
];

/// Returns the extension of a path in lower case; empty if there is none.
pub(super) fn extension(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(String::new(), |it| it.1.to_ascii_lowercase())
}

/// Returns what a file is if it is not text, and whether its name says something else.
pub(super) fn binary(path: &str, bytes: &[u8]) -> Option<(Binary, bool)> {
    let extension = extension(path);
    let extension = extension.as_str();
    // Compiled Python has a number of its version, then a line end.
    if extension == "pyc" || (bytes.len() > 16 && bytes[2..4] == *b"\r\n" && bytes[1] == 0x0D) {
        return Some((Binary::Program("compiled Python"), extension != "pyc"));
    }
    let (_, kind) = MAGIC.iter().find(|it| bytes.starts_with(it.0))?;
    match kind {
        // Two letters are also the start of a text.
        Binary::Program("a Windows program") if !bytes.iter().take(512).any(|it| *it == 0) => None,
        Binary::Archive("a bzip2 archive") if !bytes.iter().take(64).any(|it| *it >= 0x80) => None,
        Binary::Program(_) => Some((*kind, !PROGRAMS.contains(&extension))),
        Binary::Archive("a zip archive") if DOCUMENTS.contains(&extension) => {
            Some((Binary::Media, false))
        }
        Binary::Archive("a zip archive") if MACROS.contains(&extension) => {
            Some((Binary::Program("an Office document with macros"), false))
        }
        Binary::Archive(_) => Some((*kind, !ARCHIVES.contains(&extension))),
        Binary::Media => Some((*kind, false)),
    }
}

/// Returns the language of a text.
pub(super) fn language(path: &str, text: &str) -> Language {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    match extension(path).as_str() {
        "sh" | "bash" | "zsh" | "ksh" | "fish" | "command" | "envrc" | "bats" => Language::Shell,
        "py" | "pyw" | "js" | "mjs" | "cjs" | "ts" | "mts" | "tsx" | "jsx" | "rb" | "pl" | "pm"
        | "ps1" | "psm1" | "bat" | "cmd" | "vbs" | "php" | "lua" | "go" | "rs" | "swift"
        | "scpt" | "applescript" | "r" | "jl" | "c" | "cc" | "cpp" | "h" | "java" | "kt" | "cs"
        | "ex" | "exs" | "awk" | "sql" | "make" | "mk" | "dockerfile" | "tcl" => Language::Script,
        "ipynb" => Language::Notebook,
        "svg" => Language::Picture,
        "json" | "jsonl" | "json5" | "yaml" | "yml" | "toml" | "csv" | "tsv" | "css" | "scss"
        | "lock" | "ini" | "cfg" | "conf" | "env" | "example" | "plist" => Language::Data,
        "md" | "markdown" | "mdx" | "txt" | "rst" | "html" | "htm" | "xml" | "adoc" | "org" => {
            Language::Markup
        }
        _ => match text.strip_prefix("#!").and_then(|it| it.lines().next()) {
            Some(line) if line.contains("sh") => Language::Shell,
            Some(_) => Language::Script,
            // A file without a name for its kind, where programs are.
            None if !name.contains('.')
                && path.split('/').rev().skip(1).any(|it| matches!(it, "scripts" | "bin")) =>
            {
                Language::Shell
            }
            None if matches!(
                name.as_str(),
                "makefile" | "dockerfile" | "justfile" | "rakefile" | "gemfile"
            ) =>
            {
                Language::Script
            }
            None => Language::Markup,
        },
    }
}

/// Returns the commands and the servers in the settings of a client.
pub(super) fn settings(path: &str, text: &str) -> Vec<Setting> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_setting = matches!(
        name,
        "hooks.json"
            | ".mcp.json"
            | "mcp.json"
            | "settings.json"
            | "settings.local.json"
            | "plugin.json"
            | ".claude.json"
    ) || name.ends_with(".mcp.json");
    let mut found = Vec::new();
    if !is_setting || text.len() > 1 << 20 {
        return found;
    }
    let Ok(json) = serde_json::from_str::<serde_json::Value>(text) else { return found };
    if let Some(hooks) = json.get("hooks") {
        commands(hooks, &mut found, 0);
    }
    let servers = ["mcpServers", "servers", "mcp"].iter().find_map(|it| json.get(it)?.as_object());
    for (name, server) in servers.into_iter().flatten().take(100) {
        let word = |key: &str| server.get(key).and_then(serde_json::Value::as_str).unwrap_or("");
        let arguments = server.get("args").and_then(serde_json::Value::as_array);
        let arguments = arguments.into_iter().flatten().filter_map(serde_json::Value::as_str);
        let command = [word("command")].into_iter().chain(arguments).collect::<Vec<_>>().join(" ");
        let secrets = server.get("env").is_some_and(|it| it.to_string().contains("${"));
        found.push(Setting::Server { name: name.clone(), command, secrets });
    }
    found
}

/// Something that a client starts by itself.
pub(super) enum Setting {
    Hook(String),
    Server { name: String, command: String, secrets: bool },
}

fn commands(json: &serde_json::Value, found: &mut Vec<Setting>, depth: usize) {
    if depth > 8 || found.len() > 100 {
        return;
    }
    match json {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                match value
                    .as_str()
                    .filter(|_| matches!(key.as_str(), "command" | "bash" | "run" | "powershell"))
                {
                    Some(command) => found.push(Setting::Hook(command.to_owned())),
                    None => commands(value, found, depth + 1),
                }
            }
        }
        serde_json::Value::Array(items) => {
            items.iter().for_each(|it| commands(it, found, depth + 1));
        }
        _ => {}
    }
}

/// Returns the code and the text of a notebook, each line with the bytes that stand for it in the file.
pub(super) fn notebook(text: &str) -> Option<(String, String)> {
    let json: serde_json::Value = serde_json::from_str(text).ok()?;
    let (mut code, mut prose) = (String::new(), String::new());
    for cell in json.get("cells")?.as_array()? {
        let is_code = cell.get("cell_type").and_then(serde_json::Value::as_str) == Some("code");
        let out = if is_code { &mut code } else { &mut prose };
        match cell.get("source") {
            Some(serde_json::Value::String(text)) => out.push_str(text),
            Some(serde_json::Value::Array(lines)) => {
                lines.iter().filter_map(serde_json::Value::as_str).for_each(|it| out.push_str(it));
            }
            _ => {}
        }
        out.push_str("\n\n");
    }
    Some((code, prose))
}
