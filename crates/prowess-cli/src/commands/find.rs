use std::{
    borrow::Cow,
    fs::File,
    io::{self, BufRead, BufReader},
    path::PathBuf,
    time::Instant,
};

use anyhow::{Context as _, Result};
use prowess::{
    Library, Match, Matching, Reason, Skill, Strategy, Thresholds, Tier, Unknown, activate,
    matches_by, why,
};
use prowess_cli::settings::Ratio;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use unicode_width::UnicodeWidthStr as _;

use super::{count, plural};
use crate::{
    ExitStatus,
    arguments::{Global, StrategyName, parse_ratio},
    context, host,
    markdown::wrap,
    printer::{LONG, Printer},
    safe,
};

/// The number of skills printed for one request, and for each of many.
const TOP: (u8, u8) = (5, 10);
/// The widest column of names.
const WIDEST: usize = 36;
/// The least width of a description beside its skill.
const NARROW: usize = 24;
/// The widest column of descriptions.
const PROSE: usize = 80;
/// The width of a terminal that does not report it.
const USUAL: usize = 80;
/// The confidence from which the best match is a strong one.
const STRONG: f64 = 0.5;
/// The share of the confidence of a strong match below which others are not printed for people.
const TAIL: f64 = 0.1;
/// The remark on a skill below the activation threshold.
const BELOW: &str = "below the threshold: agents do not activate it on their own";
/// The note if that applies to every match.
const ALL_BELOW: &str = "no skill matches well; agents activate none of these on their own";
/// The number of words given as reasons to people.
const REASONS: usize = 8;

/// Find the skills that match a request
///
/// Skills that are mentioned (`@name`, `$name`, or `/name` at the start) come first, then those whose name is in
/// the request, then the most likely ones. At a terminal, matches far weaker than a strong one are not shown unless
/// `--top` is given. In a pipe or file, each skill is one tab-separated line: name, confidence, level, full
/// description, remarks. Exits 1 when nothing matches.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The request; several words need no quotes
    #[arg(required_unless_present = "queries", conflicts_with = "queries")]
    query: Vec<String>,
    /// Answer many requests from a file with one `{"id","query"}` per line; `-` reads stdin. Prints one JSON
    /// document per line, in the same order
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::AnyPath)]
    queries: Option<String>,
    /// Maximum number of skills, 1 to 100 [default: 5, or 10 with `--queries`]
    #[arg(long, value_name = "N", value_parser = parse_top)]
    top: Option<u8>,
    /// Print only the names, one per line
    #[arg(long, conflicts_with_all = ["json", "queries", "why"])]
    short: bool,
    /// Show which words of the request matched, and where
    #[arg(long)]
    why: bool,
    /// How skills are found [default: semantic]
    #[arg(long, value_enum, value_name = "STRATEGY")]
    strategy: Option<StrategyName>,
    /// Minimum confidence, from 0 to 1 [default: 0]
    #[arg(long, value_name = "C", value_parser = parse_ratio, allow_negative_numbers = true)]
    threshold: Option<Ratio>,
    /// Also match by meaning, with a file of word vectors in the text format of word2vec, GloVe or fastText
    #[arg(long, value_name = "FILE")]
    embeddings: Option<PathBuf>,
}

/// Parses a number from 1 to 100.
fn parse_top(text: &str) -> Result<u8, &'static str> {
    let number = text.parse().ok().filter(|it| (1..=100).contains(it));
    number.ok_or("must be from 1 to 100")
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let query = args.query.join(" ");
    if args.queries.is_none() && query.trim().is_empty() {
        printer.error_text("the request is empty");
        printer.hint("describe what you want to do, as in `prowess find open a pull request`");
        return Ok(ExitStatus::Error);
    }
    let requests = args.queries.as_deref().map(open_requests).transpose()?;
    let config = context::config(global)?;
    let library = context::library_with_vectors(global, args.embeddings.as_deref(), printer)?;
    context::note_left_out(&library, printer);
    let library = context::leak(host::without_denied(library, &config, printer));
    let top = args.top.unwrap_or(if requests.is_some() { TOP.1 } else { TOP.0 });
    let Matching { strategy, threshold: activation, .. } = config.matching();
    // A search shows weak matches too, unless a threshold is set.
    let threshold = args.threshold.or(config.matching.threshold.explicit().copied());
    let finder = Finder {
        library,
        args,
        top: top.into(),
        strategy: args.strategy.map_or(strategy, Into::into),
        threshold: threshold.map_or(0.0, Ratio::get),
        activation,
        thresholds: config.thresholds(),
    };
    finder.index(printer);
    match requests {
        Some(requests) => finder.answer_all(requests, printer),
        None => finder.answer(&query, printer),
    }
}

