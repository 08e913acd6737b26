//! All rules: a stable code, and the severity in each profile.

use crate::finding::Severity;

/// A named check. Its code is public and never changes.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// The code, such as `name-missing`.
    pub code: &'static str,
    /// The requirement of the rule, in one line.
    pub summary: &'static str,
    /// The documentation of the rule, in Markdown: why it exists, a bad and a good example, and how
    /// to fix a violation.
    pub page: &'static str,
    lenient: Option<Severity>,
    spec: Option<Severity>,
    reference: Option<Severity>,
}

/// The set of rules that are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// The rules of the major clients: cosmetic faults have a low severity.
    Lenient,
    /// The open Agent Skills specification, and rules against common problems.
    #[default]
    Spec,
    /// The rules of the reference library `skills-ref`, in its order.
    Reference,
}

impl Rule {
    /// Creates a rule of another crate, whose severity is the same in all profiles.
    pub const fn new(
        code: &'static str,
        summary: &'static str,
        page: &'static str,
        severity: Severity,
    ) -> Self {
        let severity = Some(severity);
        Self { code, summary, page, lenient: severity, spec: severity, reference: severity }
    }

    /// Returns the severity of the rule; `None` if the profile does not include it.
    pub fn severity(&self, profile: Profile) -> Option<Severity> {
        match profile {
            Profile::Lenient => self.lenient,
            Profile::Spec => self.spec,
            Profile::Reference => self.reference,
        }
    }
}

const E: Option<Severity> = Some(Severity::Error);
const W: Option<Severity> = Some(Severity::Warning);
const I: Option<Severity> = Some(Severity::Info);
const N: Option<Severity> = None;

/// Declares the rules, and the list of them; each has its page in `rules/`. The columns are
/// lenient, spec, reference.
macro_rules! rules {
    ($($name:ident $code:literal $lenient:ident $spec:ident $reference:ident $summary:literal;)*) => {
        $(pub(crate) static $name: Rule = Rule {
            code: $code,
            summary: $summary,
            page: include_str!(concat!("../../rules/", $code, ".md")),
            lenient: $lenient,
            spec: $spec,
            reference: $reference,
        };)*

        /// All rules, in the order in which the reference profile reports.
        pub static RULES: &[&Rule] = &[$(&$name),*];
    };
}

