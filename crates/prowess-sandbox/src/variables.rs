//! The variables that a caller may pass to a script.

/// Whether a variable may be passed to a script: a plain name that does not affect a loader, shell
/// or interpreter.
pub(crate) fn is_harmless(name: &str, value: &str) -> bool {
    let mut letters = name.bytes();
    let starts = letters.next().is_some_and(|it| it.is_ascii_alphabetic() || it == b'_');
    let goes_on = letters.all(|it| it.is_ascii_alphanumeric() || it == b'_');
    let upper = name.to_ascii_uppercase();
    starts
        && goes_on
        && !value.contains('\0')
        && (HARMLESS.contains(&name)
            || !PREFIXES.iter().any(|it| upper.starts_with(it)) && !NAMES.contains(&upper.as_str()))
}

/// The prefixes of variables that affect a loader, shell or interpreter.
const PREFIXES: &[&str] = &[
    "LD_", "DYLD_", "GLIBC_", "MALLOC_", "GCONV_", "BASH", "PYTHON", "PERL", "RUBY", "NODE_",
    "NPM_", "JAVA_", "_JAVA", "JDK_", "LUA_", "PHP", "GIT_", "ZDOTDIR", "LESS", "AWK", "TCL",
    "PROMPT_",
];

/// Variables with such a prefix that only affect the output.
const HARMLESS: &[&str] = &[
    "NODE_ENV",
    "NODE_NO_WARNINGS",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
];

/// Such variables without a prefix, and those that are set for the script.
const NAMES: &[&str] = &[
    "PATH",
    "HOME",
    "TMPDIR",
    "IFS",
    "ENV",
    "CDPATH",
    "GLOBIGNORE",
    "SHELLOPTS",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PWD",
    "OLDPWD",
    "SHELL",
    "FPATH",
    "LOCPATH",
    "NLSPATH",
    "HOSTALIASES",
    "RES_OPTIONS",
    "LOCALDOMAIN",
    "GETCONF_DIR",
    "TZDIR",
    "TERMINFO",
    "TERMCAP",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "MANPAGER",
    "BROWSER",
    "CLASSPATH",
    "R_HOME",
    "R_PROFILE",
    "R_ENVIRON",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "SSLKEYLOGFILE",
    "XDG_CONFIG_HOME",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_are_harmless() {
        for name in
            ["PARAM_NAME", "PARAMS_FILE", "SKILL_DIR", "TZ", "LC_ALL", "_x1", "API_KEY", "NODE_ENV"]
        {
            assert!(is_harmless(name, "value with spaces\nand lines"), "{name}");
        }
    }

    #[test]
    fn names_that_change_a_loader_or_shell_are_not() {
        let bad = [
            "",
            "A=B",
            "X\0",
            "1X",
            "a-b",
            "ä",
            "BASH_FUNC_x%%",
            "LD_PRELOAD",
            "ld_preload",
            "PATH",
            "IFS",
            "ENV",
            "BASH_ENV",
            "PYTHONPATH",
            "NODE_OPTIONS",
            "GIT_SSH_COMMAND",
            "HOME",
            "GLIBC_TUNABLES",
            "SHELLOPTS",
        ];
        for name in bad {
            assert!(!is_harmless(name, "x"), "{name:?}");
        }
        assert!(!is_harmless("NAME", "a\0b"));
    }
}
