//! The results of the lab as text: the worst first, and a hint to the rest.

use anyhow::Result;
use prowess::{
    Confusion, Evaluation, ExpectedMatch, MissReason, NearDuplicates, ProbeStatus, Skill,
    StudiedSkill, TestedRequest,
};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::{Report, json};
use crate::{commands::count, printer::Printer, safe};

/// The default and the least width of lines.
const WIDTH: usize = 100;
const NARROWEST: usize = 30;

/// Prints `top` of each kind, with a hint to the others unless a page is written anyway.
pub(super) fn show(
    report: &Report<'_>,
    top: usize,
    has_page: bool,
    printer: &mut Printer,
) -> Result<()> {
    let Report { lab, study, evaluation, findings, .. } = report;
    let width = printer.width.unwrap_or(WIDTH).max(NARROWEST);
    let mut page = Page { width, top, is_cut: false, printer };
    for (title, meaning, status) in [
        ("Never found", "even in their own words", ProbeStatus::NeverFound),
        ("Contested", "other skills match most of their requests", ProbeStatus::Contested),
    ] {
        let skills = study.skills.iter().filter(|it| it.standing == status);
        page.print_section(title, meaning, skills, |page, it| page.print_skill(it))?;
    }
    page.print_section(
        "Almost the same",
        "the first one is matched",
        study.families.iter(),
        |page, it| page.print_family(it),
    )?;
    let confused = evaluation.matrix.iter().filter(|it| !it.is_right());
    page.print_section("Confused", "expected → matched", confused, |page, it| {
        page.print_confusion(it)
    })?;
    let failed = evaluation.failed().into_iter();
    page.print_section("Failed", "evaluations", failed, |page, it| page.print_failure(report, it))?;
    let is_quiet = study.skills.iter().all(|it| it.because.is_none()) && study.families.is_empty();
    let closest = study.closest.iter().filter(|_| is_quiet);
    page.print_section("Closest", "no problems; these compete most", closest, |page, it| {
        page.print_family(it)
    })?;
    page.print_summary(report)?;
    let is_cut = page.is_cut;
    printer.flush()?;
    let mut hints: Vec<&str> = Vec::new();
    for finding in findings {
        printer.finding(finding);
        if !hints.contains(&&*finding.hint) && !finding.hint.is_empty() {
            hints.push(&finding.hint);
        }
    }
    hints.into_iter().for_each(|it| printer.note(it));
    let left_out = lab.library.left_out().len();
    if left_out > 0 {
        let are = if left_out == 1 { "is" } else { "are" };
        let why = printer.with_directory_flags("`prowess list` shows why");
        printer.note(&format!("{} {are} left out; {why}", count(left_out, "skill")));
    }
    if is_cut {
        let page = if has_page { "" } else { "`--html FILE` writes a full report, " };
        printer.note(&format!("{page}`--json` prints everything, `--top N` shows more"));
    }
    Ok(())
}

struct Page<'p> {
    width: usize,
    /// The number printed of each kind.
    top: usize,
    /// Whether some kind had more.
    is_cut: bool,
    printer: &'p mut Printer,
}

