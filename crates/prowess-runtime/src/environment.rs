//! The environment of a script: an interpreter, packages, programs, variables, and the files that
//! its arguments name.
//!
//! `InterpreterSearch` finds the program that runs a script by its first line, the settings and
//! `PATH`. `detect` reads headers, requirements and imports: the `Needs` of a skill, each with file
//! and line. `Present::missing` says which of them are not installed, and `ScriptArguments` which
//! files the arguments name.

mod needs;
mod files;
mod shebang;
mod standard_library;
mod packages;
mod python_imports;
mod js_imports;
mod requirements;
mod python;
mod node;
mod system_programs;
mod started_programs;
mod programs;
mod sources;
mod detect;
mod version;
mod present;
mod version_manager;
mod interpreter;
mod arguments;

pub use self::{
    arguments::ScriptArguments,
    detect::detect,
    interpreter::{InstalledInterpreter, InterpreterError, InterpreterOrigin, InterpreterSearch},
    needs::{
        Ecosystem, EnvironmentNeeds, Interpreter, NeedNote, Needs, PackageDeclaration, PackageNeed,
        PackageSource, Place, ProgramNeed, Runtime, ScriptNeeds, VariableNeed, VersionNeed,
    },
    present::{Missing, MissingKind, Present},
    shebang::interpreter,
    system_programs::{
        SystemPackages, install_system_programs, program_not_found, system_packages,
    },
};
pub(crate) use self::{
    arguments::is_everywhere, detect::detect_in, interpreter::modules_around,
    programs::declared_programs,
};
