//! The interpreter of a script, by its shebang or its extension.

use super::needs::{Interpreter, Runtime};

/// Runtimes by the name of the program, without a version.
const PROGRAMS: &[(&str, Runtime)] = &[
    ("ash", Runtime::Shell),
    ("bash", Runtime::Shell),
    ("bun", Runtime::Bun),
    ("bunx", Runtime::Bun),
    ("dash", Runtime::Shell),
    ("deno", Runtime::Deno),
    ("fish", Runtime::Shell),
    ("ksh", Runtime::Shell),
    ("node", Runtime::Node),
    ("nodejs", Runtime::Node),
    ("perl", Runtime::Perl),
    ("pypy", Runtime::Python),
    ("python", Runtime::Python),
    ("ruby", Runtime::Ruby),
    ("sh", Runtime::Shell),
    ("ts-node", Runtime::Node),
    ("tsx", Runtime::Node),
    ("zsh", Runtime::Shell),
];

/// Interpreters of scripts without a shebang, by their extensions.
const ENDINGS: &[(&str, &str)] = &[
    ("bash", "bash"),
    ("cjs", "node"),
    ("cts", "node"),
    ("js", "node"),
    ("mjs", "node"),
    ("mts", "node"),
    ("pl", "perl"),
    ("py", "python3"),
    ("rb", "ruby"),
    ("sh", "sh"),
    ("ts", "node"),
];

/// Returns the interpreter of a script by its shebang, else its extension.
pub fn interpreter(path: &str, text: &str) -> Option<Interpreter> {
    let command: Vec<String> = match shebang(text) {
        Some(words) => words.into_iter().map(str::to_owned).collect(),
        None => vec![by_ending(path)?.to_owned()],
    };
    let runtime = runtime_of(&command)?;
    Some(Interpreter { runtime, command })
}

/// Returns the words of a shebang, without `env` and its options. The kernel passes everything
/// after the program as one argument, which `env -S` splits again.
pub(super) fn shebang(text: &str) -> Option<Vec<&str>> {
    let line = text.strip_prefix('\u{feff}').unwrap_or(text).lines().next()?;
    let mut words = line.strip_prefix("#!")?.split_ascii_whitespace().peekable();
    if words.peek().is_some_and(|it| file_name(it) == "env") {
        words.next();
        while let Some(word) = words.next_if(|it| it.starts_with('-') || it.contains('=')) {
            // `-u NAME`, `-C DIR`
            if matches!(word, "-u" | "-C") {
                words.next();
            }
        }
    }
    Some(words.collect())
}

fn by_ending(path: &str) -> Option<&'static str> {
    let (stem, ending) = path.rsplit_once('.')?;
    // Type declarations are not a script.
    if stem.ends_with(".d") {
        return None;
    }
    ENDINGS.iter().find(|it| it.0.eq_ignore_ascii_case(ending)).map(|it| it.1)
}

/// Returns the runtime of a command.
fn runtime_of(command: &[String]) -> Option<Runtime> {
    let program = file_name(command.first()?);
    let runtime = match program {
        "uv" | "pipx" if command.get(1).is_some_and(|it| file_name(it) == "run") => {
            Some(Runtime::Python)
        }
        "npx" | "pnpx" => {
            let run = command.iter().skip(1).find(|it| !it.starts_with('-'));
            run.and_then(|it| known_runtime(file_name(it)))
        }
        program => known_runtime(program),
    };
    Some(runtime.unwrap_or(Runtime::Other))
}

fn known_runtime(program: &str) -> Option<Runtime> {
    let name = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    PROGRAMS.iter().find(|it| it.0 == name).map(|it| it.1)
}

/// Returns the last component of a path.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_says_what_runs_a_script_and_else_its_ending() {
        let cases = [
            ("a.py", "", "python3", Runtime::Python),
            ("a.SH", "echo", "sh", Runtime::Shell),
            ("a.sh", "#!/usr/bin/env python3\n", "python3", Runtime::Python),
            ("a", "#! /bin/bash -e\r\n", "/bin/bash -e", Runtime::Shell),
            ("a", "#!/usr/bin/python3.11\n", "/usr/bin/python3.11", Runtime::Python),
            ("a", "#!/usr/bin/env -S uv run --script\n", "uv run --script", Runtime::Python),
            ("a", "#!/usr/bin/env -S node --no-warnings\n", "node --no-warnings", Runtime::Node),
            ("a.ts", "#!/usr/bin/env -S npx -y tsx\n", "npx -y tsx", Runtime::Node),
            ("a.ts", "#!/usr/bin/env bun\n", "bun", Runtime::Bun),
            ("a.ts", "#!/usr/bin/env -S deno run -A\n", "deno run -A", Runtime::Deno),
            ("a.ts", "let a = 1", "node", Runtime::Node),
            ("a", "#!/usr/bin/env -S -u HOME A=b ruby\n", "ruby", Runtime::Ruby),
            ("a.pl", "print 1", "perl", Runtime::Perl),
            ("a", "#!/usr/bin/awk -f\n", "/usr/bin/awk -f", Runtime::Other),
        ];
        for (path, text, command, runtime) in cases {
            let found = interpreter(path, text).expect(text);
            assert_eq!((found.command.join(" ").as_str(), found.runtime), (command, runtime));
        }
        for (path, text) in [
            ("a", "#!\n"),
            ("a.sh", "#!/usr/bin/env\n"),
            ("a.txt", "x"),
            ("a", "x"),
            ("a.d.ts", "x"),
        ] {
            assert_eq!(interpreter(path, text), None, "{path}: {text}");
        }
    }
}
