//! A few skills that always stand in the prompt, whatever is asked: house rules.
#![expect(clippy::print_stdout, reason = "an example shows what it comes to")]

use std::{error::Error, sync::Arc};

use prowess::{Library, Matching, Options, Strategy};
use prowess_agent::{Agent, ScriptedModel, Session, SkillOptions, Skills};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", run().await?);
    Ok(())
}

/// Asks for something, and says which skills the model was shown.
pub async fn run() -> Result<String, Box<dyn Error>> {
    let options = Options {
        sources: vec![prowess::bundled()],
        include: Some(vec!["review-code".to_owned(), "write-tests".to_owned()]),
        ..Options::default()
    };
    let library = Arc::new(Library::load(&options)?);
    let matching = Matching { strategy: Strategy::Always, max_active: 2, ..Matching::default() };
    let how = SkillOptions { matching, catalog: None, use_skill: false, ..SkillOptions::default() };

    let model = Arc::new(ScriptedModel::new().says("It is half past nine."));
    let agent = Agent::new(model.clone()).with(Skills::new(Some(Arc::new(library)), how));
    agent.ask(&Session::new("always"), "What time is it?").await?;

    let prompt = &model.asked()[0].messages[0].content;
    let shown = prompt.lines().filter_map(|it| it.strip_prefix("## Skill: "));
    Ok(shown.collect::<Vec<_>>().join(", "))
}
