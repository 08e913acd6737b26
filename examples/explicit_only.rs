//! Nothing is active that a person has not asked for: `@name` shows a skill, and `/name` invokes it
//! with arguments. The model sees no list and takes up nothing by itself.
#![expect(clippy::print_stdout, reason = "an example shows what it comes to")]

use std::{error::Error, sync::Arc};

use prowess::{Library, Matching, Options, Strategy};
use prowess_agent::{Agent, ScriptedModel, Session, SkillOptions, Skills};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", run().await?);
    Ok(())
}

/// Asks three times, and says which skills the model was shown each time.
pub async fn run() -> Result<String, Box<dyn Error>> {
    let options = Options { sources: vec![prowess::bundled()], ..Options::default() };
    let library = Arc::new(Library::load(&options)?);
    let matching = Matching { strategy: Strategy::Explicit, ..Matching::default() };
    let how = SkillOptions { matching, catalog: None, use_skill: false, ..SkillOptions::default() };

    let model = Arc::new(ScriptedModel::new().says("Well.").says("Well.").says("Well."));
    let agent = Agent::new(model.clone()).with(Skills::new(Some(Arc::new(library)), how));
    let mut shown = Vec::new();
    for prompt in ["Open a pull request", "Use @create-pr for it", "/debug the login page"] {
        agent.ask(&Session::new("explicit"), prompt).await?;
        let asked = model.asked();
        let messages = asked.last().map_or(&[][..], |it| &it.messages);
        let lines = messages.iter().flat_map(|it| it.content.lines());
        let skills: Vec<&str> = lines.filter_map(|it| it.strip_prefix("## Skill: ")).collect();
        shown.push(format!("{prompt}: [{}]", skills.join(", ")));
    }
    Ok(shown.join("\n"))
}
