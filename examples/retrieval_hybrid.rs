//! Skills say how something is done, documents how things are: both are found by the same request and
//! stand in one prompt.
#![expect(clippy::print_stdout, reason = "an example shows what it comes to")]

use std::{error::Error, path::Path, sync::Arc};

use prowess::{Library, Options};
use prowess_agent::{Agent, Folder, Retrieval, ScriptedModel, Session, SkillOptions, Skills};

/// A folder of Markdown and text files.
const NOTES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/notes");

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", run().await?);
    Ok(())
}

/// Asks for something, and says which skills and documents the model was shown.
pub async fn run() -> Result<String, Box<dyn Error>> {
    let options = Options { sources: vec![prowess::bundled()], ..Options::default() };
    let library = Arc::new(Library::load(&options)?);
    let notes = Arc::new(Folder::open(Path::new(NOTES))?);

    let model = Arc::new(ScriptedModel::new().says("It is past noon: I deploy tomorrow at eight."));
    let agent = Agent::new(model.clone())
        .with(Skills::new(Some(Arc::new(library)), SkillOptions::default()))
        .with(Retrieval::new(notes));
    let answer = agent.ask(&Session::new("hybrid"), "Deploy this branch to staging").await?;

    let asked = model.asked();
    let lines = asked[0].messages.iter().flat_map(|it| it.content.lines());
    let shown = lines.filter(|it| it.starts_with("## Skill: ") || it.starts_with("[From `"));
    Ok(shown.chain([&*answer.message.content]).collect::<Vec<_>>().join("\n"))
}
