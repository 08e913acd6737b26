//! Properties of skills that clients treat differently.

/// Something about a skill that clients treat differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symptom {
    /// Its file lies in the directory itself, in no folder of its own.
    AtRoot,
    /// It lies more folders deep than this.
    Deeper(usize),
    /// A link leads to its folder.
    FolderLink,
    /// The same in a project.
    ProjectLink,
    /// Its file is a link.
    FileLink,
    /// Its file is called `SKILL.md` in other letters.
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
    /// Blank lines stand before the frontmatter, or spaces beside its dashes.
    Delimiters,
    /// The frontmatter is closed by something else than three dashes.
    OddEnd,
    /// The frontmatter is not YAML, and becomes so when values are quoted.
    NotYaml,
    /// The frontmatter is not YAML, and no quotes help.
    Garbled,
    /// The frontmatter is YAML that is not read here, so that nothing of it is known.
    Unread,
    /// A field stands twice.
    DuplicateKey,
    /// Three dashes stand inside of the frontmatter.
    DashesInside,
    /// There is no name.
    NameMissing,
    /// The name is not written like this.
    NameForm(Form),
    /// The name has more characters than this.
    NameOver(usize),
    /// The name is not that of the folder.
    NameNotFolder(Letters),
    /// There is no description.
    DescriptionMissing,
    /// The description has more characters than this.
    DescriptionOver(usize),
    /// A value in `metadata` is not a single text.
    MetadataNested,
    /// It says `disable-model-invocation: true`.
    NotForModels,
    /// It says `user-invocable: false`.
    NotForPeople,
}

/// How a name is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Lowercase words of ASCII with hyphens between them, as most clients read the specification.
    Words,
    /// The same in any case.
    AnyCase,
    /// The same, with dots as well as hyphens.
    Dotted,
    /// Words of ASCII with hyphens, underscores, dots, colons and spaces, a letter or a digit first.
    Spaced,
    /// Anything without a slash.
    NoSlash,
}

/// Whether letters of another case are other letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letters {
    /// They are.
    Exact,
    /// They are not.
    AnyCase,
}

/// What the specification forbids to skills or leaves to clients: where nothing is known of a client for such a
/// symptom, it may do anything.
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
    Symptom::NameOver(64),
    Symptom::NameNotFolder(Letters::Exact),
    Symptom::DescriptionMissing,
    Symptom::DescriptionOver(1024),
    Symptom::MetadataNested,
    Symptom::NotForModels,
    Symptom::NotForPeople,
];
