//! Checks that what the crates export can grow without a break, and that the oldest supported Rust
//! is the same everywhere. `docs/decisions/api.md` says why.

use std::{collections::BTreeSet, fs};

use crate::architecture::{code_of, crates, root};

/// The enums that can be matched without a fallback, by crate. A new variant of one is a break,
/// because a fallback would be a decision that nobody took.
const EXHAUSTIVE: &[(&str, &[&str])] = &[
    ("prowess-frontmatter", &["Kind", "Quirk", "Style", "Value"]),
    ("prowess-sandbox", &["Chunk", "Links", "Network", "SandboxLevel"]),
    ("prowess-shell", &["CommandKind", "CompoundKind", "ListOperator", "RedirectKind", "WordPart"]),
    ("prowess-sql", &["Access", "Connections", "Privileges"]),
    (
        "prowess",
        &[
            "Definition",
            "ExpectedMatch",
            "Letters",
            "Level",
            "Listing",
            "Profile",
            "Role",
            "Scope",
            "Search",
            "ServerShape",
            "SettingsFormat",
            "Severity",
            "Status",
            "Type",
            "UsedSkill",
            "Verdict",
            "VisitResult",
            "Watching",
        ],
    ),
    (
        "prowess-runtime",
        &[
            "AllowedToolsMode",
            "ApprovalKind",
            "Approvals",
            "ApproverReply",
            "Author",
            "Coverage",
            "Decision",
            "DiskStep",
            "FileState",
            "LineChange",
            "UnlistedCommands",
        ],
    ),
    ("prowess-mcp", &["Transport"]),
    ("prowess-agent", &["EventLevel", "FieldValue"]),
];

/// The structs of which a host states every field, by crate. A new field of one is a break, because
/// it would be a decision of the host.
const WHOLE: &[(&str, &[&str])] = &[
    ("prowess-frontmatter", &["Block", "Scalar"]),
    ("prowess-sql", &["MySqlDatabase", "PostgresDatabase", "SqliteDatabase"]),
    ("prowess", &["Candidates", "CompositeStep", "Lab", "UseSkillInput"]),
    (
        "prowess-runtime",
        &[
            "ActionRequest",
            "ExecuteSql",
            "FileRules",
            "FindSkills",
            "Preparer",
            "ReadSkillFile",
            "RunSkill",
            "UseSkill",
        ],
    ),
    ("prowess-mcp", &["LoginRequest", "McpServerConfig", "ServerSetting"]),
    ("prowess-agent", &["Collector", "HtmlPage"]),
];

#[test]
fn an_enum_can_grow_or_is_listed() {
    for crate_name in libraries() {
        let closed: BTreeSet<String> = items(&crate_name)
            .into_iter()
            .filter(|it| it.is_closed_enum())
            .map(|it| it.name)
            .collect();
        assert_eq!(closed, listed(EXHAUSTIVE, &crate_name), "exhaustive enums of `{crate_name}`");
    }
}

#[test]
fn a_struct_can_grow_or_is_listed() {
    for crate_name in libraries() {
        let code: String = code_of(&crate_name).into_iter().map(|it| it.1).collect();
        let closed: BTreeSet<String> = items(&crate_name)
            .into_iter()
            .filter(|it| it.is_closed_struct() && !has_constructor(&it.name, &code))
            .map(|it| it.name)
            .collect();
        assert_eq!(closed, listed(WHOLE, &crate_name), "whole structs of `{crate_name}`");
    }
}

#[test]
fn what_can_grow_is_told_from_what_cannot() {
    let text = "\n#[derive(Debug)]\n#[non_exhaustive]\npub enum Open {\n    A,\n}\n\npub enum Closed {\n    A,\n}\n\n\
                pub struct Whole<'a> {\n    pub a: &'a str,\n    pub b: usize,\n}\n\n\
                pub struct Opaque {\n    pub a: u8,\n    b: u8,\n}\n\npub struct Unit;\n\n\
                #[derive(\n    Debug,\n    Default,\n)]\npub struct Input {\n    pub a: u8,\n}\n\n\
                pub struct Made {\n    pub a: u8,\n}\n\nimpl Made {\n    pub const fn new() -> Self {\n        Self { a: 0 }\n    }\n}\n";
    let items = parse(text);
    let names = |is: fn(&Item) -> bool| -> Vec<&str> {
        items.iter().filter(|it| is(it)).map(|it| &*it.name).collect()
    };
    assert_eq!(names(Item::is_closed_enum), ["Closed"]);
    assert_eq!(names(Item::is_closed_struct), ["Whole", "Made"]);
    assert!(has_constructor("Made", text) && !has_constructor("Whole", text));
}