/// Opens a file, or stdin for `-`.
fn open_requests(path: &str) -> Result<Box<dyn BufRead>> {
    if path == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(path).with_context(|| format!("cannot read `{path}`"))?;
    Ok(Box::new(BufReader::new(file)))
}

/// The library, and the way it is searched.
struct Finder<'a> {
    library: &'a Library,
    args: &'a Args,
    top: usize,
    strategy: Strategy,
    threshold: f64,
    /// The confidence from which an agent activates a skill by itself.
    activation: f64,
    thresholds: Thresholds,
}

/// A match as it is printed.
struct FoundMatch<'a> {
    fit: Match<'a>,
    /// The rounded confidence, so that the level never contradicts it.
    confidence: f64,
    level: &'static str,
    is_below: bool,
    why: Option<Vec<Reason>>,
}

impl FoundMatch<'_> {
    /// Returns the remarks on it; that it is below the threshold only if `is_said` is false.
    fn remarks(&self, is_said: bool) -> Vec<String> {
        let hidden = self.fit.skill.hidden_by.as_ref();
        let hidden = hidden.map(|it| format!("hidden by {}", safe::line(&it.to_string_lossy())));
        let is_for_people = self.fit.skill.manifest.hides_from_model();
        let people = is_for_people.then(|| "for people only: the model does not see it".to_owned());
        let below = (self.is_below && !is_said).then(|| BELOW.to_owned());
        below.into_iter().chain(hidden).chain(people).collect()
    }
}

/// A line of `--queries`.
#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    query: String,
}

#[derive(Serialize)]
struct AnswerJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<&'a str>,
    matches: Vec<MatchJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown: Vec<UnknownJson<'a>>,
}

#[derive(Serialize)]
struct MatchJson<'a> {
    name: &'a str,
    confidence: f64,
    level: &'a str,
    /// Whether agents do not activate it by themselves.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    below_threshold: bool,
    path: Cow<'a, str>,
    tier: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden_by: Option<Cow<'a, str>>,
    /// Whether the model does not see it, and only a person can invoke it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    user_only: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<Vec<ReasonJson<'a>>>,
}

#[derive(Serialize)]
struct ReasonJson<'a> {
    word: &'a str,
    /// The word of the skill that matched instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    other_word: Option<&'a str>,
    fields: Vec<&'a str>,
    share: f64,
}

#[derive(Serialize)]
struct UnknownJson<'a> {
    name: &'a str,
    nearest: Option<&'a str>,
}

impl<'a> Finder<'a> {
    /// Reads and indexes all skills, with progress if there are many.
    fn index(&self, printer: &mut Printer) {
        if self.strategy == Strategy::Semantic {
            context::index(self.library, printer);
        }
    }

    fn answer(&self, query: &str, printer: &mut Printer) -> Result<ExitStatus> {
        let (found, unknown) = (self.find(query), self.unknown_mentions(query));
        if printer.json {
            let query = Some(query);
            printer.document(&AnswerJson { query, ..answer_json(&found, &unknown) })?;
        } else if self.args.short {
            for found in &found {
                printer.line(safe::line(&self.library.address(found.fit.skill)))?;
            }
        } else {
            let shown = if printer.is_terminal { self.without_tail(&found) } else { &found };
            self.print_table(shown, printer)?;
            let hidden = found.len() - shown.len();
            if hidden > 0 {
                printer.flush()?;
                let (top, matches) = (self.top, plural(hidden, "weak match", "weak matches"));
                let them = if hidden == 1 { "it" } else { "them" };
                printer.note(&format!("{matches} not shown; `--top {top}` shows {them}"));
            }
        }
        printer.flush()?;
        context::warn_about_unknown(&unknown, printer);
        if !found.is_empty() {
            if found.iter().all(|it| it.is_below) {
                printer.note(ALL_BELOW);
            }
            return Ok(ExitStatus::Success);
        }
        printer.error_text(&format!("no skill matches `{}`", safe::cut(query, 60)));
        printer.hint("`prowess list` lists all skills");
        Ok(ExitStatus::Failure)
    }

