//! The modules that a Python script imports, read without running it.

/// One import of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PythonImport {
    /// The module as written, without leading dots: `a.b`; empty for `from . import b`.
    pub(super) module: String,
    /// The imported names, which may be modules too.
    pub(super) names: Vec<String>,
    /// The number of leading dots; 0 for an absolute import.
    pub(super) level: usize,
    /// Its line, counted from 1.
    pub(super) line: usize,
    /// Whether the script continues without it.
    pub(super) is_optional: bool,
}

/// Returns the first imports of a script, in order. Strings and comments are skipped, as are
/// imports for type checkers only.
pub(super) fn python_imports(text: &str, most: usize) -> Vec<PythonImport> {
    let lines = statements(text);
    let mut imports = Vec::new();
    let mut blocks: Vec<Block> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        while blocks.last().is_some_and(|it| line.indent <= it.indent) {
            blocks.pop();
        }
        let kind = block_kind(&lines, at);
        let inside = blocks.iter().map(|it| it.kind).chain(kind);
        let strongest = inside.max().unwrap_or(BlockKind::Plain);
        if strongest != BlockKind::Typing {
            let is_optional = strongest == BlockKind::Optional;
            imports.extend(parse_imports(&line.text, line.number, is_optional));
        }
        if imports.len() >= most {
            imports.truncate(most);
            break;
        }
        if let Some(kind) = kind {
            blocks.push(Block { indent: line.indent, kind });
        }
    }
    imports
}

/// Whether a script has a `__main__` guard.
pub(super) fn has_main(text: &str) -> bool {
    text.lines().any(|it: &str| {
        let it = it.trim_start();
        it.starts_with("if") && it.contains("__name__") && it.contains("__main__")
    })
}

struct Block {
    indent: usize,
    kind: BlockKind,
}

/// The condition of the imports inside of a block; the later kinds take precedence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum BlockKind {
    Plain,
    /// The script continues without them.
    Optional,
    /// They are for type checkers only.
    Typing,
}

/// A statement without strings and comments, on one line.
#[derive(Debug)]
struct Statement {
    indent: usize,
    number: usize,
    text: String,
}

/// Returns the kind of block that a statement opens.
fn block_kind(lines: &[Statement], at: usize) -> Option<BlockKind> {
    let text = lines[at].text.as_str();
    let word = text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    match word {
        "try" if text[word.len()..].trim_start().starts_with(':') => {
            Some(if handles_failure(lines, at) { BlockKind::Optional } else { BlockKind::Plain })
        }
        // The alternative import.
        "except" if catches_import(text) => Some(BlockKind::Optional),
        "if" | "elif" if text.contains("TYPE_CHECKING") && !text.contains("not ") => {
            Some(BlockKind::Typing)
        }
        "if" | "elif" if text.contains("version_info") || text.contains("platform") => {
            Some(BlockKind::Optional)
        }
        "else" => {
            let indent = lines[at].indent;
            let before = lines[..at].iter().rev().take(200).take_while(|it| it.indent >= indent);
            let opens =
                before.filter(|it| it.indent == indent).find(|it| it.text.starts_with("if "));
            let is_optional = opens.is_some_and(|it| it.text.contains("version_info"));
            Some(if is_optional { BlockKind::Optional } else { BlockKind::Plain })
        }
        _ => None,
    }
}

/// Whether a script continues when an import of the `try` block at this line fails: a handler
/// catches the error, and does not end the script.
fn handles_failure(lines: &[Statement], at: usize) -> bool {
    let indent = lines[at].indent;
    let rest = &lines[at + 1..];
    let body = rest.iter().take_while(|it| it.indent > indent).count();
    // A handler for all errors is meant for the import only if that comes first.
    let is_first = rest.first().is_some_and(|it| is_import(&it.text));
    let mut is_caught = false;
    let mut is_handler = false;
    for line in &rest[body..] {
        let text = line.text.as_str();
        if line.indent <= indent {
            if line.indent < indent || !is_clause(text) {
                break;
            }
            is_handler = text.starts_with("except")
                && (names_import(text) || is_first && catches_import(text));
            is_caught |= is_handler;
        }
        if is_handler && ends_script(text) {
            return false;
        }
    }
    is_caught
}

