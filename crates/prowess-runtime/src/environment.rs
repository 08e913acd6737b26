//! What a script needs around it: an interpreter, packages, programs, variables.

mod needs;
mod shebang;

pub use self::{
    needs::{
        Declared, Ecosystem, EnvironmentNeeds, Interpreter, NeedNote, Needs, PackageNeed,
        PackageSource, Place, ProgramNeed, Runtime, ScriptNeeds, VariableNeed, VersionNeed,
    },
    shebang::interpreter,
};