#[test]
fn the_oldest_supported_rust_is_the_same_everywhere() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let version = manifest.lines().find_map(|it| it.strip_prefix("rust-version = ")).unwrap();
    let said = format!("Rust {} or newer", version.trim_matches('"'));
    for page in ["README.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        assert_eq!(text.matches(&said).count(), text.matches("or newer").count(), "in `{page}`");
        assert!(text.contains(&said), "`{page}` does not say `{said}`");
    }
    for crate_name in crates() {
        let path = root().join("crates").join(&crate_name).join("Cargo.toml");
        let inherits =
            fs::read_to_string(path).unwrap().contains("\nrust-version.workspace = true\n");
        assert!(inherits, "`{crate_name}` has a Rust version of its own");
    }
    // Clippy takes the version of the manifest, unless it has one of its own.
    assert!(!fs::read_to_string(root().join("clippy.toml")).unwrap().contains("msrv"));
    let run = fs::read_to_string(root().join(".ci/run")).unwrap();
    assert!(run.lines().any(|it| it == "scripts/msrv"), "{run}");
}

/// A public type of a crate.
struct Item {
    name: String,
    is_enum: bool,
    /// The attributes before it.
    attributes: String,
    /// The lines between its braces; empty if it has none.
    body: Vec<String>,
}

impl Item {
    fn is_closed_enum(&self) -> bool {
        self.is_enum && !self.attributes.contains("non_exhaustive")
    }

    /// Whether other crates can write it as a literal, and have to name every field.
    fn is_closed_struct(&self) -> bool {
        let is_growing =
            ["non_exhaustive", "Default"].iter().any(|it| self.attributes.contains(it));
        // Attributes of fields, and what a field continues with, begin in another way.
        let mut fields = self.body.iter().filter(|it| {
            it.strip_prefix("    ")
                .is_some_and(|it| it.starts_with(|c: char| c.is_ascii_lowercase()))
        });
        let is_public = fields.clone().count() > 0 && fields.all(|it| it.starts_with("    pub "));
        !self.is_enum && !is_growing && is_public
    }
}

/// The crates that others depend on.
fn libraries() -> Vec<String> {
    crates().into_iter().filter(|it| it != "prowess-cli" && it != "prowess-testing").collect()
}

fn listed(list: &[(&str, &[&str])], crate_name: &str) -> BTreeSet<String> {
    let names = list.iter().filter(|it| it.0 == crate_name).flat_map(|it| it.1);
    names.map(|it| (*it).to_owned()).collect()
}

fn items(crate_name: &str) -> Vec<Item> {
    code_of(crate_name).iter().flat_map(|(_, code)| parse(code)).collect()
}

/// Returns the public types of a text without comments. `unreachable_pub` is denied, so what is
/// `pub` is exported.
fn parse(code: &str) -> Vec<Item> {
    let lines: Vec<&str> = code.lines().collect();
    let mut items = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((kind, rest)) = line.strip_prefix("pub ").and_then(|it| it.split_once(' ')) else {
            continue;
        };
        if kind != "enum" && kind != "struct" {
            continue;
        }
        let before = lines[..at].iter().rev().take_while(|it| !it.trim().is_empty());
        let body = lines[at + 1..].iter().take_while(|it| **it != "}");
        let has_braces = line.ends_with('{');
        items.push(Item {
            name: rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned(),
            is_enum: kind == "enum",
            attributes: before.map(|it| format!("{it}\n")).collect(),
            body: body.filter(|_| has_braces).map(|it| (*it).to_owned()).collect(),
        });
    }
    items
}

/// Whether a type has a default or a `new`, with which `..` completes a literal.
fn has_constructor(name: &str, code: &str) -> bool {
    let mut blocks =
        code.split("\nimpl").skip(1).map(|it| it.split("\n}").next().unwrap_or_default());
    blocks.any(|block| {
        let (head, body) = block.split_once('{').unwrap_or((block, ""));
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let words: Vec<&str> = head.split(|c| !is_word(c)).filter(|it| !it.is_empty()).collect();
        let is_default = words.contains(&"Default");
        let is_own = !words.contains(&"for");
        let has_new = body.contains("pub fn new(") || body.contains("pub const fn new(");
        words.contains(&name) && (is_default || is_own && has_new)
    })
}
