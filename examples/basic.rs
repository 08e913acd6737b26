//! The smallest agent with skills: those that the request needs are in the prompt, and the model can
//! load others. It only reads; what does more needs a policy that allows it, or someone to ask.
#![expect(clippy::print_stdout, reason = "an example shows what it comes to")]

use std::{error::Error, sync::Arc};

use prowess::{Library, Options};
use prowess_agent::{Agent, ScriptedModel, Session};
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
    let agent = Agent::builder(Arc::new(model))
        .system("You are a careful engineer.")
        .skills(library)
        .build();

    let answer = agent.ask(&Session::new("basic"), "Review the code of this branch").await?;
    Ok(format!("{}\n({} steps)", answer.message.content, answer.steps))
}
