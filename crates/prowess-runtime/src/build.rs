//! Makes entries from what a program has at hand: tool calls, a script, a text.

use prowess::{CompositeStep, Definition, Manifest, Status, Type};

use crate::entry::SkillRecord;

/// A skill that calls tools, one after the other. Somebody has to agree before it runs.
pub fn from_steps(name: &str, description: &str, steps: Vec<CompositeStep>) -> SkillRecord {
    let manifest =
        Manifest { kind: Type::Composite, requires_approval: true, ..manifest(name, description) };
    entry(manifest, Definition::Composite { steps })
}

/// A skill that runs a shell script. Somebody has to agree before it runs.
pub fn script(name: &str, description: &str, script: &str) -> SkillRecord {
    let manifest =
        Manifest { kind: Type::Script, requires_approval: true, ..manifest(name, description) };
    entry(manifest, Definition::Script { script: script.to_owned() })
}

/// A skill that tells a model how to do something, in use at once; `source` is where it was
/// imported from.
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
