use anyhow::Result;
use clap::ValueEnum;
use prowess::{Level, disclose, invoke};
use serde_json::json;

use super::resource_json;
use crate::{
    ExitStatus,
    arguments::Global,
    completion,
    context::{self, shell_quote},
    host,
    needs::SkillNeeds,
    printer::Printer,
    safe,
};

/// Show a skill, in full or in part
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The name, `scope:name` or path of the skill
    #[arg(add = completion::skills())]
    name: String,
    /// How much to show [default: full]
    #[arg(long, value_enum, value_name = "LEVEL", conflicts_with = "confidence")]
    level: Option<LevelName>,
    /// Show as much as for a match with this confidence: brief from `disclosure.brief_at`, full from `disclosure.full_at`
    #[arg(long, value_name = "C", allow_negative_numbers = true)]
    confidence: Option<f64>,
    /// Fill these arguments into the instructions
    #[arg(long, value_name = "ARGUMENTS", conflicts_with_all = ["level", "confidence"], allow_hyphen_values = true)]
    arguments: Option<String>,
    /// Count tokens like this model; estimated if its tokenizer is not public
    #[arg(long, value_name = "NAME", add = completion::models())]
    model: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LevelName {
    Metadata,
    Brief,
    Full,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let config = context::config(global)?;
    let (library, name) = context::library_for(&args.name, global, printer)?;
    let Some(skill) = library.get(&name) else {
        let fault = context::no_skill(&library, &name);
        let read = format!("`prowess read {} SKILL.md` prints its file", shell_quote(&args.name));
        let is_left_out = library.why_left_out(&name).is_some();
        return Err(if is_left_out { fault.hint(read) } else { fault }.into());
    };
    let level = match (args.level, args.confidence) {
        (Some(LevelName::Metadata), _) => Level::Metadata,
        (Some(LevelName::Brief), _) => Level::Brief,
        (Some(LevelName::Full), _) | (None, None) => Level::Full,
        (None, Some(confidence)) => config.thresholds().level(confidence),
    };
    let mut disclosure = disclose(skill, level)?;
    if let Some(arguments) = &args.arguments {
        disclosure.text = invoke(skill, Some(arguments))?;
    }
    let needs = SkillNeeds::of(skill, &host::interpreters(&config));
    let vocabulary = context::tokenizer(args.model.as_deref(), &config);
    if printer.json {
        let resources: Vec<_> = disclosure.resources.iter().map(resource_json).collect();
        printer.document(&json!({
            "name": skill.manifest.name,
            "level": level.as_str(),
            "tokens": vocabulary.count(&disclosure.text),
            "counted": vocabulary.as_str(),
            "text": disclosure.text,
            "resources": resources,
            "needs": needs.json(),
            "status": skill.manifest.status().as_str(),
        }))?;
        return Ok(ExitStatus::Success);
    }
    printer.markdown(&disclosure.text)?;
    // The full text lists them itself.
    if level < Level::Full && !disclosure.resources.is_empty() {
        printer.line(format_args!("\n{}", printer.dim("Files:")))?;
        for resource in &disclosure.resources {
            let path = safe::line(&resource.path);
            let about = format!("({}, {} bytes)", resource.kind.as_str(), resource.size);
            printer.line(format_args!("  {path}  {}", printer.dim(&about)))?;
        }
    }
    printer.flush()?;
    if !skill.manifest.is_active() {
        let (name, status) = (&skill.manifest.name, skill.manifest.status().as_str());
        let enable = printer.with_directory_flags(&format!("`prowess enable {name}`"));
        printer.note(&format!("`{name}` is {status}; {enable} enables it"));
    }
    needs.print(&skill.manifest.name, printer);
    Ok(ExitStatus::Success)
}