/// Whether a line belongs to the `try` above it.
fn is_clause(text: &str) -> bool {
    ["except", "else", "finally"].iter().any(|it| text.starts_with(it))
}

fn is_import(text: &str) -> bool {
    text.starts_with("import ") || text.starts_with("from ")
}

fn names_import(text: &str) -> bool {
    text.contains("ImportError") || text.contains("ModuleNotFoundError")
}

fn catches_import(text: &str) -> bool {
    let caught = text.trim_start_matches("except").trim_start();
    caught.starts_with(':') || caught.contains("Exception") || names_import(caught)
}

fn ends_script(text: &str) -> bool {
    let text = text
        .split_once(':')
        .map_or(text, |it| if it.0.starts_with("except") { it.1 } else { text });
    let text = text.trim_start();
    ["sys.exit", "exit(", "quit(", "os._exit", "raise"].iter().any(|it| text.starts_with(it))
}

/// Parses the imports of one statement; if it opens a block, those after its colon.
fn parse_imports(text: &str, line: usize, is_optional: bool) -> Vec<PythonImport> {
    let text = match text.rsplit_once(": ") {
        Some((_, it)) if it.starts_with("import ") || it.starts_with("from ") => it,
        _ => text,
    };
    if let Some(modules) = text.strip_prefix("import ") {
        return names(modules)
            .map(|module| {
                let module = module.to_owned();
                PythonImport { module, names: Vec::new(), level: 0, line, is_optional }
            })
            .collect();
    }
    let Some(rest) = text
        .strip_prefix("from ")
        .or_else(|| text.strip_prefix("from").filter(|it| it.starts_with('.')))
    else {
        return Vec::new();
    };
    let Some((path, imported)) = rest.split_once("import") else { return Vec::new() };
    let path: String = path.split_whitespace().collect();
    if !is_name(&path) {
        return Vec::new();
    }
    let module = path.trim_start_matches('.').to_owned();
    let level = path.len() - module.len();
    let names = names(imported).map(str::to_owned).collect();
    vec![PythonImport { module, names, level, line, is_optional }]
}

/// Returns the names in a list of imports, without their aliases.
fn names(list: &str) -> impl Iterator<Item = &str> {
    let words = list.split([',', '(', ')']).filter_map(|it| it.split_whitespace().next());
    words.filter(|it| is_name(it))
}

/// Whether a text can be the name of a module, with dots.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.')
}

/// Splits a text into statements, without strings and comments, and with lines inside of brackets
/// joined.
fn statements(text: &str) -> Vec<Statement> {
    let mut found = Vec::new();
    let mut statement = Statement { indent: 0, number: 1, text: String::new() };
    let (mut depth, mut number, mut is_start) = (0_usize, 1, true);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let mut length = c.len_utf8();
        match c {
            '#' => length = rest.find('\n').unwrap_or(rest.len()),
            '\\' if rest[1..].starts_with(['\n', '\r']) => {
                length += rest[1..].find('\n').map_or(1, |it| it + 1);
                number += 1;
                statement.text.push(' ');
            }
            '\'' | '"' => {
                length = string_length(rest);
                number += rest[..length].matches('\n').count();
                // A placeholder that is not a name.
                statement.text.push('\'');
                is_start = false;
            }
            '\n' | ';' if depth == 0 => {
                let ended = std::mem::take(&mut statement.text);
                let (indent, begun) = (statement.indent, statement.number);
                if !ended.trim().is_empty() {
                    found.push(Statement { indent, number: begun, text: ended.trim().to_owned() });
                }
                number += usize::from(c == '\n');
                is_start = c == '\n';
                statement.number = number;
                statement.indent = if is_start { 0 } else { indent };
            }
            '\n' => {
                number += 1;
                statement.text.push(' ');
                // An unclosed bracket ends at an unindented statement.
                if ["import ", "from ", "def ", "class "].iter().any(|it| rest[1..].starts_with(it))
                {
                    depth = 0;
                    continue;
                }
            }
            ' ' if is_start => statement.indent += 1,
            '\t' if is_start => statement.indent = statement.indent / 8 * 8 + 8,
            _ => {
                match c {
                    '(' | '[' | '{' => depth += 1,
                    ')' | ']' | '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                is_start = false;
                let is_space = c.is_whitespace();
                statement.text.push(if is_space { ' ' } else { c });
            }
        }
        rest = &rest[length..];
    }
    if !statement.text.trim().is_empty() {
        statement.text = statement.text.trim().to_owned();
        found.push(statement);
    }
    found
}