rules! {
    // The folder and its file.
    DIRECTORY_MISSING "directory-missing" W W W "a configured directory exists";
    DIRECTORY_UNREADABLE "directory-unreadable" E E E "a directory can be read";
    FILE_UNREADABLE "file-unreadable" E E E "SKILL.md can be read";
    FILE_NOT_REGULAR "file-not-regular" E E E "SKILL.md is a regular file";
    FILE_TOO_LARGE "file-too-large" E E E "SKILL.md is within the size limit";
    FILE_NAME "file-name" W E N "the file is called exactly SKILL.md";
    LINK_ESCAPES "link-escapes" E E E "a link stays within the configured directories";
    LINK_BROKEN "link-broken" W W W "the target of a link exists";
    // Its text.
    ENCODING "encoding" W E E "the text is valid UTF-8";
    ENCODING_UTF16 "encoding-utf16" W E E "the text is not UTF-16";
    BYTE_ORDER_MARK "byte-order-mark" I I E "the text has no byte order mark";
    LINE_ENDINGS "line-endings" I I N "lines end with LF";
    // Its frontmatter.
    FRONTMATTER_MISSING "frontmatter-missing" E E E "the file begins with frontmatter between `---` lines";
    FRONTMATTER_UNCLOSED "frontmatter-unclosed" E E E "the frontmatter is closed by a `---` line";
    FRONTMATTER_DELIMITER "frontmatter-delimiter" W W E "the delimiters are exactly `---`, the first in line 1";
    FRONTMATTER_TOO_LARGE "frontmatter-too-large" E E E "the frontmatter is within 64 KiB";
    YAML_INVALID "yaml-invalid" E E E "the frontmatter is YAML";
    YAML_UNSAFE "yaml-unsafe" E E E "the frontmatter has no aliases, tags or deep nesting";
    YAML_NOT_MAP "yaml-not-map" E E E "the frontmatter is a map";
    YAML_REPAIRED "yaml-repaired" W E E "a value that YAML would misread is quoted";
    YAML_RESCUED "yaml-rescued" W E E "all of the frontmatter can be read";
    YAML_STRICT "yaml-strict" N I E "the frontmatter is YAML that the reference validator reads";
    DUPLICATE_KEY "duplicate-key" E E E "a key is used once";
    COMMENT_CUT "comment-cut" W W N "a value with ` #` in it is quoted";
    // Its fields, in the order of the reference library.
    UNKNOWN_FIELD "unknown-field" N W E "the fields are those of the specification";
    VENDOR_FIELD "vendor-field" N I N "a field of one client may be ignored by others";
    NAME_MISSING "name-missing" W E E "there is a name";
    NAME_NOT_TEXT "name-not-text" W E N "the name is text";
    NAME_PATH "name-path" E E N "the name is not a path, and not a reserved name";
    NAME_TOO_LONG "name-too-long" W E E "the name has at most 64 characters";
    NAME_CASE "name-case" W E E "the name is lowercase";
    NAME_EDGE "name-edge" W E E "the name neither begins nor ends with a hyphen";
    NAME_HYPHENS "name-hyphens" W E E "the name does not have two hyphens in a row";
    NAME_CHARACTERS "name-characters" W E E "the name has only letters, digits and hyphens";
    NAME_FOLDER "name-folder" W E E "the name matches the folder";
    NAME_NOT_ASCII "name-not-ascii" I W N "the name is ASCII, as most clients require";
    NAME_RESERVED "name-reserved" I W N "the name does not contain `claude` or `anthropic`, which the Claude API does not accept";
    NAME_WINDOWS "name-windows" W W N "the name can be a folder on Windows";
    NAME_CONFUSABLE "name-confusable" W W N "no other name differs only in case or look-alike characters";
    SAME_CONTENT "same-content" I I N "no skill is a copy of another";
    NAME_TAKEN "name-taken" W W N "no other skill has the same name";
    DESCRIPTION_MISSING "description-missing" E E E "there is a description";
    DESCRIPTION_NOT_TEXT "description-not-text" W E N "the description is text";
    DESCRIPTION_TOO_LONG "description-too-long" W E E "the description has at most 1024 characters";
    DESCRIPTION_CUT "description-cut" N I N "the description fits into the lists of all clients";
    DESCRIPTION_WHEN "description-when" N I N "the description says when to use the skill";
    DESCRIPTION_BRACKETS "description-brackets" I W N "the description has no angle brackets, which the Claude API does not accept";
    COMPATIBILITY "compatibility" I E E "compatibility is text of 1 to 500 characters";
    LICENSE_NOT_TEXT "license-not-text" I E N "the license is text";
    METADATA_NOT_MAP "metadata-not-map" W E N "metadata is a map";
    METADATA_NESTED "metadata-nested" N W N "the values of metadata are text";
    ALLOWED_TOOLS_FORM "allowed-tools-form" N W N "allowed-tools is a string with spaces between the tools";
    ALLOWED_TOOLS_NOT_TEXT "allowed-tools-not-text" W E N "allowed-tools is a string or a list of strings";
    TAGS_NOT_LIST "tags-not-list" E E E "tags are a list";
    FIELD_TYPE "field-type" W W N "a field has the required type";
    SCALAR_NOT_TEXT "scalar-not-text" N W N "a text that looks like a number, date or boolean is quoted";
    DEFINITION "definition" W W N "a composite, script or template skill has its definition";
    SCRIPT_DANGEROUS "script-dangerous" W E N "a script has no dangerous commands";
    HIDDEN_CHARACTERS "hidden-characters" W W N "the text has no invisible or direction-changing characters";
    // Its body and the files beside it.
    BODY_EMPTY "body-empty" I I N "there are instructions";
    BODY_LONG "body-long" N W N "the instructions are at most 500 lines and about 5000 tokens";
    PLACEHOLDER "placeholder" N W N "no template text is left";
    ARGUMENT_HINT "argument-hint" N I N "a skill that takes arguments has a hint for them";
    UNPINNED_PACKAGE "unpinned-package" N I N "packages that the instructions fetch have a version";
    REFERENCE_MISSING "reference-missing" I W N "a file that the instructions link to exists";
    REFERENCE_OUTSIDE "reference-outside" I W N "links lead to files inside the skill";
    REFERENCE_CHAIN "reference-chain" N I N "references do not link to further references";
    REFERENCE_CONTENTS "reference-contents" N I N "a long reference begins with a table of contents";
    RESOURCE_UNMENTIONED "resource-unmentioned" N I N "the instructions mention the files of the skill";
    NESTED_SKILL "nested-skill" W W N "no skill is inside another";
    RESOURCE_TOO_LARGE "resource-too-large" W W N "a resource is within the size limit";
    RESOURCE_UNREADABLE "resource-unreadable" W W N "a resource can be read";
    RESOURCE_NOT_REGULAR "resource-not-regular" W W N "a resource is a regular file";
    SKILL_TOO_LARGE "skill-too-large" E E N "all files of the skill together are within the size limit";
    SKILL_TOO_MANY_FILES "skill-too-many-files" I W N "a skill has at most 512 files and 16 MiB, which every MCP host accepts";
    EVALS "evals" I W N "evals/evals.json can be read";
    // The library.
    INCLUDE_UNMATCHED "include-unmatched" W W W "every name to include is the name of a skill";
    KEPT_LAST_GOOD "kept-last-good" E E E "a skill that was edited can still be read";
    TOO_DEEP "too-deep" W W N "directories are not nested too deeply";
}

/// Finds a rule by its code.
pub fn rule(code: &str) -> Option<&'static Rule> {
    RULES.iter().find(|it| it.code == code).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_words_joined_by_hyphens() {
        let mut codes: Vec<&str> = RULES.iter().map(|it| it.code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), RULES.len());
        assert!(codes.iter().all(|it| {
            it.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        }));
    }
}
