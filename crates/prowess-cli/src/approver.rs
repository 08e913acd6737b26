//! Approvals by `--yes` or by the person at the terminal.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    io::{self, IsTerminal as _},
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use prowess::lock;
use prowess_runtime::{
    DenyAll,
    approval::{ApproveAll, Approver, ApproverFuture, ApproverReply, Coverage, Question},
};

#[cfg(feature = "agent")]
use crate::pending;
use crate::{printer, safe};

/// Returns the approver: the flag, the person at the terminal, or nobody. The person is asked what
/// the flag does not cover.
pub(crate) fn approver(yes: bool) -> Arc<dyn Approver> {
    let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    match (yes, is_terminal) {
        (true, true) => Arc::new(FlagOrPerson(DiffShowing(ApproveAll), Person::default())),
        (true, false) => Arc::new(DiffShowing(ApproveAll)),
        (false, true) => Arc::new(Person::default()),
        (false, false) => Arc::new(DiffShowing(DenyAll)),
    }
}

/// Like [`approver`], for actions of a model, which a person does not see: it reports what is
/// refused because nobody could be asked.
pub(crate) fn noting_approver(yes: bool) -> Arc<dyn Approver> {
    Arc::new(NotingApprover(approver(yes)))
}

/// Returns whether it was already reported that this was refused because nobody could be asked.
#[cfg(feature = "agent")]
pub(crate) fn is_noted(message: &str) -> bool {
    let noted = lock(&NOTED);
    noted.iter().any(|what| message.contains(&**what))
}

/// The refusals that were reported, for want of somebody to ask.
static NOTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Approves by flag, and asks a person about everything that the flag does not cover.
#[derive(Debug)]
struct FlagOrPerson(DiffShowing<ApproveAll>, Person);

/// Reports what is refused because nobody could be asked.
#[derive(Debug)]
struct NotingApprover(Arc<dyn Approver>);

/// The person at the terminal, who is asked one question at a time.
#[derive(Debug, Clone, Default)]
struct Person(Arc<Mutex<()>>);

/// A pending question; once it is dropped, the next line belongs to another question.
#[derive(Debug, Default)]
struct AnswerWait(Arc<AtomicBool>);

impl Drop for AnswerWait {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// An approver that asks nobody; the difference is printed all the same.
#[derive(Debug)]
struct DiffShowing<A>(A);

/// The number of lines shown of a script: of its beginning, and of its end.
const LINES: (usize, usize) = (150, 50);

impl Approver for Person {
    fn who(&self) -> &str {
        "person"
    }

    fn ask<'a>(&'a self, question: &'a Question) -> ApproverFuture<'a> {
        let (one, shown, choices) = (self.0.clone(), question_text(question), choices(question));
        let coverage = question.coverage.clone();
        Box::pin(async move {
            #[cfg(feature = "agent")]
            pending::wait_until_printed().await;
            let waiting = AnswerWait::default();
            let is_over = waiting.0.clone();
            let asked = tokio::task::spawn_blocking(move || {
                let _one = one.lock();
                printer::ask(&shown, &choices, &is_over, |it| parse_reply(it, &coverage))
            });
            // An answer that cannot be read or understood is no approval.
            asked.await.ok().and_then(Result::ok).flatten().unwrap_or(ApproverReply::No)
        })
    }
}

impl Approver for FlagOrPerson {
    fn who(&self) -> &str {
        self.0.who()
    }

    fn who_answers(&self, question: &Question) -> &str {
        if question.in_person { self.1.who() } else { self.0.who() }
    }

    fn ask<'a>(&'a self, question: &'a Question) -> ApproverFuture<'a> {
        if question.in_person { self.1.ask(question) } else { self.0.ask(question) }
    }
}

impl Approver for NotingApprover {
    fn who(&self) -> &str {
        self.0.who()
    }

    fn who_answers(&self, question: &Question) -> &str {
        self.0.who_answers(question)
    }

    fn ask<'a>(&'a self, question: &'a Question) -> ApproverFuture<'a> {
        Box::pin(async move {
            let reply = self.0.ask(question).await;
            let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
            if reply == ApproverReply::No
                && !is_terminal
                && lock(&NOTED).insert(question.what.clone())
            {
                let (what, why) = (safe::line(&question.what), safe::line(&question.why));
                let how = match question.in_person {
                    true => "it needs an answer at a terminal",
                    false => "use `--yes`, or answer at a terminal",
                };
                printer::write_stderr(&format!("note: refused to {what}, because {why}; {how}\n"));
            }
            reply
        })
    }
}

impl<A: Approver> Approver for DiffShowing<A> {
    fn who(&self) -> &str {
        self.0.who()
    }