impl Page<'_> {
    /// Prints a section with its heading; nothing if it is empty.
    fn print_section<T>(
        &mut self,
        title: &str,
        meaning: &str,
        items: impl Iterator<Item = T>,
        mut show: impl FnMut(&mut Self, T) -> Result<()>,
    ) -> Result<()> {
        let items: Vec<T> = items.collect();
        if items.is_empty() {
            return Ok(());
        }
        let all = items.len();
        let few = if all > self.top { format!("{} of {all}: ", self.top) } else { String::new() };
        self.is_cut |= all > self.top;
        let aside = format!("({few}{meaning})");
        let name = self.printer.name(title);
        if title.len() + 1 + aside.width() <= self.width {
            self.printer.line(format_args!("{name} {}", self.printer.dim(&aside)))?;
        } else {
            self.printer.line(name)?;
            self.print_text(2, &aside)?;
        }
        for item in items.into_iter().take(self.top) {
            show(self, item)?;
        }
        self.printer.line("")
    }

    fn print_skill(&mut self, it: &StudiedSkill<'_>) -> Result<()> {
        let name = safe::cut(&safe::line(&it.skill.manifest.name), self.width - 2);
        self.printer.line(format_args!("  {}", self.printer.name(&name)))?;
        self.print_text(4, &describe_misses(it))?;
        it.advice.iter().try_for_each(|it| self.print_text(4, &format!("- {it}")))
    }

    fn print_family(&mut self, family: &NearDuplicates<'_>) -> Result<()> {
        let least = family.members.iter().map(|it| it.likeness).fold(1.0, f64::min);
        let what = if family.whole { "texts" } else { "descriptions" };
        let names = family.members.iter().map(|it| &*it.skill.manifest.name);
        let names: Vec<&str> = names.take(self.top.max(2)).collect();
        let more = match family.members.len() - names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let names = names.join(", ");
        self.print_text(2, &format!("{names}{more}: {what} {} alike", percent(least)))
    }

    fn print_confusion(&mut self, it: &Confusion<'_>) -> Result<()> {
        self.print_text(
            2,
            &format!("{:>3} × {} → {}", it.count, name_of(it.expected), name_of(it.matched)),
        )
    }

    fn print_failure(&mut self, report: &Report<'_>, it: &TestedRequest<'_>) -> Result<()> {
        let request = safe::cut(&safe::line(&it.trial.request), self.width.saturating_sub(4) * 2);
        self.print_text(2, &format!("“{request}”"))?;
        let expected = match &it.trial.expected {
            ExpectedMatch::AnyOf(skills) => {
                let names: Vec<&str> = skills.iter().map(|it| &*it.manifest.name).collect();
                names.join(" or ")
            }
            ExpectedMatch::Not(skill) => format!("not {}", skill.manifest.name),
            ExpectedMatch::Nothing => "no skill".to_owned(),
        };
        let matched = match it.matched {
            Some((skill, sure)) => format!("{} ({})", skill.manifest.name, percent(sure)),
            None => "no skill".to_owned(),
        };
        let rank = match (&it.trial.expected, it.rank) {
            (expected, _) if !expected.is_possible() => "; only people can invoke it".to_owned(),
            (ExpectedMatch::AnyOf(_), Some(rank)) => format!("; it came {}", ordinal(rank)),
            (ExpectedMatch::AnyOf(_), None) => "; it was not found".to_owned(),
            _ => String::new(),
        };
        self.print_text(4, &format!("expected {expected}, matched {matched}{rank}"))?;
        let why = it.matched.map(|fit| json::why_words(report, &it.trial.request, fit.0));
        let why = why.unwrap_or_default();
        if !why.is_empty() {
            self.print_text(4, &format!("because of {}", why.join(", ")))?;
        }
        self.print_text(4, &format!("{}:{}", it.trial.path.display(), it.trial.line))
    }

    fn print_summary(&mut self, report: &Report<'_>) -> Result<()> {
        let Report { study, evaluation, .. } = report;
        let mut counts: Vec<(ProbeStatus, usize)> = Vec::new();
        for it in &study.skills {
            match counts.iter_mut().find(|known| known.0 == it.standing) {
                Some(known) => known.1 += 1,
                None => counts.push((it.standing, 1)),
            }
        }
        let counts: Vec<String> =
            counts.iter().rev().map(|it| format!("{} {}", it.1, it.0.as_str())).collect();
        let found = study.skills.iter().filter(|it| it.standing == ProbeStatus::Found).count();
        let line = match study.skills.len() {
            1 if found == 1 => "the skill can be found".to_owned(),
            2 if found == 2 => "both skills can be found".to_owned(),
            all if found == all => format!("all {all} skills can be found"),
            all => format!("{}: {}", count(all, "skill"), counts.join(", ")),
        };
        self.print_text(0, &line)?;
        self.print_evaluation(evaluation)
    }

    fn print_evaluation(&mut self, evaluation: &Evaluation<'_>) -> Result<()> {
        let all = evaluation.tested.len();
        if all == 0 {
            return Ok(());
        }
        let total = &evaluation.total;
        let passed = evaluation.passed();
        let share = percent(passed as f64 / all as f64);
        let mut line = format!("{passed} of {} passed ({share})", count(all, "evaluation"));
        for (name, value) in
            [("precision", total.precision()), ("recall", total.recall()), ("F1", total.f1())]
        {
            line.push_str(&value.map(|it| format!(", {name} {it:.2}")).unwrap_or_default());
        }
        self.print_text(0, &line)
    }

    /// Prints a text wrapped to the page, after this many spaces.
    fn print_text(&mut self, indent: usize, text: &str) -> Result<()> {
        let text = safe::line(text);
        let room = self.width - indent;
        // The following lines of an item are indented further.
        let further = if text.starts_with("- ") { "  " } else { "" };
        let mut line = String::new();
        for word in text.split(' ') {
            if !line.is_empty() && line.width() + 1 + word.width() > room {
                self.printer.line(format_args!("{:indent$}{line}", ""))?;
                line = further.to_owned();
            } else if !line.is_empty() {
                line.push(' ');
            }
            for c in word.chars() {
                if line.width() + c.width().unwrap_or(0) > room {
                    self.printer.line(format_args!("{:indent$}{line}", ""))?;
                    line = further.to_owned();
                }
                line.push(c);
            }
        }
        self.printer.line(format_args!("{:indent$}{line}", ""))
    }
}

fn name_of(skill: Option<&Skill>) -> &str {
    skill.map_or("(none)", |it| &it.manifest.name)
}

fn ordinal(rank: usize) -> String {
    match rank {
        1 => "first, but below the threshold".to_owned(),
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        rank => format!("{rank}th"),
    }
}

/// Formats a share; it is never rounded up to 100 %.
fn percent(share: f64) -> String {
    format!("{:.0} %", (share * 100.0).floor())
}

/// Describes how often a skill is first for its own requests, and why not more often.
fn describe_misses(it: &StudiedSkill<'_>) -> String {
    let because = it.because.map(json::explain_miss).unwrap_or_default();
    match (it.probes.len(), it.won, it.because) {
        (0, ..) => because,
        (1, 0, Some(MissReason::Shadowed(other))) => {
            format!("its only request finds `{}` first", safe::line(&other.manifest.name))
        }
        (1, 0, _) => format!("not first for its only request: {because}"),
        (1, ..) => format!("first for its only request: {because}"),
        (all, won, _) => format!("first for {won} of its {all} requests: {because}"),
    }
}
