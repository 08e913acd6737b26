//! The rules about what makes a skill easy to find, to read and to trust.

use super::body::prose;
use crate::{
    finding::{Position, Report, rule},
    read::{manifest::Manifest, parse::SplitDocument},
};

pub(super) fn check(reading: &SplitDocument<'_>, manifest: &Manifest, report: &mut Report) {
    let fields = reading.fields.as_deref().unwrap_or_default();
    let description = fields.iter().find(|it| it.key == "description");
    let dialect = manifest.dialect();
    // Invalid text has to be fixed first.
    let is_text =
        !report.findings.iter().any(|it| std::ptr::eq(it.rule, &rule::DESCRIPTION_NOT_TEXT));
    let says_when = !is_text
        || dialect.when_to_use.is_some()
        || !dialect.triggers.is_empty()
        || dialect.disable_model_invocation == Some(true)
        || is_template_text(&manifest.description)
        || says_when(&manifest.description);
    if let Some(field) = description.filter(|_| !says_when) {
        report.note(
            &rule::DESCRIPTION_WHEN,
            reading.at(field),
            || "the description does not say when to use the skill".to_owned(),
            "add a sentence such as `Use when …`, in the words of a request",
        );
    }
    let body = reading.document.body;
    if let Some((line, what)) = find_unpinned(body.text) {
        report.note(
            &rule::UNPINNED_PACKAGE,
            Position::line(body.line + line),
            || format!("`{what}` has no version, so the latest one is fetched"),
            "add a version, such as `npx tool@1.2.3` or `pip install tool==1.2.3`",
        );
    }
    if dialect.argument_hint.is_none()
        && let Some(line) = find_argument(body.text)
    {
        report.note(
            &rule::ARGUMENT_HINT,
            Position::line(body.line + line),
            || "the instructions take arguments, but there is no `argument-hint`".to_owned(),
            "add `argument-hint: \"[file]\"` to the frontmatter",
        );
    }
}

/// Words of a description that say when to use a skill. Parts of words match too. The other places
/// of a language are `index/lexicon/`, `index/stop.rs` and `index/endings.rs`.
#[rustfmt::skip]
const WHEN: &[&str] = &[
    // English
    "when", "use for", "use this", "use to ", "use it", "use if", "use in ", "use on ", "used for", "used to", "used by", "use the skill",
    "use before", "use after", "use as", "use with", "use at", "use only", "use during", "use proactively", "use immediately",
    " if ", "trigger", "invoke", "activat", "before ", "after ", "upon ", "during ", "while ", "asks", "asked", "asking", "mention", "request",
    "useful for", "ideal for", "best for", "perfect for", "suitable", "for tasks", "for use", "need to", "needs to", "want to", "wants to",
    "applies to", "apply to", "helps you", "for any", "for all", "always ", "must be used", "should be used", "consult", "load this", "read this", "run this",
    "for projects", "for questions", "call this", "covers questions", "user says", "users say",
    // German, French, Spanish, Portuguese, Italian, Dutch, Polish, Turkish
    "wenn", "sobald", "verwende", "nutze", "benutze", "beim ", "falls", "quand", "lorsqu", "utilis", "pour ", "cuando", "usar", "úsal", "usa ", "utiliza",
    "quando", "sempre que", "usare", "wanneer", "gebruik", "kiedy", "gdy", "używaj", "kullan", "zaman",
    // Vietnamese, Indonesian, Russian, Ukrainian
    "khi ", "dùng", "saat ", "ketika", "gunakan", "когда", "если", "использ", "при ", "коли", "якщо", "використ",
    // Chinese, Japanese, Korean, Arabic, Hindi
    "当", "當", "时", "時", "用于", "用於", "使用", "适用", "適用", "场景", "需要", "触发", "用户", "如果", "とき", "場合", "際", "때", "경우", "사용", "عند", "إذا", "استخد", "जब", "उपयोग",
];

fn says_when(description: &str) -> bool {
    let text = format!(" {} ", description.to_lowercase());
    WHEN.iter().any(|it| text.contains(it))
}

