//! The well-known programs that scripts start, read without running anything.

use super::{
    js_imports::{TokenKind, tokens},
    needs::Runtime,
    python_imports::string_length,
    system_programs::system_packages,
};

/// A program that a script starts by a literal name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StartedProgram {
    pub(super) name: String,
    /// Its line, counted from 1.
    pub(super) line: usize,
    /// Whether the script first checks if it is installed.
    pub(super) is_optional: bool,
}

/// The maximum number of programs of one file.
const MAX_PROGRAMS: usize = 50;

/// The functions of Python and JavaScript that start the program in their first argument.
const PYTHON_STARTS: &[&str] = &[
    "Popen",
    "call",
    "check_call",
    "check_output",
    "create_subprocess_exec",
    "create_subprocess_shell",
    "getoutput",
    "getstatusoutput",
    "popen",
    "run",
    "system",
];
const JS_STARTS: &[&str] =
    &["exec", "execFile", "execFileSync", "execSync", "execa", "execaSync", "spawn", "spawnSync"];
/// Words that precede a command in a shell script.
const SHELL_WORDS: &[&str] =
    &["!", "do", "elif", "else", "env", "exec", "if", "nohup", "sudo", "then", "time", "while"];

/// Returns the well-known programs that a script starts, each once.
pub(super) fn started_programs(text: &str, runtime: Runtime) -> Vec<StartedProgram> {
    let found = match runtime {
        Runtime::Python if text.contains("subprocess") || text.contains("os.") => {
            programs_in_code(&python_tokens(text), PYTHON_STARTS)
        }
        Runtime::Node | Runtime::Bun | Runtime::Deno
            if text.contains("exec") || text.contains("spawn") =>
        {
            let tokens = tokens(text).into_iter().map(|it| {
                let piece = match it.kind {
                    TokenKind::Text => Piece::Text(it.text),
                    TokenKind::Word | TokenKind::Sign => Piece::Code(it.text),
                    TokenKind::Value => Piece::Code(""),
                };
                (piece, it.line)
            });
            programs_in_code(&tokens.collect::<Vec<_>>(), JS_STARTS)
        }
        Runtime::Shell => programs_in_shell(text),
        _ => Vec::new(),
    };
    let mut programs: Vec<StartedProgram> = Vec::new();
    for (name, line) in found {
        let is_new = programs.iter().all(|it| it.name != name);
        if is_new && programs.len() < MAX_PROGRAMS {
            let is_optional = is_looked_for(text, name);
            programs.push(StartedProgram { name: name.to_owned(), line, is_optional });
        }
    }
    programs
}

/// Whether a script checks if a program is installed before starting it.
fn is_looked_for(text: &str, name: &str) -> bool {
    ["which(\"", "which('", "which ", "command -v ", "hash "].iter().any(|before| {
        let mut rest = text;
        while let Some((_, behind)) = rest.split_once(before) {
            if behind.strip_prefix(name).is_some_and(|it| !it.starts_with(is_name_sign)) {
                return true;
            }
            rest = behind;
        }
        false
    })
}

fn is_name_sign(c: char) -> bool {
    c.is_alphanumeric() || c == '-' || c == '_'
}

/// A part of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'t> {
    /// A word or an operator.
    Code(&'t str),
    /// A string, without its quotes.
    Text(&'t str),
}

/// Returns the programs that calls of these functions start, and those that a list begins with.
fn programs_in_code<'t>(pieces: &[(Piece<'t>, usize)], starts: &[&str]) -> Vec<(&'t str, usize)> {
    let mut found = Vec::new();
    for (at, (piece, line)) in pieces.iter().enumerate() {
        let Piece::Text(text) = piece else { continue };
        let before = [1, 2, 3, 4].map(|back| code_before(pieces, at, back));
        let opens = usize::from(matches!(before[0], "[" | "("));
        // `run("x y")`, `run(["x", "y"])`, `run(f"x {y}")`
        let called =
            before.windows(2).take(opens + 2).any(|it| it[0] == "(" && starts.contains(&it[1]));
        // `command = ["x", "y"]`
        let is_list = before[0] == "[" && matches!(before[1], "=" | "(" | "return" | ",");
        let word = text.split_whitespace().next().unwrap_or_default();
        let word = if called { word } else { text };
        if (called || is_list) && system_packages(word).is_some() {
            found.push((word, *line));
        }
    }
    found
}

