//! Symptoms at which clients differ: how they are detected, and how to fix them.

use super::{
    candidate::{Candidate, Fault, Text},
    survey::{ClientPath, Link},
};

use crate::{
    clients::{Form, Letters, Symptom},
    read::name::is_plain_name,
    spec::SKILL_FILE,
    text::shorten::beginning,
};

impl Symptom {
    /// Whether it depends on the path that leads to a file, and not on the file alone.
    pub(super) fn is_about_path(self) -> bool {
        let of_depth = matches!(self, Self::AtRoot | Self::Deeper(_));
        self.is_about_link() || of_depth || matches!(self, Self::InProject | Self::NameNotFolder(_))
    }

    /// Whether it is about a link.
    pub(super) fn is_about_link(self) -> bool {
        matches!(self, Self::FolderLink | Self::ProjectLink | Self::FileLink)
    }

    /// Whether a file has this symptom, as a client finds it; without a `client_path`, for a client
    /// whose user names the directories.
    pub(super) fn applies_to(
        self,
        candidate: &Candidate,
        client_path: Option<&ClientPath<'_>>,
    ) -> bool {
        let name = candidate.name.as_deref();
        match self {
            Self::AtRoot => client_path.is_some_and(|it| it.depth == 0),
            Self::Deeper(depth) => client_path.is_some_and(|it| it.depth > depth),
            Self::FolderLink => client_path.map_or(candidate.link, |it| it.link) == Link::Folder,
            Self::ProjectLink => {
                client_path.is_some_and(|it| it.link == Link::Folder && it.is_in_project)
            }
            Self::FileLink => client_path.map_or(candidate.link, |it| it.link) == Link::Document,
            Self::InProject => client_path.is_some_and(|it| it.is_in_project),
            Self::FileName => candidate.file_name != SKILL_FILE,
            Self::FileOver(bytes) => candidate.size > bytes,
            Self::BodyOver(bytes) => candidate.body > bytes,
            Self::ByteOrderMark => candidate.has_mark,
            Self::NotUtf8 => !candidate.is_utf8,
            Self::NoFrontmatter => candidate.text == Text::NoFrontmatter,
            Self::Delimiters => candidate.has_blanks,
            Self::OddEnd => candidate.has_odd_end,
            Self::NotYaml => matches!(candidate.text, Text::Mended | Text::Garbled),
            Self::Garbled => candidate.text == Text::Garbled,
            Self::Unread => candidate.text == Text::Unread,
            Self::DuplicateKey => candidate.has_duplicates,
            Self::DashesInside => candidate.has_dashes,
            Self::NameMissing => candidate.is_read() && name.is_none(),
            Self::NameForm(form) => name.is_some_and(|it| !form.fits(it)),
            Self::NameOver(most) => name.is_some_and(|it| it.chars().count() > most),
            Self::NameNotFolder(letters) => {
                name.is_some_and(|it| !letters.are_same(it, &candidate.folder(client_path)))
            }
            Self::DescriptionMissing => candidate.is_read() && candidate.description.is_none(),
            Self::DescriptionOver(most) => candidate.description.is_some_and(|it| it > most),
            Self::MetadataNested => candidate.is_nested,
            Self::NotForModels => candidate.hides_from_model,
            Self::NotForPeople => candidate.hides_from_people,
        }
    }