    fn ask<'a>(&'a self, question: &'a Question) -> ApproverFuture<'a> {
        if let Some(difference) = &question.difference {
            let (what, why) = (safe::line(&question.what), safe::line(&question.why));
            // It is short already, and marks its own omissions.
            let difference = safe_lines(difference);
            printer::write_stderr(&format!(
                "Approval is needed to {what}, because {why}:\n{difference}"
            ));
        }
        self.0.ask(question)
    }
}

/// Returns the text of a question: what would run or change, and what it could reach.
fn question_text(question: &Question) -> String {
    let Question { what, why, content, difference, files, given, place, diff, reach, .. } =
        question;
    let mut out = String::new();
    match (difference, content) {
        (Some(difference), _) => out.push_str(&safe_lines(difference)),
        (None, Some(content)) => {
            out.push_str(&abridge(content, place.as_deref()));
            if let Some(files) = files {
                let _ = write!(out, "These files go with it:\n{}", safe_lines(files));
            }
        }
        (None, None) => {}
    }
    diff.iter().for_each(|it| out.push_str(&safe_lines(it)));
    for line in reach {
        let _ = writeln!(out, "  {}", safe::for_approval(&safe::line(line)));
    }
    if let Some(given) = given {
        let _ = write!(out, "With this input:\n{}", safe_lines(given));
    }
    let (what, why) = (safe::for_approval(&safe::line(what)), safe::line(why));
    let asked = format!("May prowess {what}? You are asked because {why}.");
    let _ = writeln!(out, "{}", printer::wrap_for_stderr(&asked));
    out
}

/// Returns the choices of a question.
fn choices(question: &Question) -> String {
    let more = match (&question.coverage, &question.given) {
        (Coverage::Once, _) => String::new(),
        (Coverage::UntilChange, Some(_)) => ", [a]lways, with any input".to_owned(),
        (Coverage::UntilChange, None) => ", [a]lways".to_owned(),
        (Coverage::More { session, always }, _) => {
            let (session, always) = (safe::line(session), safe::line(always));
            format!(", this [s]ession ({session}), [a]lways ({always})")
        }
    };
    format!("[y]es, [n]o{more}")
}

/// Returns a text that marks its own omissions, made safe for a terminal.
fn safe_lines(text: &str) -> String {
    text.lines().map(|it| format!("  {}\n", safe::for_approval(it))).collect()
}

/// Returns the beginning and the end of a text, made safe for a terminal, and where the whole can
/// be read.
fn abridge(text: &str, place: Option<&Path>) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let (head, tail) = LINES;
    if lines.len() <= head + tail {
        return safe_lines(text);
    }
    let left = lines.len() - head - tail;
    let see = place.map(|it| format!("; see `{}`", it.display())).unwrap_or_default();
    let (head, tail) = (lines[..head].join("\n"), lines[head + left..].join("\n"));
    let left = format!("… {left} lines are left out here{}", safe::line(&see));
    format!("{}  {left}\n{}", safe_lines(&head), safe_lines(&tail))
}

/// Parses an answer; `None` if it is none of the choices.
fn parse_reply(answer: &str, coverage: &Coverage) -> Option<ApproverReply> {
    match (answer, coverage) {
        ("y" | "yes", _) => Some(ApproverReply::Once),
        ("n" | "no", _) => Some(ApproverReply::No),
        ("s" | "session", Coverage::More { .. }) => Some(ApproverReply::Session),
        ("a" | "always", Coverage::More { .. } | Coverage::UntilChange) => {
            Some(ApproverReply::Always)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        let coverage = Coverage::UntilChange;
        assert_eq!(["y", "yes", "a", "always", "n", "no"].map(|it| parse_reply(it, &coverage)), {
            [
                ApproverReply::Once,
                ApproverReply::Once,
                ApproverReply::Always,
                ApproverReply::Always,
                ApproverReply::No,
                ApproverReply::No,
            ]
            .map(Some)
        });
        for answer in ["", "yess", "yes, but", "\u{202e}y", "0", "s"] {
            assert_eq!(parse_reply(answer, &coverage), None, "{answer:?}");
        }
        let more = Coverage::More { session: "all".to_owned(), always: "this".to_owned() };
        assert_eq!(["s", "a", "ss"].map(|it| parse_reply(it, &more)), {
            [Some(ApproverReply::Session), Some(ApproverReply::Always), None]
        });
        assert_eq!(
            ["y", "a"].map(|it| parse_reply(it, &Coverage::Once)),
            [Some(ApproverReply::Once), None]
        );
    }

    #[test]
    fn a_question_shows_what_has_changed_and_moves_no_cursor() {
        let question = Question {
            what: "run the skill `x\x1b[2J`".to_owned(),
            why: "it has changed since it was approved".to_owned(),
            content: Some("all of it".to_owned()),
            difference: Some("-echo one\n+echo \u{202e}two\x07\n".repeat(200)),
            ..Question::default()
        };
        let long = "x\n".repeat(299) + "rm -rf z\n";
        let place = Some("/skills/x".into());
        let first = Question { difference: None, content: Some(long), place, ..question.clone() };
        let first = super::question_text(&first);
        assert!(first.contains("… 100 lines are left out here; see `/skills/x`"), "{first}");
        assert!(first.contains("rm -rf z"), "{first}");
        let shown = question_text(&question);
        assert!(shown.contains("-echo one") && shown.contains("\\u{202e}two\\u{7}"), "{shown}");
        assert_eq!((shown.matches("-echo").count(), shown.matches("more lines").count()), (200, 0));
        assert!(shown.contains("\\u{1b}[2J"), "{shown}");
        assert!(!shown.contains("all of it"));
    }
}
