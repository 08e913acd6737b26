//! Creates records from tool calls, a script or a text.

use prowess::{CompositeStep, Definition, Manifest, Status, Type};

use crate::entry::SkillRecord;

/// Creates a skill that calls tools one after the other. It requires approval.
pub fn from_steps(name: &str, description: &str, steps: Vec<CompositeStep>) -> SkillRecord {
    let manifest =
        Manifest { kind: Type::Composite, requires_approval: true, ..manifest(name, description) };
    entry(manifest, Definition::Composite { steps })
}

/// Creates a skill that runs a shell script. It requires approval.
pub fn script(name: &str, description: &str, script: &str) -> SkillRecord {
    let manifest =
        Manifest { kind: Type::Script, requires_approval: true, ..manifest(name, description) };
    entry(manifest, Definition::Script { script: script.to_owned() })
}

/// Creates an active instruction skill; `source` is its original location.
pub fn instruction(name: &str, description: &str, content: &str, source: &str) -> SkillRecord {
    let manifest = Manifest {
        status: Some(Status::Active),
        created_by: Some("import".into()),
        source: (!source.is_empty()).then(|| source.into()),
        ..manifest(name, description)
    };
    entry(manifest, Definition::Instruction { content: content.to_owned() })
}

fn manifest(name: &str, description: &str) -> Manifest {
    Manifest { name: name.into(), description: description.into(), ..Manifest::default() }
}

fn entry(manifest: Manifest, definition: Definition) -> SkillRecord {
    SkillRecord { manifest, definition, parameters: None, folder: None }
}