/// Texts that templates and generators leave in place of a description, in lower case.
#[rustfmt::skip]
const TEMPLATES: &[&str] = &[
    "todo:", "[todo", "lorem ipsum", "see skill.md body for details", "use when skill:", "your description here", "description goes here",
    "insert description", "enter description", "add description here", "add a description", "replace with description", "replace this description",
    "describe what this skill does", "describe what the skill does", "describe when to use this skill", "brief description of what this skill",
    "a clear description of what this skill", "what this skill does and when to use it", "<description>", "{description}", "{{description}}",
];

/// Whether a description is still the text of a template.
pub(crate) fn is_template_text(description: &str) -> bool {
    let text = description.trim().to_lowercase();
    let word = text.trim_end_matches(['.', '…', '!']);
    is_in_brackets(&text)
        || text.starts_with("todo")
        || ["tbd", "description", "placeholder", "n/a", "none", "a skill", "my skill", "xxx"]
            .contains(&word)
        || TEMPLATES.iter().any(|it| text.contains(it))
}

/// Whether a whole text is in brackets, as what templates leave to be filled in.
pub(super) fn is_in_brackets(text: &str) -> bool {
    (text.starts_with("{{") && text.ends_with("}}"))
        || (text.starts_with('[') && text.ends_with(']'))
}

/// Tools that a project installs in a version of its own, which `npx` prefers.
#[rustfmt::skip]
const OF_PROJECTS: &[&str] = &[
    "astro", "cypress", "drizzle-kit", "eslint", "expo", "hardhat", "jest", "next", "nx", "playwright", "prettier", "prisma", "storybook", "tailwindcss",
    "tsc", "tsx", "turbo", "vite", "vitest", "webpack", "wrangler",
];

/// Returns the first line that downloads and runs or installs an unpinned package, and the command.
fn find_unpinned(text: &str) -> Option<(usize, String)> {
    text.lines().enumerate().find_map(|(number, line)| {
        let mut commands = line.split(['`', ';', '|', '(']).flat_map(|it| it.split("&&"));
        commands.find_map(unpinned_command).map(|it| (number, it))
    })
}

fn unpinned_command(command: &str) -> Option<String> {
    let mut words =
        command.trim().trim_start_matches(['$', '>', '-', '*']).split_whitespace().peekable();
    if words.peek() == Some(&"sudo") {
        words.next();
    }
    let program = words.next()?;
    let (prefix, package) = match program {
        // With `-y` it is meant to be downloaded.
        "npx" | "bunx" if words.peek().is_some_and(|it| OF_PROJECTS.contains(it)) => return None,
        "npx" | "bunx" | "uvx" | "pipx" => {
            let mut rest = words.by_ref().filter(|it| *it != "run");
            let package = rest.find(|it| !matches!(*it, "-y" | "--yes" | "-q" | "--quiet"))?;
            // Other options may name the package, or a package that is already installed.
            (program, package)
        }
        "pip" | "pip3" if words.next()? == "install" => ("pip install", words.next()?),
        _ => return None,
    };
    let is_loose = is_package(package)
        && !has_version(package)
        && (package.starts_with('@') || !package.contains(['/', '<', '>', '~']))
        && !package.ends_with(".txt");
    is_loose.then(|| format!("{prefix} {package}"))
}

fn is_package(word: &str) -> bool {
    let name = word.strip_prefix('@').unwrap_or(word);
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./@=[]~^<>!,".contains(c))
        && !word.ends_with(['.', ','])
}

fn has_version(package: &str) -> bool {
    package.get(1..).is_some_and(|it| it.contains('@')) || package.contains("==")
}

/// Returns the first line with an argument placeholder.
fn find_argument(text: &str) -> Option<usize> {
    let all = text.lines().enumerate().find(|it| it.1.contains("$ARGUMENTS")).map(|it| it.0);
    all.or_else(|| prose(text).find(|it| has_first_argument(it.1)).map(|it| it.0))
}

/// Whether a line has the placeholder `$1`: in code, that is a shell variable, and before more
/// digits, a price.
fn has_first_argument(line: &str) -> bool {
    line.split('`').step_by(2).any(|text| {
        let mut rests = text.match_indices("$1").map(|it| &text[it.0 + 2..]);
        rests.any(|rest| {
            !rest.starts_with(|c: char| c.is_ascii_digit() || ".,kKmMbB%".contains(c))
                && !rest
                    .trim_start()
                    .starts_with(|c: char| c.is_ascii_digit() || "-–/+".contains(c))
        })
    })
}
