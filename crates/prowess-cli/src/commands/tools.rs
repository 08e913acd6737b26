use std::sync::Arc;

use anyhow::Result;
use clap::ValueEnum;
use prowess_runtime::{Launcher, SkillProvider, tool::ToolFormat};
use serde_json::json;

use crate::{
    ExitStatus,
    arguments::Global,
    context,
    host::{self, PermissionArgs},
    printer::Printer,
    tool_text,
    toolbox::{self, Caller},
    trust,
};

/// List the tools that can be called, and their parameters
///
/// Skills of a project that is not trusted are left out, as in `ask`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON in the format of this provider
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// Functions for chat completions, strict where possible
    #[value(name = "openai")]
    OpenAi,
    /// Tools for messages
    Anthropic,
    /// Tools of the Model Context Protocol
    Mcp,
}

pub(crate) fn run(
    args: &Args,
    global: &Global,
    launcher: Launcher,
    printer: &mut Printer,
) -> Result<ExitStatus> {
    let config = context::config(global)?;
    let global = &trust::without_untrusted(&config, global, printer);
    let library = context::library(global, printer)?;
    let library = host::without_denied(library, &config, printer);
    let provider: Arc<dyn SkillProvider> = Arc::new(Arc::new(library));
    let running = PermissionArgs::default();
    let kit =
        toolbox::toolbox(Caller::Person, &running, &provider, global, &[], launcher, printer)?;
    let toolbox = kit.toolbox;
    let tools = toolbox.tools();
    let servers = config.servers.value.0.iter();
    let servers: Vec<String> = servers.map(|it| it.description.name.clone()).collect();
    if args.format.is_none() && !printer.json {
        for tool in tools {
            tool_text::print(&**tool, "", true, printer)?;
        }
        if !servers.is_empty() {
            printer.flush()?;
            let servers = context::quote_entries(&servers);
            printer
                .note(&format!("`prowess servers LABEL` lists the tools of a server ({servers})"));
        }
        return Ok(ExitStatus::Success);
    }
    let tool_format = match args.format {
        Some(Format::OpenAi) => ToolFormat::OpenAi,
        Some(Format::Mcp) => ToolFormat::Mcp,
        Some(Format::Anthropic) | None => ToolFormat::Anthropic,
    };
    let mut formatted = Vec::new();
    for tool in tools {
        match tool_format.format(&**tool) {
            Some(tool) => formatted.push(tool),
            None => printer.warning(&format!(
                "the tool `{}` cannot be offered to models: its name has characters other than `a-z0-9_-`, or its parameters are not an object",
                tool.name()
            )),
        }
    }
    printer.document(&json!({ "tools": formatted }))?;
    Ok(ExitStatus::Success)
}
