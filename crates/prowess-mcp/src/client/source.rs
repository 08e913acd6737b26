//! Reads skills from a server, and verifies every byte against its list.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use prowess_runtime::{
    Authorizer, Outcome, OutcomeStatus,
    skill::{RemoteSkill, RemoteSkills},
    text::one_line,
};
use tokio::time::timeout;

use super::{
    connection::Caller,
    ending::{Process, explained},
    failure::Failure,
};

/// The server of tools and skills.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// The name of the server.
    pub(super) server: String,
    /// The name that prefixes its tools.
    pub(super) prefix: String,
    /// The skill that brings it; `None` if it is configured.
    pub(super) skill: Option<String>,
    /// The project file that configures it, if any.
    pub(super) set_by: Option<String>,
    pub(super) caller: Caller,
    pub(super) authorizer: Arc<Authorizer>,
    /// The process, if the server is a local program.
    pub(super) process: Option<Process>,
    /// The timeout of a call.
    pub(super) patience: Duration,
    /// Whether a tool was called since the last check of written files.
    pub(super) was_called: Arc<AtomicBool>,
}

/// The maximum number of skills of a server.
const SKILLS: usize = 1000;
/// The timeout for listing them.
const LISTING: Duration = Duration::from_secs(20);
/// The maximum length of a server's error message.
const MESSAGE: usize = 500;

impl Source {
    /// Returns the name of the tool that activates its skills.
    pub(super) fn skill_tool(&self) -> String {
        format!("{}__skill", self.prefix)
    }

    /// Lists its current skills, without reading their files.
    pub(super) async fn skills(&self) -> Result<RemoteSkills, Box<Outcome>> {
        let patience = self.patience.min(LISTING);
        let (listed, has_more) = self.within(patience, self.caller.skills(SKILLS)).await?;
        Ok(RemoteSkills::of(&self.server, self.set_by.as_deref(), &listed, has_more))
    }

    /// Returns the current skill of a URI, even if it is not listed.
    pub(super) async fn skill(&self, uri: &str) -> Result<RemoteSkill, Box<Outcome>> {
        let entry = self.within(self.patience, self.caller.skill(uri)).await?;
        let skill = RemoteSkill::read(&self.server, self.set_by.as_deref(), &entry);
        let skill = skill.and_then(|it| match it.uri == uri {
            true => Ok(it),
            false => Err("it is another skill than was asked for".to_owned()),
        });
        skill.map_err(|why| self.mistrusted(&format!("its skill at `{uri}`"), &why))
    }

    /// Reads the `SKILL.md` of a skill, and verifies that it matches the entry.
    pub(super) async fn document(&self, skill: &RemoteSkill) -> Result<String, Box<Outcome>> {
        let bytes = self.file(skill, RemoteSkill::DOCUMENT).await?;
        let document = skill.verify(&bytes).and_then(|()| {
            String::from_utf8(bytes).map_err(|_| "its text is not UTF-8".to_owned())
        });
        document.map_err(|why| self.mistrusted(&format!("the skill `{}`", skill.address), &why))
    }

    /// Reads a file of a skill, and verifies that it matches the entry.
    pub(super) async fn file(
        &self,
        skill: &RemoteSkill,
        path: &str,
    ) -> Result<Vec<u8>, Box<Outcome>> {
        let file = skill.file(path).ok_or_else(|| {
            let paths: Vec<&str> = skill.files.iter().map(|it| &*it.path).take(20).collect();
            let message = format!("the skill `{}` has no file `{path}`", skill.address);
            let hint = format!("there are {}", paths.join(", "));
            Box::new(Outcome::bad(OutcomeStatus::NotFound, message).hint(hint))
        })?;
        let bytes = self.within(self.patience, self.caller.read(&file.uri, file.size)).await?;
        let of = || format!("`{path}` of the skill `{}`", skill.address);
        file.verify(&bytes).map_err(|why| self.mistrusted(&of(), &why))?;
        Ok(bytes)
    }

    async fn within<T>(
        &self,
        patience: Duration,
        asked: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Box<Outcome>> {
        match timeout(patience, asked).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(failure)) => {
                let failure = match failure {
                    Failure::Said(message) => {
                        Failure::Said(shortened(&one_line(&message), MESSAGE))
                    }
                    failure => failure,
                };
                Err(Box::new(explained(&self.server, failure, self.process.as_ref()).await))
            }
            Err(_) => {
                let seconds = patience.as_secs_f64();
                let message =
                    format!("the server `{}` did not answer for {seconds} s", self.server);
                Err(Box::new(Outcome::bad(OutcomeStatus::TimedOut, message)))
            }
        }
    }

    fn mistrusted(&self, what: &str, why: &str) -> Box<Outcome> {
        let message =
            format!("{what} is not used, because it is not what the server listed: {why}");
        let hint = format!(
            "the server `{}` has changed it, or is not to be trusted: look at it again",
            self.server
        );
        Box::new(Outcome::bad(OutcomeStatus::Refused, message).hint(hint))
    }
}

/// Shortens a text to at most so many characters.
pub(super) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
