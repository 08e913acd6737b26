//! A running server: its tools and skills, and its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering};

use prowess_runtime::{
    Authorizer, Outcome, OutcomeStatus, Tool,
    approval::AuditEntry,
    files::WriteWatch,
    skill::{RemoteSkill, RemoteSkills},
};
use prowess_sandbox::RunningProgram;
use serde_json::Value;
use tokio::time::timeout;

use super::{
    connection::{Connection, ToolDescription},
    ending::explain_failure,
    launcher::ServerTimeouts,
    server_skills::ServerSkills,
    source::Source,
    tool,
};

/// A running server. It is stopped soon after this is dropped; a remote session is closed.
#[derive(Debug)]
pub struct McpServer {
    pub(super) source: Source,
    pub(super) connection: Connection,
    /// Its process, if it is a local program.
    pub(super) running: Option<RunningProgram>,
    /// The watch on protected files, if the server can write.
    pub(super) watch: Option<WriteWatch>,
    pub(super) patience: ServerTimeouts,
    pub(super) offer: Mutex<Offer>,
}

/// The tools of a server, and those that were left out.
#[derive(Debug, Clone, Default)]
pub(super) struct Offer {
    tools: Vec<Arc<dyn Tool>>,
    left_out: Vec<String>,
}

/// The maximum number of tools of a server.
pub(super) const TOOLS: usize = 128;

impl McpServer {
    /// Returns the name of the server.
    pub fn name(&self) -> &str {
        &self.source.server
    }

    /// Returns the skill that brings it; `None` if it is configured.
    pub fn skill(&self) -> Option<&str> {
        self.source.skill.as_deref()
    }

    /// Whether it offers skills. Those of a server from a skill are ignored.
    pub fn offers_skills(&self) -> bool {
        self.skill().is_none() && self.connection.offers_skills()
    }

    /// Lists the skills that it offers, without reading them.
    pub async fn skills(&self) -> Result<RemoteSkills, Box<Outcome>> {
        match self.offers_skills() {
            true => self.source.skills().await,
            false => Ok(RemoteSkills::default()),
        }
    }

    /// Whether it has announced changed skills since they were last listed.
    pub fn has_other_skills(&self) -> bool {
        self.offers_skills() && self.connection.has_changed_skills()
    }

    /// Returns a skill by its URI, even if it is not listed.
    pub async fn skill_at(&self, uri: &str) -> Result<RemoteSkill, Box<Outcome>> {
        self.source.skill(uri).await
    }

    /// Reads the `SKILL.md` of a skill, and verifies that it matches the listed entry in every
    /// field. Nobody is asked.
    pub async fn document(&self, skill: &RemoteSkill) -> Result<String, Box<Outcome>> {
        self.source.document(skill).await
    }

    /// Reads a file of a skill by its path, and verifies that it matches the listed entry. Nobody
    /// is asked.
    pub async fn file(&self, skill: &RemoteSkill, path: &str) -> Result<Vec<u8>, Box<Outcome>> {
        self.source.file(skill, path).await
    }

    /// Creates the tool by which a model activates these skills, as far as it may.
    pub fn skill_tool(&self, skills: RemoteSkills) -> Arc<ServerSkills> {
        Arc::new(ServerSkills::new(self.source.clone(), skills))
    }

    /// Returns its tools.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.offer().tools.clone()
    }

    /// Returns the tools that were left out, with reasons.
    pub fn left_out(&self) -> Vec<String> {
        self.offer().left_out.clone()
    }

    /// Whether it can still be called.
    pub fn is_alive(&self) -> bool {
        !self.running.as_ref().is_some_and(RunningProgram::is_over) && !self.connection.is_closed()
    }

    /// Returns the reason why it can no longer be called.
    pub async fn fault(&self) -> Outcome {
        explain_failure(self.name(), self.connection.failure(), self.source.process.as_ref()).await
    }

    /// Lists its tools again, if it has announced changes; returns whether there were any.
    pub async fn refresh(&self) -> bool {
        if !self.connection.has_changed_tools() {
            return false;
        }
        let Ok(Ok(listed)) = timeout(self.patience.start, self.connection.tools(TOOLS)).await
        else {
            return false;
        };
        *self.offer() = Offer::of(&self.source, listed);
        true
    }

    /// Whether it can write files of the user.
    pub fn can_write(&self) -> bool {
        self.watch.is_some()
    }

    /// Reports changed protected files where it can write, if one of its tools was called since the
    /// last report. Each change is reported once, and logged; the report is also among the
    /// [warnings](prowess_runtime::Authorizer::take_warnings).
    pub async fn changes(&self) -> Option<String> {
        let Source { server, authorizer, prefix, was_called, .. } = &self.source;
        let watch = self.watch.as_ref().filter(|_| was_called.swap(false, Ordering::Relaxed));
        let report = changes(watch, server, authorizer, prefix).await;
        report.iter().for_each(|it| authorizer.warn(it));
        report
    }

    /// Stops it: asks it to end, kills it if it does not, and returns its outcome. Changed
    /// protected files are then among the
    /// [warnings](prowess_runtime::Authorizer::take_warnings).
    pub async fn stop(self) -> Outcome {
        let Self { source, connection, running, watch, patience, .. } = self;
        let closed = timeout(patience.stop, connection.close()).await;
        match running {
            Some(running) => {
                let ended = running.stop(patience.stop).await;
                let Source { server, authorizer, prefix, .. } = &source;
                let report = changes(watch.as_ref(), server, authorizer, prefix).await;
                report.into_iter().for_each(|it| authorizer.warn(it));
                ended.into()
            }
            None if closed.is_ok() => Outcome::ok(Value::Null),
            None => Outcome::bad(OutcomeStatus::TimedOut, "it did not end the session in time"),
        }
    }

    fn offer(&self) -> MutexGuard<'_, Offer> {
        self.offer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Offer {
    pub(super) fn of(source: &Source, (listed, has_more): (Vec<ToolDescription>, bool)) -> Self {
        let count = listed.len();
        let (tools, mut left_out) = tool::tools(source, listed);
        if has_more && count == TOOLS {
            left_out.push(format!("of its tools the first {TOOLS} are taken"));
        } else if has_more {
            left_out.push(format!("its list of tools does not end; the first {count} were taken"));
        }
        let tools = tools.into_iter().map(|it| Arc::new(it) as Arc<dyn Tool>).collect();
        Self { tools, left_out }
    }
}

/// Reports changed protected files where a server can write, and logs that.
pub(super) async fn changes(
    watch: Option<&WriteWatch>,
    server: &str,
    authorizer: &Authorizer,
    prefix: &str,
) -> Option<String> {
    let report = watch?.report(server).await?;
    authorizer.audit.record(&AuditEntry {
        tool: prefix,
        what: &report,
        decision: "ran",
        by: "server",
        ..AuditEntry::default()
    });
    Some(report)
}
