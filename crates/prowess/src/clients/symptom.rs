//! Properties of skills that clients treat differently.

use crate::spec::{MAX_DESCRIPTION, MAX_NAME};

/// A property of a skill that clients treat differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Symptom {
    /// Its file is in the directory itself, not in a folder of its own.
    AtRoot,
    /// It is nested more folders deep than this.
    Deeper(usize),
    /// A link leads to its folder.
    FolderLink,
    /// A link leads to its folder, in a project.
    ProjectLink,
    /// Its file is a link.
    FileLink,
    /// Its file is named `SKILL.md` in another case.
    FileName,
    /// It belongs to a project.
    InProject,
    /// The file has more bytes than this.
    FileOver(u64),
    /// The instructions have more bytes than this.
    BodyOver(u64),
    /// The file begins with a byte order mark.
    ByteOrderMark,
    /// The file is not UTF-8.
    NotUtf8,
    /// There is no frontmatter.
    NoFrontmatter,
    /// There are blank lines before the frontmatter, or spaces beside its dashes.
    Delimiters,
    /// The frontmatter is closed by something other than three dashes.
    OddEnd,
    /// The frontmatter is not YAML, but quoting values makes it so.
    NotYaml,
    /// The frontmatter is not YAML, and quoting does not help.
    Garbled,
    /// The frontmatter is YAML that is not parsed here, so that its fields are unknown.
    Unread,
    /// A field occurs twice.
    DuplicateKey,
    /// The frontmatter contains three dashes.
    DashesInside,
    /// There is no name.
    NameMissing,
    /// The name is not of this form.
    NameForm(Form),
    /// The name has more characters than this.
    NameOver(usize),
    /// The name differs from that of the folder.
    NameNotFolder(Letters),
    /// There is no description.
    DescriptionMissing,
    /// The description has more characters than this.
    DescriptionOver(usize),
    /// A value in `metadata` is not a string.
    MetadataNested,
    /// It has `disable-model-invocation: true`.
    NotForModels,
    /// It has `user-invocable: false`.
    NotForPeople,
}

/// The form of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// Lowercase ASCII words joined by hyphens, as most clients read the specification.
    Words,
    /// The same in any case.
    AnyCase,
    /// The same, with dots as well as hyphens.
    Dotted,
    /// ASCII words joined by hyphens, underscores, dots, colons and spaces, beginning with a letter
    /// or a digit.
    Spaced,
    /// Anything without a slash.
    NoSlash,
}

/// The case sensitivity of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letters {
    /// Case-sensitive.
    Exact,
    /// Case-insensitive.
    AnyCase,
}

/// The symptoms that the specification forbids or leaves to clients: a client without a fact about
/// such a symptom may do anything.
pub(crate) const OPEN: &[Symptom] = &[
    Symptom::AtRoot,
    Symptom::Deeper(1),
    Symptom::FolderLink,
    Symptom::FileLink,
    Symptom::FileName,
    Symptom::ByteOrderMark,
    Symptom::NotUtf8,
    Symptom::NoFrontmatter,
    Symptom::Delimiters,
    Symptom::OddEnd,
    Symptom::NotYaml,
    Symptom::Garbled,
    Symptom::Unread,
    Symptom::DuplicateKey,
    Symptom::NameMissing,
    Symptom::NameForm(Form::Words),
    Symptom::NameOver(MAX_NAME),
    Symptom::NameNotFolder(Letters::Exact),
    Symptom::DescriptionMissing,
    Symptom::DescriptionOver(MAX_DESCRIPTION),
    Symptom::MetadataNested,
    Symptom::NotForModels,
    Symptom::NotForPeople,
];