    /// Answers line by line, each as soon as it is read.
    fn answer_all(
        &self,
        mut requests: Box<dyn BufRead>,
        printer: &mut Printer,
    ) -> Result<ExitStatus> {
        let file = self.args.queries.as_deref().filter(|it| *it != "-").unwrap_or("stdin");
        let mut status = ExitStatus::Success;
        let mut line = Vec::new();
        let mut shown = Instant::now();
        for number in 1_usize.. {
            line.clear();
            let read = requests.read_until(b'\n', &mut line);
            if read.with_context(|| format!("cannot read `{file}`"))? == 0 {
                break;
            }
            let text = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line);
            if text.trim_ascii().is_empty() {
                continue;
            }
            match parse_request(text) {
                Ok(Request { id, query }) => {
                    let (found, unknown) = (self.find(&query), self.unknown_mentions(&query));
                    let answer = AnswerJson { id: Some(id), ..answer_json(&found, &unknown) };
                    printer.json_line(&answer)?;
                    printer.flush()?;
                }
                Err(error) => {
                    printer.progress_ends();
                    printer.error_text(&format!("{file}:{number}: {error}"));
                    status = ExitStatus::Failure;
                }
            }
            if shown.elapsed() > LONG && !printer.is_terminal {
                printer.progress(&format!("{}…", count(number, "request")));
                shown = Instant::now();
            }
        }
        printer.progress_ends();
        if status == ExitStatus::Failure {
            printer.hint(r#"a line is a JSON object such as {"id": 1, "query": "open a PR"}"#);
        }
        Ok(status)
    }

    /// Searches all enabled skills, including shadowed ones.
    fn find(&self, query: &str) -> Vec<FoundMatch<'a>> {
        matches_by(self.library, query, self.strategy, self.top, |skill: &Skill| {
            skill.manifest.is_active()
        })
        .into_iter()
        .filter(|it| it.confidence >= self.threshold)
        .map(|fit| {
            let confidence = (fit.confidence * 1e4).round() / 1e4;
            let level = self.thresholds.level(confidence).as_str();
            let why = self.args.why.then(|| why(self.library, query, fit.skill));
            let is_below = fit.tier != Tier::Mentioned && fit.confidence < self.activation;
            FoundMatch { fit, confidence, level, is_below, why }
        })
        .collect()
    }

    /// Leaves out matches far weaker than a strong best match, unless `--top` is given.
    fn without_tail<'f>(&self, found: &'f [FoundMatch<'a>]) -> &'f [FoundMatch<'a>] {
        let best = found.iter().map(|it| it.confidence).fold(0.0, f64::max);
        let is_typed = self.args.top.is_some() || self.args.threshold.is_some();
        if is_typed || best < STRONG {
            return found;
        }
        let is_worth =
            |it: &FoundMatch<'_>| it.fit.tier == Tier::Mentioned || it.confidence >= best * TAIL;
        let end = found.iter().rposition(is_worth).map_or(0, |it| it + 1);
        &found[..end]
    }

    /// Returns the mentions of a request that are not enabled skills.
    fn unknown_mentions(&self, query: &str) -> Vec<Unknown> {
        let mentions = Matching { strategy: Strategy::Explicit, ..Matching::default() };
        activate(self.library, query, &mentions).unknown
    }

    /// Prints one line per skill: name, confidence, level and description, which is below on a
    /// narrow terminal; then the remarks.
    fn print_table(&self, found: &[FoundMatch<'_>], printer: &mut Printer) -> Result<()> {
        let names: Vec<String> = found
            .iter()
            .map(|it| safe::line(&self.library.address(it.fit.skill)).into_owned())
            .collect();
        let widest = names.iter().map(|it| it.width()).max().unwrap_or(0).min(WIDEST);
        let is_all_below = found.iter().all(|it| it.is_below);
        for (found, name) in found.iter().zip(names) {
            let pad = " ".repeat(widest.saturating_sub(name.width()));
            let percent = match found.confidence * 100.0 {
                it if it < 1.0 => "<1%".to_owned(),
                // Never rounded up to a threshold that it does not reach.
                it => format!("{:.0}%", it.floor()),
            };
            let numbers = format!("{percent:>4}  {:<8}", found.level);
            let description = safe::line(&found.fit.skill.manifest.description);
            let taken = widest.max(name.width()) + 2 + numbers.len() + 2;
            let line = format!("{}{pad}  {numbers}", printer.name(&name));
            let remarks = found.remarks(is_all_below && printer.is_terminal);
            if !printer.is_terminal {
                let fields = [percent.trim(), found.level, &description].join("\t");
                let why = reason_lines(found, usize::MAX);
                let more = remarks.iter().map(String::as_str).chain(why.iter().map(|it| it.trim()));
                let more: String = more.map(|it| format!("\t{it}")).collect();
                printer.line(format_args!("{}\t{fields}{more}", printer.name(&name)))?;
                continue;
            }
            let width = printer.width.unwrap_or(USUAL);
            let why = reason_lines(found, width);
            // A skill has two lines, plus the requested remarks.
            let lines = if remarks.is_empty() { 2 } else { 1 };
            if width >= taken + NARROW {
                let room = (width - taken).min(PROSE);
                let mut description = safe::cut_at_word(&description, room, lines).into_iter();
                let first = printer.dim(&description.next().unwrap_or_default());
                printer.line(format_args!("{line}  {first}"))?;
                for rest in description {
                    printer.line(format_args!("{:taken$}{}", "", printer.dim(&rest)))?;
                }
            } else {
                let description = safe::cut_at_word(&description, width - 2, 1).concat();
                let description = printer.dim(&description);
                printer.line(format_args!("{}\n  {description}", line.trim_end()))?;
            }
            for remark in remarks {
                printer.line(printer.dim(&format!("  {remark}")))?;
            }
            for line in why {
                printer.line(printer.dim(&line))?;
            }
        }
        Ok(())
    }
}

/// Parses a line of `--queries`.
fn parse_request(line: &[u8]) -> Result<Request<'_>, String> {
    if !line.trim_ascii_start().starts_with(b"{") {
        return Err("the line is not a JSON object".to_owned());
    }
    // The parser sees one line and would always call it the first.
    let plain =
        |error: serde_json::Error| error.to_string().replace(" at line 1 column ", " at column ");
    serde_json::from_slice(line).map_err(plain)
}

