//! A guard: while the skill for deploying is active, no file is read unless somebody says yes.
#![expect(clippy::print_stdout, reason = "an example shows what it comes to")]

use std::{error::Error, path::Path, sync::Arc};

use prowess::{Library, Options};
use prowess_agent::{Agent, Guard, ScriptedModel, Session, SkillOptions, Skills, ToolLoop, When};
use prowess_runtime::{
    Authorizer, DenyAll, Policy, Toolbox, policy::Roots, sandbox::Root, skill::ActiveSkills,
    tools::ReadFile,
};
use serde_json::json;

/// The folder whose files may be read.
const NOTES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/notes");

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", run().await?);
    Ok(())
}

/// Asks for two things that take the same call, and says what came of it each time.
pub async fn run() -> Result<String, Box<dyn Error>> {
    let options = Options { sources: vec![prowess::bundled()], ..Options::default() };
    let library = Arc::new(Library::load(&options)?);

    let active = Arc::new(ActiveSkills::new(Arc::new(library.clone())));
    let roots = Arc::new(Roots::new(vec![Root::open(Path::new(NOTES))?]));
    // Whoever asks at a terminal or in a chat goes here; this one is never there to say yes.
    let approver = Arc::new(DenyAll);
    let authorizer = Authorizer::new(Policy::default(), approver.clone());
    let toolbox = Toolbox::new(Arc::new(authorizer)).with(Arc::new(ReadFile::new(active, roots)));

    let read = |model: ScriptedModel| model.calls("read_file", json!({"path": "team.md"}));
    let model =
        Arc::new(read(read(ScriptedModel::new()).says("I have read it.")).says("I may not."));
    let agent = Agent::new(model.clone())
        .with(Skills::new(Some(Arc::new(library)), SkillOptions::default()))
        .with(Guard::new(approver).asks(When::calls("read_file").while_active("deploy-*")))
        .with(ToolLoop::new(Arc::new(toolbox)));

    let mut lines = Vec::new();
    for prompt in ["Explain how the team works", "Deploy this branch to staging"] {
        agent.ask(&Session::new(prompt), prompt).await?;
        let asked = model.asked();
        let result = asked.last().and_then(|it| it.messages.last());
        lines.push(format!("{prompt}: {}", result.map_or("", |it| &it.content)));
    }
    Ok(lines.join("\n"))
}
