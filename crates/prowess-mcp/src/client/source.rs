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
    cause::shorten,
    connection::Caller,
    ending::{Process, explain_failure},
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
    pub(super) settings_file: Option<String>,
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
        let (listed, has_more) = self.with_timeout(patience, self.caller.skills(SKILLS)).await?;
        Ok(RemoteSkills::of(&self.server, self.settings_file.as_deref(), &listed, has_more))
    }

    /// Returns the current skill of a URI, even if it is not listed.
    pub(super) async fn skill(&self, uri: &str) -> Result<RemoteSkill, Box<Outcome>> {
        let entry = self.with_timeout(self.patience, self.caller.skill(uri)).await?;
        let skill = RemoteSkill::read(&self.server, self.settings_file.as_deref(), &entry);
        let skill = skill.and_then(|it| match it.uri == uri {
            true => Ok(it),
            false => Err("it is not the requested skill".to_owned()),
        });
        skill.map_err(|why| self.refuse_changed(&format!("its skill at `{uri}`"), &why))
    }

    /// Reads the `SKILL.md` of a skill, and verifies that it matches the entry.
    pub(super) async fn document(&self, skill: &RemoteSkill) -> Result<String, Box<Outcome>> {
        let bytes = self.file(skill, RemoteSkill::DOCUMENT).await?;
        let document = skill.verify(&bytes).and_then(|()| {
            String::from_utf8(bytes).map_err(|_| "its text is not UTF-8".to_owned())
        });
        document.map_err(|why| self.refuse_changed(&format!("the skill `{}`", skill.address), &why))
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
        let bytes =
            self.with_timeout(self.patience, self.caller.read(&file.uri, file.size)).await?;
        file.verify(&bytes).map_err(|why| {
            self.refuse_changed(&format!("`{path}` of the skill `{}`", skill.address), &why)
        })?;
        Ok(bytes)
    }

    async fn with_timeout<T>(
        &self,
        patience: Duration,
        asked: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Box<Outcome>> {
        match timeout(patience, asked).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(failure)) => {
                let failure = match failure {
                    Failure::Error(message) => {
                        Failure::Error(shorten(&one_line(&message), MESSAGE))
                    }
                    failure => failure,
                };
                Err(Box::new(explain_failure(&self.server, failure, self.process.as_ref()).await))
            }
            Err(_) => {
                let seconds = patience.as_secs_f64();
                let message =
                    format!("the server `{}` did not answer for {seconds} s", self.server);
                Err(Box::new(Outcome::bad(OutcomeStatus::TimedOut, message)))
            }
        }
    }

    fn refuse_changed(&self, what: &str, why: &str) -> Box<Outcome> {
        let message =
            format!("{what} is not used, because it differs from what the server listed: {why}");
        let hint = format!(
            "the server `{}` has changed it, or cannot be trusted; list its skills again",
            self.server
        );
        Box::new(Outcome::bad(OutcomeStatus::Refused, message).hint(hint))
    }
}
