//! The smallest agent with skills: those that the request needs stand in the prompt, and the model
//! can take up others.
#![expect(clippy::print_stdout, reason = "an example shows what it comes to")]

use std::{error::Error, sync::Arc};

use prowess::{Library, Options};
use prowess_agent::{Agent, ScriptedModel, Session, SkillOptions, Skills, ToolLoop};
use prowess_runtime::{Authorizer, DenyAll, Policy, Toolbox};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", run().await?);
    Ok(())
}

/// Asks for something, and says what came of it.
pub async fn run() -> Result<String, Box<dyn Error>> {
    let options = Options { sources: vec![prowess::bundled()], ..Options::default() };
    let library = Arc::new(Library::load(&options)?);

    // Any other model goes here; this one says what it was told to say.
    let model = ScriptedModel::new()
        .calls("use_skill", json!({"name": "write-tests"}))
        .says("The branch is reviewed, and I know how to test it.");

    let authorizer = Authorizer::new(Policy::default(), Arc::new(DenyAll));
    let agent = Agent::new(Arc::new(model))
        .with_system("You are a careful engineer.")
        .with(Skills::new(Some(Arc::new(library)), SkillOptions::default()))
        .with(ToolLoop::new(Arc::new(Toolbox::new(Arc::new(authorizer)))));

    let session = Session::new("basic");
    let answer = agent.ask(&session, "Review the code of this branch").await?;
    Ok(format!("{}\n({} steps)", answer.message.content, answer.steps))
}