    /// Describes the symptom.
    pub fn about(self) -> String {
        match self {
            Self::AtRoot => "`SKILL.md` is not in a folder of its own".to_owned(),
            Self::Deeper(1) => "it is more than 1 folder deep".to_owned(),
            Self::Deeper(depth) => format!("it is more than {depth} folders deep"),
            Self::FolderLink => "its folder is a link".to_owned(),
            Self::ProjectLink => "its folder is a link inside a project".to_owned(),
            Self::FileLink => "its `SKILL.md` is a link".to_owned(),
            Self::FileName => "the file name is not exactly `SKILL.md`".to_owned(),
            Self::InProject => "it belongs to a project".to_owned(),
            Self::FileOver(most) => format!("the file has more than {}", format_size(most)),
            Self::BodyOver(most) => {
                format!("the instructions have more than {}", format_size(most))
            }
            Self::ByteOrderMark => "the file begins with a byte order mark".to_owned(),
            Self::NotUtf8 => "the file is not UTF-8".to_owned(),
            Self::NoFrontmatter => "there is no frontmatter at the start of the file".to_owned(),
            Self::Delimiters => "there is whitespace before or beside the `---` lines".to_owned(),
            Self::OddEnd => "the frontmatter is not closed by exactly `---`".to_owned(),
            Self::NotYaml => "the frontmatter is not valid YAML".to_owned(),
            Self::Garbled => "the frontmatter is not valid YAML, even with quotes".to_owned(),
            Self::Unread => "the frontmatter has aliases, tags or too many values".to_owned(),
            Self::DuplicateKey => "a field appears twice".to_owned(),
            Self::DashesInside => "`---` appears inside the frontmatter".to_owned(),
            Self::NameMissing => "there is no `name`".to_owned(),
            Self::NameForm(Form::NoSlash) => "the name has a slash".to_owned(),
            Self::NameForm(form) => {
                format!("the name has characters other than {}", form.characters())
            }
            Self::NameOver(most) => format!("the name has more than {most} characters"),
            Self::NameNotFolder(Letters::Exact) => "the name does not match the folder".to_owned(),
            Self::NameNotFolder(Letters::AnyCase) => {
                "the name does not match the folder, even ignoring case".to_owned()
            }
            Self::DescriptionMissing => "there is no `description`".to_owned(),
            Self::DescriptionOver(most) => {
                format!("the description has more than {most} characters")
            }
            Self::MetadataNested => "a value in `metadata` is not a string".to_owned(),
            Self::NotForModels => "it says `disable-model-invocation: true`".to_owned(),
            Self::NotForPeople => "it says `user-invocable: false`".to_owned(),
        }
    }

    /// Describes it for one file, with the details.
    pub(super) fn describe_for(
        self,
        candidate: &Candidate,
        client_path: Option<&ClientPath<'_>>,
    ) -> String {
        let name = candidate.name.as_deref().unwrap_or_default();
        let shown = shorten_name(name);
        let has = match self {
            Self::Deeper(_) => client_path.map_or(0, |it| it.depth).to_string(),
            Self::FileName => format!("`{}`", candidate.file_name),
            Self::FileOver(_) => format_size(candidate.size),
            Self::BodyOver(_) => format_size(candidate.body),
            Self::NotYaml | Self::Garbled => match &candidate.fault {
                Some(fault) if fault.is_yaml => {
                    return "the frontmatter is YAML, but has no `key: value` lines".to_owned();
                }
                Some(Fault { line: Some(line), .. }) => format!("line {line}"),
                _ => return self.about(),
            },
            Self::NameForm(_) => format!("`{shown}`"),
            Self::NameOver(_) => name.chars().count().to_string(),
            Self::NameNotFolder(_) => format!("`{shown}` in `{}`", candidate.folder(client_path)),
            Self::DescriptionOver(_) => candidate.description.unwrap_or_default().to_string(),
            _ => return self.about(),
        };
        format!("{} ({has})", self.about())
    }

    /// Returns advice on how to fix it; `None` if its author intended it.
    pub(super) fn fix(
        self,
        candidate: &Candidate,
        client_path: Option<&ClientPath<'_>>,
    ) -> Option<String> {
        let fix = match self {
            Self::AtRoot => "move `SKILL.md` into a folder with the name of the skill".to_owned(),
            Self::Deeper(depth) => match client_path {
                Some(client_path) if depth > 0 => {
                    let path = client_path.root.join(candidate.folder(Some(client_path)));
                    format!("move the folder up, to `{}`", path.display())
                }
                _ => "move the folder up".to_owned(),
            },
            Self::FolderLink | Self::ProjectLink => {
                "copy the folder instead of linking it".to_owned()
            }
            Self::FileLink => "link or copy the folder instead of the file".to_owned(),
            Self::InProject => "trust the folder in the client".to_owned(),
            Self::FileName => "rename it to `SKILL.md`".to_owned(),
            Self::FileOver(_) | Self::BodyOver(_) => "move details into separate files".to_owned(),
            Self::ByteOrderMark => "save it as UTF-8 without one".to_owned(),
            Self::NotUtf8 => "save it as UTF-8".to_owned(),
            Self::NoFrontmatter => {
                "begin with `---`, `name: …`, `description: …`, `---`".to_owned()
            }
            Self::Delimiters | Self::OddEnd => {
                "write `---` alone on its line, the first one in line 1".to_owned()
            }
            Self::NotYaml | Self::Garbled => candidate.fault.as_ref()?.hint.clone().into_owned(),
            Self::Unread => "write the values out in full".to_owned(),
            Self::DuplicateKey => "keep one of them".to_owned(),
            Self::DashesInside => "use another kind of dash".to_owned(),
            Self::NameMissing => format!("add `name: {}`", candidate.folder(client_path)),
            Self::NameForm(Form::NoSlash) => "choose a name without a slash".to_owned(),
            Self::NameForm(form) => format!("choose a name of {}", form.characters()),
            Self::NameOver(most) => format!("choose a name of at most {most} characters"),
            Self::NameNotFolder(_) => {
                let name = candidate.name.as_deref().unwrap_or_default();
                let folder = candidate.folder(client_path);
                match misnamed(name, &folder) {
                    Some(NameToChange::Folder) => format!("rename the folder to `{name}`"),
                    Some(NameToChange::Skill) => format!("set `name: {folder}`"),
                    None => "give the skill and its folder the same name".to_owned(),
                }
            }
            Self::DescriptionMissing => {
                "add `description:`, saying what it does and when to use it".to_owned()
            }
            Self::DescriptionOver(most) => {
                format!("shorten it to at most {most} characters")
            }
            Self::MetadataNested => "write the values as strings".to_owned(),
            Self::NotForModels | Self::NotForPeople => return None,
        };
        Some(fix)
    }

