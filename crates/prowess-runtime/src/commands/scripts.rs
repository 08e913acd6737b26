//! Checks whether programs in the languages of awk and sed only read and print.

use super::Argument;

/// Accepts awk programs that neither run nor write anything; `Err` has the offending part.
pub(super) fn check_awk(arguments: &[Argument]) -> Result<(), String> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match &*argument.text {
            // The expansion of a glob is unknown.
            glob if argument.is_glob => return Err(glob.to_owned()),
            "-F" | "-v" if rest.next().is_some_and(|it| !it.is_glob) => {}
            option if option.starts_with("-F") && option.len() > 2 => {}
            option if option.len() > 1 && option.starts_with('-') => return Err(option.to_owned()),
            program => return check_awk_program(program),
        }
    }
    Ok(())
}

fn check_awk_program(program: &str) -> Result<(), String> {
    for word in ["system", "getline", "@"] {
        if program.contains(word) {
            return Err(word.to_owned());
        }
    }
    if program.replace("||", "").contains('|') {
        return Err("|".to_owned());
    }
    // Before the first `print` it is a comparison; after it, it may be a redirection.
    match program.split_once("print").is_some_and(|it| it.1.contains('>')) {
        true => Err(">".to_owned()),
        false => Ok(()),
    }
}

/// Accepts sed programs that substitute, print, delete and quit; `Err` has the offending part.
pub(super) fn check_sed(arguments: &[Argument]) -> Result<(), String> {
    let mut rest = arguments.iter();
    let mut has_program = false;
    while let Some(argument) = rest.next() {
        match &*argument.text {
            glob if argument.is_glob && !has_program => return Err(glob.to_owned()),
            "-n" | "-E" | "-r" | "-z" | "-u" | "-s" | "-nE" | "-nr" | "-En" | "-rn" | "--" => {}
            "-e" => {
                has_program = true;
                let program = rest.next().filter(|it| !it.is_glob).ok_or("-e")?;
                check_sed_program(&program.text)?;
            }
            option if option.starts_with('-') => return Err(option.to_owned()),
            program if !has_program => {
                has_program = true;
                check_sed_program(program)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_sed_program(program: &str) -> Result<(), String> {
    let mut rest = program;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ';', '\n']);
        let Some(first) = rest.chars().next() else { return Ok(()) };
        let bad = || first.to_string();
        match first {
            // An address, or a separator of addresses.
            '0'..='9' | '$' | ',' | '!' | '~' | '+' => rest = &rest[1..],
            '/' => rest = skip_past(&rest[1..], '/').ok_or_else(bad)?,
            'p' | 'd' | 'q' | '=' | 'n' | 'D' | 'P' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' => {
                rest = end_command(&rest[1..]).ok_or_else(bad)?;
            }
            's' | 'y' => {
                let sign = rest[1..].chars().next().filter(|it| it.is_ascii_punctuation());
                let sign = sign.filter(|it| *it != '\\').ok_or_else(bad)?;
                let pattern = &rest[2..];
                let replacement = skip_past(pattern, sign).ok_or_else(bad)?;
                let flags = skip_past(replacement, sign).ok_or_else(bad)?;
                rest = end_command(flags.trim_start_matches(|c: char| {
                    c.is_ascii_digit() || matches!(c, 'g' | 'p' | 'i' | 'I')
                }))
                .ok_or_else(|| flags.to_owned())?;
            }
            _ => return Err(bad()),
        }
    }
}

/// Returns the text after the next unescaped delimiter.
fn skip_past(text: &str, sign: char) -> Option<&str> {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '\n' => return None,
            c if c == sign => return Some(&text[at + c.len_utf8()..]),
            _ => {}
        }
    }
    None
}

/// Returns the text, if a command can end here.
fn end_command(text: &str) -> Option<&str> {
    let behind = text.trim_start_matches([' ', '\t']);
    (behind.is_empty() || behind.starts_with([';', '\n'])).then_some(behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_only_read_and_print_pass() {
        let word =
            |it: &&str| Argument { text: (*it).to_owned(), quoted: String::new(), is_glob: false };
        let words = |it: &[&str]| it.iter().map(word).collect::<Vec<_>>();
        for it in ["s/a/b/", "s|a|b|g", "5q", "1,3p", "$d", "/x/p", "/a\\/b/d; s/x/y/2p", "n;d"] {
            assert_eq!(check_sed(&words(&["-n", it, "file"])), Ok(()), "{it}");
        }
        for it in ["e", "1e touch P", "s/a/b/e", "s/a/b/w P", "w P", "r /etc/passwd", "{p}", "s/a"]
        {
            assert!(check_sed(&words(&[it])).is_err(), "{it}");
        }
        for it in [&["-i", "s/a/b/"][..], &["-f", "x"], &["-e", "p", "-e", "e"]] {
            assert!(check_sed(&words(it)).is_err(), "{it:?}");
        }
        for it in ["{print $1}", "$3 > 5 {print}", "a || b", "BEGIN{x=1}"] {
            assert_eq!(check_awk(&words(&["-F", ":", it])), Ok(()), "{it}");
        }
        for it in ["BEGIN{system(\"x\")}", "{print > \"P\"}", "{print | \"sh\"}", "\"x\" | getline"]
        {
            assert!(check_awk(&words(&[it])).is_err(), "{it}");
        }
        assert!(check_awk(&words(&["-f", "x"])).is_err());
    }
}
