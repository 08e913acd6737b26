//! The initial `prowess.toml` of a project.

use super::{Config, SettingInfo};

/// The beginning of the file.
const INTRODUCTION: &str = "\
# Settings of this project for Prowess. They can narrow what a user allows, never widen it.
# `prowess config` shows what applies here, `prowess config KEY` explains one setting.
# Editors check this file by its schema: `prowess config --schema > prowess.schema.json`, and on the
# first line of this file `#:schema ./prowess.schema.json`.
";

/// The settings that the file shows as comments.
const SHOWN: &[&str] = &["skill.exclude", "policy.commands", "policy.hosts", "limits.timeout"];

impl Config {
    /// Returns the text of a first `prowess.toml` for a project with skills in these directories,
    /// relative to it. It sets only the directories; other settings are there as comments.
    pub fn starter(directories: &[String]) -> String {
        let settings = Self::default().settings();
        let mut text = format!("{INTRODUCTION}\n[skill]\n");
        if let Some(it) = settings.iter().find(|it| it.key == "skill.directories") {
            let list: Vec<String> =
                directories.iter().map(|it| toml_edit::Value::from(&**it).to_string()).collect();
            let line = match directories {
                [] => format!("# directories = {}\n", it.example),
                _ => format!("directories = [{}]\n", list.join(", ")),
            };
            text += &format!("# {}\n{line}", it.about);
        }
        text += "# Also every client directory of this project and of the user.\npresets = [\"here\"]\n";
        let mut table = "skill";
        let shown = SHOWN.iter().filter_map(|key| settings.iter().find(|it| it.key == *key));
        for SettingInfo { key, about, example, .. } in shown {
            let Some((own, name)) = key.split_once('.') else { continue };
            if own != table {
                text += &format!("\n# [{own}]\n");
                table = own;
            }
            text += &format!("# {about}\n# {name} = {example}\n");
        }
        text
    }
}