    /// Whether `fix` clears it, which leaves unreadable files alone.
    pub(super) fn is_fixable(self, candidate: &Candidate) -> bool {
        match self {
            Self::ByteOrderMark | Self::Delimiters | Self::OddEnd => candidate.is_read(),
            Self::NotYaml => candidate.is_mendable,
            _ => false,
        }
    }
}

/// The name to change if that of a skill differs from that of its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameToChange {
    /// The folder takes the name of the skill.
    Folder,
    /// The skill takes the name of the folder.
    Skill,
}

/// Returns the name to change: the folder's, because others mention a skill by its name; the
/// skill's if it is not usable as a folder name. `None` if neither name is usable.
pub(super) fn misnamed(name: &str, folder: &str) -> Option<NameToChange> {
    match (is_plain_name(name), is_plain_name(folder)) {
        (true, _) => Some(NameToChange::Folder),
        (false, true) => Some(NameToChange::Skill),
        (false, false) => None,
    }
}

impl Form {
    fn fits(self, name: &str) -> bool {
        match self {
            Self::Words => are_words(name, &['-']),
            Self::AnyCase => are_words(&name.to_ascii_lowercase(), &['-']),
            Self::Dotted => are_words(name, &['-', '.']),
            Self::Spaced => {
                name.starts_with(|it: char| it.is_ascii_alphanumeric())
                    && name
                        .bytes()
                        .all(|it: u8| it.is_ascii_alphanumeric() || b"-_.: ".contains(&it))
            }
            Self::NoSlash => !name.contains('/'),
        }
    }

    /// Returns the characters that it may have.
    fn characters(self) -> &'static str {
        match self {
            Self::Words => "lowercase letters, digits and single hyphens",
            Self::AnyCase => "letters, digits and single hyphens",
            Self::Dotted => "lowercase letters, digits, and single hyphens or dots",
            Self::Spaced => "letters, digits, hyphens, underscores, dots, colons and spaces",
            Self::NoSlash => "all but a slash",
        }
    }
}

/// Whether a name is one or more words of lowercase letters and digits.
fn are_words(name: &str, separators: &[char]) -> bool {
    name.split(separators).all(|it: &str| {
        !it.is_empty() && it.bytes().all(|it: u8| it.is_ascii_lowercase() || it.is_ascii_digit())
    })
}

impl Letters {
    fn are_same(self, name: &str, folder: &str) -> bool {
        match self {
            Self::Exact => name == folder,
            Self::AnyCase => name.eq_ignore_ascii_case(folder),
        }
    }
}

/// Formats a size, in a larger unit if it is a round number.
fn format_size(count: u64) -> String {
    match count {
        _ if count >= 1 << 20 && count.is_multiple_of(1 << 20) => format!("{} MiB", count >> 20),
        _ => format!("{count} bytes"),
    }
}

/// Shortens a name for display.
fn shorten_name(name: &str) -> String {
    beginning(name, 80).into_owned()
}
