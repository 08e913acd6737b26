//! The reference of all settings: `docs/settings.md`, and a JSON schema for editors.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json, json};

use super::{
    Config, SettingInfo,
    reader::MANIFEST,
    table::{Row, TABLES},
    value::{KnownClient, Value as _},
};

/// The text before the settings.
const INTRODUCTION: &str = "\
# Settings

<!-- Made from the table of settings: `prowess config --markdown > docs/settings.md`. -->

Settings are written in TOML, in a file called `prowess.toml`. From the strongest to the weakest:

1. flags, such as `--depth 2`
2. the project's file: the nearest `prowess.toml` in the working directory or above it
3. the user's file: `~/.config/prowess/prowess.toml`, or below `$XDG_CONFIG_HOME`; `prowess config --path` names it
4. the defaults

With `--config FILE` only that file is read. `prowess config` shows every value and where it came from, `prowess config KEY`
explains one setting, and `prowess init` writes a file for the project you are in.

**A project's file can narrow what you allow, never widen it**, because somebody else may have written it. What it sets beyond that
is ignored with a warning. The user's file, a file named by `--config`, and flags may set everything. Commands and hosts that a project needs
can be approved once, after you have read the file: `prowess config --approve`. The approval ends when the file changes.

Sizes have a unit (`\"10 MiB\"`, `\"64KB\"`) or are bytes; times have a unit (`\"500ms\"`, `\"30s\"`, `\"5m\"`, `\"2h\"`) or are seconds.
Relative paths are resolved from the directory of the file, and `~` is the home directory.

Editors with a TOML language server such as taplo (Even Better TOML in VS Code) complete and check the file by its schema. Write the schema
with `prowess config --schema > prowess.schema.json` and begin the file with `#:schema ./prowess.schema.json`.
";

impl Config {
    /// Returns the reference of all settings, in Markdown.
    pub fn reference() -> String {
        let mut text = INTRODUCTION.to_owned();
        let settings = Self::default().settings();
        for (table, about) in TABLES {
            let own: Vec<_> = settings.iter().filter(|it| table_of(it.key) == *table).collect();
            let _ =
                writeln!(text, "\n## `[{table}]`\n\n{about}\n\n| setting | meaning |\n|---|---|");
            for it in &own {
                let anchor = it.key.replace('.', "");
                let about = it.about.replace('|', "\\|");
                let _ = writeln!(text, "| [`{}`](#{anchor}) | {about} |", it.key);
            }
            for it in own {
                let _ = write!(text, "\n{}", section(it));
            }
        }
        text
    }

    /// Returns a JSON schema of `prowess.toml`.
    pub fn schema() -> Json {
        let mut own = Self::default();
        let mut tables = Map::new();
        for Row { facts, slot } in own.rows() {
            let mut schema = slot.schema();
            schema["description"] = json!(facts.about);
            if !slot.to_json().is_null() && facts.key != "servers" {
                schema["default"] = slot.to_json();
            }
            match facts.key.split_once('.') {
                Some((table, key)) => {
                    let about = TABLES.iter().find(|it| it.0 == table).map(|it| it.1);
                    let table = tables.entry(table).or_insert_with(|| {
                        json!({
                            "type": "object",
                            "description": about,
                            "additionalProperties": false,
                            "properties": {},
                        })
                    });
                    table["properties"][key] = schema;
                }
                None => drop(tables.insert(facts.key.to_owned(), schema)),
            }
        }
        let source = json!({ "type": "string", "minLength": 1 });
        tables.insert(
            MANIFEST.to_owned(),
            json!({
                "type": "object",
                "description": "The skills that are installed, each under its name, with its source.",
                "additionalProperties": { "anyOf": [source, {
                    "type": "object",
                    "properties": {
                        "source": source,
                        "skill": { "type": "string", "description": "The name of the skill in its source." },
                        "clients": <Vec<KnownClient>>::schema(),
                        "copy": { "type": "boolean" },
                    },
                    "required": ["source"],
                }] },
            }),
        );
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "prowess.toml",
            "description": "Settings of Prowess",
            "type": "object",
            "additionalProperties": false,
            "properties": tables,
        })
    }
}

impl SettingInfo {
    /// Returns the setting as it is written in a file: its table and a line, or its lines.
    pub fn lines(&self) -> String {
        match self.key.split_once('.') {
            Some((table, key)) => format!("[{table}]\n{key} = {}", self.example),
            None => format!("[{}]\n{}", self.key, self.example),
        }
    }
}

fn section(it: &SettingInfo) -> String {
    let flag = it.flag.map(|it| format!("- Flag: `{it}`\n")).unwrap_or_default();
    let default = match &*it.default {
        "not set" => "not set".to_owned(),
        default => format!("`{default}`"),
    };
    format!(
        "### `{}`\n\n{}\n\n- Type: {}\n- Default: {default}\n- Project's file: {}\n{flag}\n```toml\n{}\n```\n",
        it.key,
        it.about,
        it.kind,
        it.project.phrase(),
        it.lines(),
    )
}

fn table_of(key: &str) -> &str {
    key.split_once('.').map_or(key, |it| it.0)
}
