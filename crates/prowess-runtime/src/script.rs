//! A script of a skill: the bytes that run, and their interpreter.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use prowess::{Definition, Manifest, ReadError, Skill, Type, skill_of};

use crate::{
    entry::SkillRecord,
    environment::{Needs, detect_in, interpreter},
    outcome::{Outcome, OutcomeStatus},
    skill_folder::{FileKind, FolderError, SkillFile, SkillFolder},
};

/// A script of a skill, with all files next to it, as they were when it was read.
#[derive(Debug, Clone)]
pub struct Script {
    /// The name of the skill.
    pub skill: String,
    /// The script as a skill of its own, named `skill/path`: the subject of the approval.
    pub entry: SkillRecord,
    /// Its path within the skill's folder.
    pub path: String,
    /// The interpreter, with the arguments before the path.
    pub interpreter: Vec<OsString>,
    pub(crate) files: Arc<Vec<SkillFile>>,
    needs: Arc<OnceLock<Needs>>,
}

/// The script of a skill cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// It, or a file next to it, could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The folder of the skill could not be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// It is not text.
    #[error("`{path}` is not text, so it is not run")]
    Binary {
        /// Its path.
        path: String,
    },
    /// It is a link to a file of another skill.
    #[error("`{path}` is a link to `{inside}` of the skill in `{}`, so it is not run", other.display())]
    OtherSkill {
        /// Its path.
        path: String,
        /// The folder of the other skill.
        other: PathBuf,
        /// The path of the script there.
        inside: String,
    },
    /// Its interpreter is unknown.
    #[error("no interpreter is known for `{path}`")]
    Interpreter {
        /// Its path.
        path: String,
    },
}

/// The default mode of a file.
const MODE: u32 = 0o100_755;

impl Script {
    /// Reads a script of a skill and all files next to it, so that later changes have no effect.
    pub fn of(skill: &Skill, path: &str) -> Result<Self, ScriptError> {
        let path = path.strip_prefix("./").unwrap_or(path).to_owned();
        let bytes = skill.read(&path)?;
        if let Some(folder) = skill.absolute_folder() {
            refuse_foreign_link(&folder, &path)?;
        }
        let Ok(text) = String::from_utf8(bytes) else { return Err(ScriptError::Binary { path }) };
        let Some(interpreter) = interpreter(&path, &text) else {
            return Err(ScriptError::Interpreter { path });
        };
        let interpreter = interpreter.command.into_iter().map(OsString::from).collect();
        let folder = skill.absolute_folder().map(SkillFolder::from);
        let mut files = skill_files(skill)?;
        // The bytes that were read are those that run, even if the file has changed since.
        let bytes = text.clone().into_bytes();
        match files.iter_mut().find(|it| it.path == path) {
            Some(file) => {
                file.bytes = bytes;
                // It was read through a link.
                if file.kind == FileKind::Link {
                    file.kind = FileKind::Plain(MODE);
                }
            }
            None => {
                // A link to a folder elsewhere is replaced by the script.
                files.retain(|it| {
                    it.kind != FileKind::Link || !Path::new(&path).starts_with(&it.path)
                });
                files.push(SkillFile { path: path.clone(), kind: FileKind::Plain(MODE), bytes });
            }
        }
        let folder = folder.map(|it| it.with_files(files.clone()));
        let name = skill.manifest.name.to_string();
        let manifest = Manifest {
            name: format!("{name}/{path}").into(),
            kind: Type::Script,
            ..skill.manifest.clone()
        };
        let definition = Definition::Script { script: text };
        let entry = SkillRecord { manifest, definition, parameters: None, folder };
        Ok(Self {
            skill: name,
            entry,
            path,
            interpreter,
            files: Arc::new(files),
            needs: Arc::default(),
        })
    }

    /// Returns the needs of the skill, detected once from the files that were read with the script.
    pub fn needs(&self) -> &Needs {
        self.needs.get_or_init(|| detect_in(&self.entry.manifest, &self.files))
    }

    /// Returns the name of a Python script as a module, if it has relative imports, which only work
    /// in a module.
    pub(crate) fn module(&self) -> Option<String> {
        let Definition::Script { script } = &self.entry.definition else { return None };
        let path = self.path.strip_suffix(".py")?;
        let has_relative_imports = script.lines().any(|line: &str| {
            line.trim_start()
                .strip_prefix("from ")
                .is_some_and(|it| it.trim_start().starts_with('.'))
        });
        let are_names = path
            .split('/')
            .all(|it| !it.is_empty() && it.chars().all(|it| it.is_alphanumeric() || it == '_'));
        (has_relative_imports && are_names).then(|| path.replace('/', "."))
    }

    /// Returns its text, if it is a shell script.
    pub(crate) fn shell_text(&self) -> Option<&str> {
        let program = self.interpreter.first()?.to_str()?;
        let name = program.rsplit('/').next()?;
        let is_shell = matches!(name, "sh" | "bash" | "dash" | "ash" | "ksh" | "zsh");
        match &self.entry.definition {
            Definition::Script { script } if is_shell => Some(script),
            _ => None,
        }
    }
}

/// Refuses a script that is a link to a file of another skill, which an approval of this one would
/// not cover.
fn refuse_foreign_link(folder: &Path, path: &str) -> Result<(), ScriptError> {
    let Ok(real) = prowess::real_path(folder.join(path)) else { return Ok(()) };
    let own = prowess::real_path(folder).ok();
    let Some(other) = skill_of(&real).filter(|it| own.as_deref() != Some(it)) else {
        return Ok(());
    };
    let inside = real.strip_prefix(other).unwrap_or(&real).display().to_string();
    Err(ScriptError::OtherSkill { path: path.to_owned(), other: other.to_owned(), inside })
}

/// Reads all current files of a skill.
pub fn skill_files(skill: &Skill) -> Result<Vec<SkillFile>, ScriptError> {
    match skill.absolute_folder() {
        Some(folder) => Ok(SkillFolder::from(folder).files()?.to_vec()),
        None => memory_files(skill),
    }
}

/// Returns all files of a skill that is not on disk.
fn memory_files(skill: &Skill) -> Result<Vec<SkillFile>, ScriptError> {
    let kind = FileKind::Plain(MODE);
    let mut files = Vec::new();
    for resource in skill.resources() {
        let path = resource.path.to_string();
        files.push(SkillFile { kind, bytes: skill.read(&path)?, path });
    }
    Ok(files)
}

impl From<&ScriptError> for Outcome {
    fn from(error: &ScriptError) -> Self {
        let status = match error {
            ScriptError::Read(ReadError::NoSuchResource { .. }) => OutcomeStatus::NotFound,
            ScriptError::OtherSkill { .. } => OutcomeStatus::Refused,
            _ => OutcomeStatus::Invalid,
        };
        let outcome = Self::error(status, error);
        match error {
            ScriptError::OtherSkill { .. } => {
                outcome.hint("run it as a script of that skill, or copy it")
            }
            _ => outcome,
        }
    }
}
