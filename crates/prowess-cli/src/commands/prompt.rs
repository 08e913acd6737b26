use std::{fs, io, io::Read as _, path::Path, sync::Arc};

use anyhow::{Context as _, Result};
use prowess::{
    Cataloging, Choice, ContextWindow, Extract, FittedPrompt, Library, Marker, Message, Offer,
    Prompt, Role, Strategy, Tokenizer, UseSkillInput, catalog, choose, fit, history, request,
};
use prowess_cli::settings::Config;
use prowess_runtime::{
    Authorizer, DenyAll, SkillProvider, skill::PermittedSkills, text::fresh_marker,
    tool::simplify_schema,
};
use serde_json::{Value as Json, json};

use crate::{
    ExitStatus, arguments::Global, completion, context, host, matching_args::MatchingArgs,
    printer::Printer, report, safe, trust,
};

/// Show what a model would be sent, and how it fits into the context window
///
/// At a terminal, shows how full the window is, which skills are in it, and what was shortened to make it fit; `-v`
/// adds the text. In a pipe, the text goes to stdout and the rest to stderr.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The request; several words need no quotes. By default, the last message of the user in the history
    query: Vec<String>,
    /// Context window size in tokens [default: 128000]
    #[arg(long, value_name = "TOKENS")]
    window: Option<usize>,
    /// The conversation so far: a JSON array of `{"role","content"}`, or one per line; `-` reads stdin
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::AnyPath)]
    history: Option<String>,
    /// System prompt: a text, or `@FILE`
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    system: String,
    /// Count tokens like this model; estimated if its tokenizer is not public
    #[arg(long, value_name = "NAME", add = completion::models())]
    model: Option<String>,
    /// How many of the latest messages to keep whole when older ones are summarised [default: 10]
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    #[command(flatten)]
    matching: MatchingArgs,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let mut history = match args.history.as_deref().map(read).transpose()? {
        None => Vec::new(),
        Some(text) => match history(&text) {
            Ok(history) => history,
            Err(error) => {
                printer.error(&error.into());
                return Ok(ExitStatus::Failure);
            }
        },
    };
    if !args.query.is_empty() {
        history.push(Message::new(Role::User, args.query.join(" ")));
    }
    let system = match args.system.strip_prefix('@') {
        Some(file) => read(file)?,
        None => args.system.clone(),
    };
    let config = context::config(global)?;
    let authorizer = Arc::new(host::authorizer(&config, Arc::new(DenyAll)));
    let library = context::library(global, printer)?;
    context::note_left_out(&library, printer);
    trust::note_untrusted(&config, global, printer);
    let library: Arc<dyn SkillProvider> = Arc::new(Arc::new(library));
    let library = PermittedSkills::new(library, authorizer.clone()).library();
    let vocabulary = context::tokenizer(args.model.as_deref(), &config);
    let window = window(args, &config, vocabulary);
    let query = request(&history).map(|it| it.content.clone());
    let matching = args.matching.matching(&config);
    if matching.strategy == Strategy::Semantic {
        context::index(&library, printer);
    }
    let choice = choose(&library, &history, &matching, config.thresholds());
    let first: Vec<&str> = choice.best().map(|it| &*it.manifest.name).collect();
    let budget = Some(window.catalog_budget().saturating_sub(Marker::TOKENS));
    let cataloging = Cataloging { budget, vocabulary, first: &first, ..Cataloging::default() };
    let marker = fresh_marker();
    let has_skills =
        !choice.skills.is_empty() || library.skills().any(|it| it.manifest.is_for_models());
    let prompt = Prompt {
        system,
        catalog: catalog(&library, &cataloging).fenced(&marker),
        skills: offers(&choice, &authorizer, printer),
        marker: has_skills.then_some(marker),
        tools: tools(&library),
        history: history.into(),
    };
    let tools = prompt.tools.clone();
    let fitted = match fit(&window, prompt, &Extract { vocabulary: window.vocabulary }) {
        Ok(fitted) => fitted,
        Err(error) => {
            printer.error(&error.into());
            printer.hint("use a larger `--window`, a shorter `--system` or fewer skills");
            return Ok(ExitStatus::Failure);
        }
    };
    if printer.json {
        printer.document(&fitted_json(&fitted, &window, query.as_deref(), &tools))?;
        return Ok(ExitStatus::Success);
    }
    if printer.is_terminal {
        for line in report::lines(&fitted, &window, printer.width.unwrap_or(80), printer.colored) {
            printer.line(line)?;
        }
        if printer.verbose {
            printer.line("")?;
            printer.text(&text(&fitted.messages))?;
        }
    } else {
        printer.text(&text(&fitted.messages))?;
        printer.flush()?;
        for line in report::lines(&fitted, &window, 80, printer.err_colored) {
            printer.stderr_line(&line);
        }
    }
    Ok(ExitStatus::Success)
}

/// Reads a file, or stdin for `-`.
fn read(path: &str) -> Result<String> {
    if path == "-" {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).context("cannot read stdin")?;
        return Ok(text);
    }
    fs::read_to_string(Path::new(path)).with_context(|| format!("cannot read `{path}`"))
}

/// Returns the configured window, with the options of the command line applied.
fn window(args: &Args, config: &Config, vocabulary: Tokenizer) -> ContextWindow {
    let set = config.window();
    ContextWindow {
        tokens: args.window.unwrap_or(set.tokens),
        keep_recent: args.keep.unwrap_or(set.keep_recent),
        vocabulary,
    }
}

/// Returns the chosen skills that can be read without an approval; the others are reported and left
/// out.
fn offers(choice: &Choice<'_>, authorizer: &Authorizer, printer: &mut Printer) -> Vec<Offer> {
    context::warn_about_unknown(&choice.unknown, printer);
    let mut offers = Vec::new();
    for chosen in &choice.skills {
        let name = &chosen.skill.manifest.name;
        match authorizer.offer(chosen) {
            Ok((offer, asks)) => {
                if asks {
                    printer.note(&format!("skill `{name}` needs approval before it is shown"));
                }
                offers.push(offer);
            }
            Err(error) => printer.note(&format!("skill `{name}` is left out: {error}")),
        }
    }
    offers
}

/// Returns the tools for the model; none without a skill to activate.
fn tools(library: &Library) -> Vec<Json> {
    let schema = UseSkillInput::schema();
    let tool = json!({
        "name": "use_skill",
        "description": schema.get("description"),
        "input_schema": simplify_schema(schema.into()),
    });
    library.skills().next().map(|_| tool).into_iter().collect()
}

/// Formats messages for people.
pub(super) fn text(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        text.push_str(&format!("[{}]\n", message.role.as_str()));
        if !message.content.is_empty() {
            text.push_str(message.content.trim_end());
            text.push('\n');
        }
        for call in &message.calls {
            text.push_str(&format!("calls {} {}\n", call.name, safe::line(&call.arguments)));
        }
        text.push('\n');
    }
    text
}

fn fitted_json(
    fitted: &FittedPrompt,
    window: &ContextWindow,
    query: Option<&str>,
    tools: &[Json],
) -> Json {
    json!({
        "query": query,
        "messages": fitted.messages,
        "window": window.tokens,
        "counted": window.vocabulary.as_str(),
        "tokens": fitted.tokens,
        "skills": fitted.skills,
        "steps": fitted.steps,
        "tools": tools,
    })
}
