//! A rule of one's own says which skills a request makes active: here, whatever the file is called
//! that the request names.
#![expect(clippy::print_stdout, reason = "an example shows what it comes to")]

use std::{error::Error, sync::Arc};

use prowess::{Activate, Library, Match, Matching, Memory, Options, Scope};
use prowess_agent::{Agent, ScriptedModel, Session, SkillOptions, Skills};

/// Takes the skill `<ending>-files` for each file that is named.
#[derive(Debug)]
struct ByEnding;

impl Activate for ByEnding {
    fn activate<'lib>(&self, library: &'lib Library, request: &str) -> Vec<Match<'lib>> {
        let endings = request.split_whitespace().filter_map(|it| it.rsplit_once('.'));
        let skills = endings.filter_map(|(_, ending)| library.get(&format!("{ending}-files")));
        skills.map(|skill| Match::new(skill, 1.0)).collect()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", run().await?);
    Ok(())
}

/// Asks for something, and says which skills the model was shown.
pub async fn run() -> Result<String, Box<dyn Error>> {
    let skill = |name: &str, text: &str| {
        let document = format!("---\nname: {name}\ndescription: How to do it\n---\n\n{text}\n");
        (format!("{name}/SKILL.md"), document.into_bytes())
    };
    let files = [skill("csv-files", "Mind the quotes."), skill("pdf-files", "Read every page.")];
    let memory = Memory::new(Scope::Project, "memory", files);
    let options = Options { sources: vec![Arc::new(memory)], ..Options::default() };
    let library = Arc::new(Library::load(&options)?);

    let model = Arc::new(ScriptedModel::new().says("There are twelve rows."));
    let matching = Matching { rule: Some(Arc::new(ByEnding)), ..Matching::default() };
    let how = SkillOptions { matching, ..SkillOptions::default() };
    let agent = Agent::new(model.clone()).with(Skills::new(Some(Arc::new(library)), how));
    agent.ask(&Session::new("custom"), "How many rows are in sales.csv").await?;

    let prompt = &model.asked()[0].messages[0].content;
    let shown = prompt.lines().filter_map(|it| it.strip_prefix("## Skill: "));
    Ok(shown.collect::<Vec<_>>().join(", "))
}