/// Returns the length of a string with its quotes. An unclosed one ends with its line, or with the
/// text if it is triple-quoted.
pub(super) fn string_length(text: &str) -> usize {
    let quote = &text[..1];
    let triple = quote.repeat(3);
    let (close, is_long) =
        if text.starts_with(&triple) { (triple.as_str(), true) } else { (quote, false) };
    let bytes = text.as_bytes();
    let mut at = close.len();
    while at < bytes.len() {
        match bytes[at] {
            // A raw string also continues after a quote preceded by `\`.
            b'\\' => at += 2,
            b'\n' if !is_long => return at,
            _ if bytes[at..].starts_with(close.as_bytes()) => return at + close.len(),
            _ => at += 1,
        }
    }
    while !text.is_char_boundary(at.min(text.len())) {
        at += 1;
    }
    at.min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str) -> Vec<String> {
        let shown = |it: PythonImport| {
            let optional = if it.is_optional { "?" } else { "" };
            let dots = ".".repeat(it.level);
            format!("{}:{dots}{}{optional} {}", it.line, it.module, it.names.join(","))
        };
        python_imports(text, 100).into_iter().map(|it| shown(it).trim().to_owned()).collect()
    }

    #[test]
    fn imports_are_read_and_strings_are_not() {
        let text = "\"\"\"import a\nfrom b import c\n\"\"\"\nimport os, sys as s; import x.y\n\
            s = 'import d' # import e\nfrom . import f\nfrom ..g import (\n  h,  # one\n  i as j,\n)\n\
            def k():\n\timport l\nif 1: import m\nx = f(r'\\\\', '\\'')\nimport \\\n  n\n\
            importlib.import_module('o')\nyield_from = 1\nfrom p import *\n";
        let expected =
            ["4:os", "4:sys", "4:x.y", "6:. f", "7:..g h,i", "12:l", "13:m", "15:n", "19:p"];
        assert_eq!(find(text), expected);
    }

    #[test]
    fn an_import_is_optional_when_the_script_goes_on_without_it() {
        let text = "try:\n    import a\nexcept ImportError:\n    a = None\n\
            try:\n    import b\nexcept ImportError:\n    print('install b')\n    sys.exit(1)\n\
            try:\n    import c\nexcept ImportError as e:\n    raise SystemExit(1)\n\
            try:\n    import d\nexcept ImportError:\n    import e\n\
            try:\n    import f\nfinally:\n    pass\n\
            try:\n    import g\nexcept ValueError:\n    pass\n\
            if sys.version_info >= (3, 11):\n    import h\nelse:\n    import i\n\
            if TYPE_CHECKING:\n    import j\nif not TYPE_CHECKING:\n    import k\nimport l\n";
        let expected = [
            "2:a?", "6:b", "11:c", "15:d?", "17:e?", "19:f", "23:g", "27:h?", "29:i?", "33:k",
            "34:l",
        ];
        assert_eq!(find(text), expected);
    }

    #[test]
    fn a_text_that_is_no_python_does_no_harm() {
        for text in [
            "(",
            "'",
            "\"\"\"",
            "\\",
            "from",
            "import ",
            "from . import",
            "é'\\é",
            "try:",
            "x = (\nimport a",
        ] {
            python_imports(text, 100);
        }
        assert_eq!(python_imports(&"import a\n".repeat(9_000), 100).len(), 100);
    }

    proptest::proptest! {
        #[test]
        fn any_text_can_be_read(text in "(?s)[a-z'\"\\\\#;:(){}\\n\\t é]{0,80}|.{0,80}") {
            python_imports(&text, 100);
        }
    }
}