/// Returns the code that is so many pieces before another; empty for a string.
fn code_before<'t>(pieces: &[(Piece<'t>, usize)], at: usize, back: usize) -> &'t str {
    match at.checked_sub(back).map(|it| pieces[it].0) {
        Some(Piece::Code(text)) => text,
        _ => "",
    }
}

/// Splits Python code into tokens, without comments.
fn python_tokens(text: &str) -> Vec<(Piece<'_>, usize)> {
    let mut pieces = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let mut length = c.len_utf8();
        match c {
            '\n' => line += 1,
            '#' => length = rest.find('\n').unwrap_or(rest.len()),
            '\'' | '"' => {
                length = string_length(rest);
                let quotes = if rest.starts_with(&c.to_string().repeat(3)) { 3 } else { 1 };
                let inner = rest[..length].get(quotes..length.saturating_sub(quotes));
                pieces.push((Piece::Text(inner.unwrap_or_default()), line));
                line += rest[..length].matches('\n').count();
            }
            c if c.is_whitespace() => {}
            c if c.is_alphanumeric() || c == '_' => {
                length =
                    rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                // `f"…"` and the like are strings.
                let is_prefix = length <= 2 && rest[length..].starts_with(['\'', '"']);
                if !is_prefix {
                    pieces.push((Piece::Code(&rest[..length]), line));
                }
            }
            _ => pieces.push((Piece::Code(&rest[..length]), line)),
        }
        at += length;
    }
    pieces
}

/// Returns the programs in command position of a shell script.
fn programs_in_shell(text: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if line.starts_with('#') {
            continue;
        }
        for command in line.split(['|', ';', '&', '(', '`', '{']) {
            let word = command.split_whitespace().find(|it| {
                let is_assignment = it.contains('=') && !it.starts_with(['"', '\'']);
                !SHELL_WORDS.contains(it) && !is_assignment
            });
            if let Some(word) = word.filter(|it| system_packages(it).is_some()) {
                found.push((word, at + 1));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, runtime: Runtime) -> Vec<String> {
        started_programs(text, runtime)
            .into_iter()
            .map(|it: StartedProgram| {
                format!("{}:{}{}", it.line, it.name, if it.is_optional { "?" } else { "" })
            })
            .collect()
    }

    #[test]
    fn programs_are_read_where_they_are_started() {
        let python = "\"\"\"subprocess.run(['qpdf'])\"\"\"\nimport subprocess, shutil\n\
            subprocess.run(['pdftoppm', '-png'])\nos.system(f\"tesseract {x} out\")\n\
            # subprocess.run(['ffmpeg'])\ncmd = [\n  'pandoc', '-o']\nsubprocess.run(cmd)\n\
            print('qpdf')\nsubprocess.check_output([own, 'qpdf'])\nif shutil.which('gs'):\n  \
            subprocess.run(('gs', '-q'))\nsubprocess.run(['own-tool'])\nsubprocess.run(args=['jq'])\n";
        assert_eq!(
            find(python, Runtime::Python),
            ["3:pdftoppm", "4:tesseract", "7:pandoc", "12:gs?", "14:jq"]
        );
        let js = "// spawn('qpdf')\nconst { execFileSync, spawn } = require('child_process');\n\
            spawn('ffmpeg', ['-i']);\nexecSync(\"pdftotext a.pdf\");\nconsole.log('jq');\n";
        assert_eq!(find(js, Runtime::Node), ["3:ffmpeg", "4:pdftotext"]);
        let shell = "#!/bin/sh\n# qpdf\nA=1 sudo pandoc a | jq .\nif command -v gs; then gs; fi\n\
            x=$(pdfinfo a)\necho ffmpeg\n";
        assert_eq!(find(shell, Runtime::Shell), ["3:pandoc", "3:jq", "4:gs?", "5:pdfinfo"]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_can_be_read(text in "(?s)[a-z'\"\\\\#;:(){}\\n\\t é]{0,80}|.{0,80}") {
            for runtime in [Runtime::Python, Runtime::Node, Runtime::Shell] {
                started_programs(&format!("subprocess os. exec {text}"), runtime);
            }
        }
    }
}