/// Returns the reasons for a match, in lines of this width.
fn reason_lines(found: &FoundMatch<'_>, width: usize) -> Vec<String> {
    let Some(why) = &found.why else { return Vec::new() };
    let tier = Some(found.fit.tier).filter(|it| *it > Tier::Evidence);
    let mut words: Vec<String> = tier.map(|it| it.as_str().to_owned()).into_iter().collect();
    words.extend(why.iter().take(REASONS).map(|it| safe::line(&it.to_string()).into_owned()));
    if why.len() > REASONS {
        words.push(format!("{} more", count(why.len() - REASONS, "word")));
    }
    let lines = wrap(&words.join(", "), width - 2, "");
    lines.iter().filter(|it| !it.is_empty()).map(|it| format!("  {it}")).collect()
}

fn answer_json<'a>(found: &'a [FoundMatch<'_>], unknown: &'a [Unknown]) -> AnswerJson<'a> {
    let matches = found.iter().map(|it| MatchJson {
        name: &it.fit.skill.manifest.name,
        confidence: it.confidence,
        level: it.level,
        below_threshold: it.is_below,
        path: it.fit.skill.origin.path.to_string_lossy(),
        tier: it.fit.tier.as_str(),
        hidden_by: it.fit.skill.hidden_by.as_ref().map(|it| it.to_string_lossy()),
        user_only: it.fit.skill.manifest.hides_from_model(),
        why: it.why.as_ref().map(|it| {
            it.iter()
                .map(|it: &'a Reason| ReasonJson {
                    word: &it.word,
                    other_word: it.other_word.as_deref(),
                    fields: it.fields.iter().map(|it| it.as_str()).collect(),
                    share: (it.share * 1e4).round() / 1e4,
                })
                .collect()
        }),
    });
    let unknown =
        unknown.iter().map(|it| UnknownJson { name: &it.name, nearest: it.nearest.as_deref() });
    AnswerJson { id: None, query: None, matches: matches.collect(), unknown: unknown.collect() }
}
