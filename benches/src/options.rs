//! The options of a command.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

/// The options of a command line, each with its value.
#[derive(Debug)]
pub(crate) struct Options<'w>(Vec<(&'w str, &'w str)>);

impl<'w> Options<'w> {
    /// Parses the words of a command line; only `known` options are allowed.
    pub(crate) fn new(words: &[&'w str], known: &[&str]) -> Result<Self> {
        let mut options = Vec::new();
        for pair in words.chunks(2) {
            let option = pair[0];
            ensure!(known.contains(&option), "there is no option `{option}`\n{}", crate::USAGE);
            let value = pair.get(1).with_context(|| format!("`{option}` wants a value"))?;
            options.push((option, *value));
        }
        Ok(Self(options))
    }

    pub(crate) fn get(&self, option: &str) -> Option<&'w str> {
        self.0.iter().find(|it| it.0 == option).map(|it| it.1)
    }

    /// Returns the path of a required option.
    pub(crate) fn path(&self, option: &str) -> Result<&'w Path> {
        let path = self.get(option).with_context(|| format!("`{option}` is missing"))?;
        Ok(Path::new(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[&str] = &["--skills", "--queries"];

    #[test]
    fn options_stand_in_any_order() {
        let options = Options::new(&["--queries", "b", "--skills", "a"], KNOWN).unwrap();
        assert_eq!(options.path("--skills").unwrap(), Path::new("a"));
        assert_eq!(options.get("--queries"), Some("b"));
    }

    #[test]
    fn what_is_wrong_with_them_is_said() {
        let error = |words: &[&str]| Options::new(words, KNOWN).unwrap_err().to_string();
        assert!(error(&["--skill", "a"]).starts_with("there is no option `--skill`\n"));
        assert_eq!(error(&["--skills"]), "`--skills` wants a value");
        let missing = Options::new(&[], KNOWN).unwrap().path("--skills").unwrap_err();
        assert_eq!(missing.to_string(), "`--skills` is missing");
    }
}
