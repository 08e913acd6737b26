use anyhow::Result;
use prowess::{Profile, RULES, Rule, Severity, did_you_mean, nearest};
use serde_json::{Value as Json, json};

use crate::features::AUDIT_RULES;
use crate::{
    ExitStatus, arguments::Global, completion, markdown::wrap, page::Page, printer::Printer,
};

/// Explain a rule of `check` or `audit`: what it requires, why, and how to fix it
///
/// Without a code, lists all rules of `check` with their severity in the profile.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The code of a rule, such as `name-folder`
    #[arg(add = completion::rules())]
    code: Option<String>,
}

/// On a terminal narrower than this, a summary is below its rule.
const LEAST: usize = 40;

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let Some(code) = &args.code else {
        list(Profile::from(global.profile), printer)?;
        return Ok(ExitStatus::Success);
    };
    let all: Vec<&Rule> = RULES.iter().chain(AUDIT_RULES).copied().collect();
    explain(code, &all, printer)
}

/// Explains one of these rules.
pub(super) fn explain(code: &str, rules: &[&Rule], printer: &mut Printer) -> Result<ExitStatus> {
    let normalized = code.trim().to_lowercase().replace(['_', ' '], "-");
    let Some(rule) = rules.iter().find(|it| it.code == normalized) else {
        printer.error_text(&format!("there is no rule `{code}`"));
        let codes = rules.iter().map(|it| it.code);
        let family = format!("{normalized}-");
        let family: Vec<_> = codes.clone().filter(|it| it.starts_with(&family)).collect();
        match (family.is_empty(), nearest(&normalized, codes)) {
            (false, _) => printer.hint(&format!("possible rules: `{}`", family.join("`, `"))),
            (true, Some(near)) => printer.hint(&did_you_mean(near)),
            (true, None) => printer.hint("`prowess rule` lists all rules"),
        }
        return Ok(ExitStatus::Failure);
    };
    if printer.json {
        let Page { since, why, fix, .. } = Page::of(rule);
        let mut json = brief(rule);
        json["since"] = json!(since);
        json["why"] = json!(why);
        json["fix"] = json!(fix);
        json["page"] = json!(rule.page);
        printer.document(&json)?;
    } else if printer.is_terminal || printer.colored {
        printer.rendered_markdown(rule.page)?;
    } else {
        printer.line(rule.page.trim_end())?;
    }
    Ok(ExitStatus::Success)
}

/// Lists every rule with its severity: in columns, or one below the other if there is little room.
fn list(profile: Profile, printer: &mut Printer) -> Result<()> {
    if printer.json {
        let rules: Vec<Json> = RULES.iter().map(|it| brief(it)).collect();
        return printer.document(&json!({ "rules": rules }));
    }
    let widest = RULES.iter().map(|it| it.code.len()).max().unwrap_or(0);
    let margin = widest + "  warning  ".len();
    let width = printer.width.unwrap_or(usize::MAX);
    let is_narrow = width.saturating_sub(margin) < LEAST;
    let indent = if is_narrow { 2 } else { margin };
    for rule in RULES {
        let severity = rule.severity(profile).map_or("none", Severity::as_str);
        let code = printer.name(&format!("{:<widest$}", rule.code));
        let weight = match is_narrow {
            true => format!("{severity}\n  "),
            false => format!("{severity:<7}  "),
        };
        let lines = wrap(rule.summary, width - indent, "");
        let lines: Vec<String> = lines.iter().map(|it| printer.dim(it)).collect();
        let summary = lines.join(&format!("\n{}", " ".repeat(indent)));
        printer.line(format_args!("{code}  {weight}{summary}"))?;
    }
    Ok(())
}

/// Returns a rule as JSON.
fn brief(rule: &Rule) -> Json {
    let [lenient, spec, reference] = [Profile::Lenient, Profile::Spec, Profile::Reference]
        .map(|it| rule.severity(it).map(Severity::as_str));
    json!({
        "rule": rule.code,
        "summary": rule.summary,
        "severity": { "lenient": lenient, "spec": spec, "reference": reference },
        "fixed_by": Page::of(rule).fixed_by,
    })
}
