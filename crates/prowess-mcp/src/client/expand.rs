//! Expands `${NAME}` in the configuration of a server.

use std::collections::BTreeMap;

/// The names of the skill's folder.
const FOLDER: &[&str] = &["SKILL_DIR", "CLAUDE_SKILL_DIR"];

/// The values that a configuration can refer to: the folder of its skill, if it has a copy of it,
/// and variables that may be passed on.
#[derive(Debug)]
pub(super) struct PlaceholderValues<'k> {
    pub(super) folder: Option<&'k str>,
    pub(super) variables: &'k BTreeMap<String, String>,
}

impl PlaceholderValues<'_> {
    /// Expands all references in a text; the error is the name of a forbidden one. The text after
    /// `:-` is the default for a missing variable.
    pub(super) fn expand(&self, text: &str) -> Result<String, String> {
        let mut whole = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((inside, behind)) = after.split_once('}') else { break };
            whole.push_str(before);
            let (name, default) = match inside.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (inside, None),
            };
            let name = name.strip_prefix("env:").unwrap_or(name);
            let value = match self.variables.get(name) {
                _ if FOLDER.contains(&name) => self.folder,
                value => value.map(String::as_str).or(default),
            };
            whole.push_str(value.ok_or(name)?);
            rest = behind;
        }
        Ok(whole + rest)
    }

    /// Expands all references in some texts.
    pub(super) fn expand_all(&self, texts: &[String]) -> Result<Vec<String>, String> {
        texts.iter().map(|it| self.expand(it)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_is_filled_in() {
        let variables = [("TOKEN".to_owned(), "${HOME}".to_owned())].into();
        let known = PlaceholderValues { folder: Some("/skill"), variables: &variables };
        let expand = |text: &str| known.expand(text);
        let some = |text: &str| Ok(text.to_owned());
        assert_eq!(expand("plain $HOME $(x) {y}"), some("plain $HOME $(x) {y}"));
        assert_eq!(expand("${SKILL_DIR}/x"), some("/skill/x"));
        assert_eq!(expand("a${TOKEN}b${env:TOKEN}"), some("a${HOME}b${HOME}"));
        assert_eq!(expand("${NONE:-y}${TOKEN:-n}"), some("y${HOME}"));
        assert_eq!(expand("${HOME}"), Err("HOME".to_owned()));
        assert_eq!(expand("${open"), some("${open"));
        assert_eq!(expand("${}"), Err(String::new()));
        let homeless = PlaceholderValues { folder: None, variables: &variables };
        assert_eq!(homeless.expand("${SKILL_DIR}"), Err("SKILL_DIR".to_owned()));
    }
}
