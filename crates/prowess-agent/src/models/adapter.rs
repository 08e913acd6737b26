//! Asking a model over a wire, whoever's it is.

use std::{
    error::Error,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use prowess_runtime::{Incoming, Post, Wire, WireError};
use serde_json::Value as Json;

use super::{
    connection::Provider,
    draft::Draft,
    sse::{Events, TooLong},
    trouble::{Trouble, presentable, wait},
};
use crate::model::{Ask, Delta, Model, ModelError, Reply, Replying, Stop};

/// A model that is asked over a wire.
pub(super) struct Adapter {
    pub(super) provider: Provider,
    pub(super) name: String,
    pub(super) base: String,
    pub(super) key: String,
    pub(super) stream: bool,
    pub(super) wire: Wire,
    pub(super) protocol: Box<dyn Protocol>,
    /// What its server has taught us so far.
    pub(super) manners: Mutex<Manners>,
}

/// How a provider is spoken to. An implementer translates, and decides nothing.
pub(super) trait Protocol: Send + Sync {
    /// Where a model is asked, behind the base URL: the version, which may stand there already, and
    /// the rest of the path.
    fn path(&self, model: &str, stream: bool) -> (&'static str, String);

    /// The headers that let one in, and whatever else is wanted.
    fn headers(&self, key: &str) -> Vec<(&'static str, String)>;

    /// What is sent. `by` names the model among those whose replies stand in the messages.
    fn body(&self, model: &str, by: &str, ask: &Ask, manners: Manners) -> Json;

    /// Takes one event of a stream, or the whole answer where there is no stream.
    fn take(&self, event: &Json, draft: &mut Draft<'_>) -> Result<Flow, Trouble>;

    /// How to ask after a request was not taken, with what was said; the same if there is no other way.
    fn relent(&self, manners: Manners, _message: &str) -> Manners {
        manners
    }
}

/// How a server wants to be asked, as far as it has said so by refusing something else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Manners {
    /// It takes no wish to stream.
    pub(super) no_stream: bool,
    /// It takes no wish to hear what a stream took.
    pub(super) no_usage: bool,
    /// Its limit of a reply goes by the other name.
    pub(super) other_limit: bool,
    /// It takes no wish for thoughts that can go back.
    pub(super) no_thoughts: bool,
    /// It wants thoughts back also where there were none.
    pub(super) empty_thoughts: bool,
    /// It does not know what goes back as its own. That is so for one request only.
    pub(super) forgotten: bool,
}

/// Whether more of a reply is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Flow {
    More,
    /// All was said; what it took may follow.
    Nearly,
    Over,
}

/// The most bytes of a reply, with all that stands around it.
const MAX_REPLY: u64 = 64 * 1024 * 1024;
/// The most bytes of an answer that is no reply.
const MAX_TROUBLE: usize = 64 * 1024;
/// How long is waited for what may follow.
const LINGER: Duration = Duration::from_secs(2);

impl Model for Adapter {
    fn name(&self) -> &str {
        &self.name
    }

    fn provider(&self) -> &str {
        self.provider.as_str()
    }

    fn reply<'a>(
        &'a self,
        ask: &'a Ask,
        hear: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    ) -> Replying<'a> {
        Box::pin(async move {
            let mut manners = *self.manners();
            loop {
                let reply = self.ask(ask, manners, hear).await;
                let Err(ModelError::Invalid { message, .. }) = &reply else { return reply };
                let mut better = self.protocol.relent(manners, message);
                better.forgotten |= better == manners && is_about_thoughts(message);
                if better == manners {
                    return reply;
                }
                *self.manners() = Manners { forgotten: false, ..better };
                manners = better;
            }
        })
    }
}

impl Adapter {
    pub(super) fn post(&self, body: Vec<u8>) -> Post {
        let (version, path) = self.protocol.path(&self.name, self.stream);
        let mut headers = vec![("content-type", "application/json".to_owned())];
        headers.extend(self.protocol.headers(&self.key));
        let accept =
            if self.stream { "text/event-stream, application/json" } else { "application/json" };
        headers.push(("accept", accept.to_owned()));
        Post {
            url: url(&self.base, version, &path, self.provider == Provider::Anthropic),
            headers: headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            body,
            most: MAX_REPLY,
        }
    }

    async fn ask(
        &self,
        ask: &Ask,
        mut manners: Manners,
        hear: &(dyn Fn(Delta<'_>) + Send + Sync),
    ) -> Result<Reply, ModelError> {
        manners.no_stream |= !self.stream;
        let by = if manners.forgotten { String::new() } else { self.by() };
        let body = self.protocol.body(&self.name, &by, ask, manners);
        let post = self.post(body.to_string().into_bytes());
        let mut incoming = self.wire.post(post).await.map_err(|it| self.unreachable(it))?;
        if !(200..300).contains(&incoming.status) {
            return Err(self.refusal(&mut incoming).await);
        }
        let mut draft = Draft::new(hear);
        let kind = incoming.header("content-type").unwrap_or_default();
        if kind.contains("html") {
            let message = "the address answers with a page".to_owned();
            return Err(ModelError::NotFound { model: self.name.clone(), message });
        }
        let has_events = kind.contains("event-stream") || self.stream && !kind.contains("json");
        if has_events {
            self.hear_events(&mut incoming, &mut draft).await?;
        } else {
            let whole = incoming.whole().await.map_err(|it| self.unreachable(it))?;
            let flow = self.take(&String::from_utf8_lossy(&whole), &mut draft)?;
            if flow == Flow::More {
                return Err(self.malformed("it has no end"));
            }
        }
        self.finish(draft)
    }

    async fn hear_events(
        &self,
        incoming: &mut Incoming,
        draft: &mut Draft<'_>,
    ) -> Result<(), ModelError> {
        let mut events = Events::default();
        let mut flow = Flow::More;
        loop {
            let chunk = match flow {
                Flow::More => incoming.chunk().await.map_err(|it| self.unreachable(it))?,
                // What is missing now is not worth to lose the reply.
                Flow::Nearly => incoming.chunk_within(LINGER).await.unwrap_or_default(),
                Flow::Over => return Ok(()),
            };
            let Some(chunk) = chunk else { break };
            let taken = events.take(&chunk);
            for event in taken.map_err(|TooLong| self.malformed("an event is too long"))? {
                flow = flow.max(self.take(&event, draft)?);
            }
        }
        if let Some(event) = events.finish() {
            flow = flow.max(self.take(&event, draft)?);
        }
        match flow {
            Flow::More => {
                let message = "the reply broke off".to_owned();
                Err(ModelError::Network { host: self.host(), message })
            }
            Flow::Nearly | Flow::Over => Ok(()),
        }
    }

    fn take(&self, event: &str, draft: &mut Draft<'_>) -> Result<Flow, ModelError> {
        match event.trim() {
            "" => return Ok(Flow::More),
            // Only chat completions end like this, and some servers that speak something else too.
            "[DONE]" if draft.stop.is_some() || !draft.is_empty() => return Ok(Flow::Over),
            "[DONE]" => return Ok(Flow::More),
            _ => {}
        }
        let json = serde_json::from_str(event);
        let json: Json = json.map_err(|it| self.malformed(&format!("it is not JSON: {it}")))?;
        self.protocol.take(&json, draft).map_err(|it| self.trouble(it))
    }

    fn finish(&self, draft: Draft<'_>) -> Result<Reply, ModelError> {
        if draft.stop == Some(Stop::Filtered) && draft.is_empty() {
            let message = match &*draft.why {
                "" => "the reply was held back",
                why => why,
            };
            let message = presentable(message, &self.key);
            return Err(ModelError::Refused { model: self.name.clone(), message });
        }
        Ok(draft.reply(&self.by()))
    }

    /// What stands in a message that only this model understands.
    fn by(&self) -> String {
        format!("{}/{}", self.provider.as_str(), self.name)
    }

    async fn refusal(&self, incoming: &mut Incoming) -> ModelError {
        let (status, wait) = (incoming.status, wait(incoming.headers()));
        let mut body = Vec::new();
        // What was said until it broke off is all there is to say.
        while let Ok(Some(chunk)) = incoming.chunk().await {
            body.extend(chunk);
            if body.len() > MAX_TROUBLE {
                break;
            }
        }
        self.trouble(Trouble::read(status, &body, wait))
    }

    fn trouble(&self, trouble: Trouble) -> ModelError {
        trouble.error(self.provider.as_str(), &self.name, &self.key)
    }

    fn malformed(&self, message: &str) -> ModelError {
        let message = presentable(message, &self.key);
        ModelError::Malformed { model: self.name.clone(), message }
    }

    fn unreachable(&self, error: WireError) -> ModelError {
        match error {
            WireError::Timeout { after, .. } => {
                ModelError::Timeout { model: self.name.clone(), after }
            }
            WireError::TooLong { .. } => self.malformed("it is too long"),
            error => {
                let mut deepest: Option<&dyn Error> = error.source();
                while let Some(source) = deepest.and_then(Error::source) {
                    deepest = Some(source);
                }
                let message = deepest.map_or(error.to_string(), |it| format!("{error}: {it}"));
                ModelError::Network { host: self.host(), message: presentable(&message, &self.key) }
            }
        }
    }

    fn manners(&self) -> MutexGuard<'_, Manners> {
        self.manners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn host(&self) -> String {
        let rest = self.base.split_once("://").map_or(&*self.base, |it| it.1);
        rest.split(['/', '?', '#']).next().unwrap_or_default().to_owned()
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Adapter");
        shown.field("provider", &self.provider).field("name", &self.name);
        shown.field("host", &self.host()).finish_non_exhaustive()
    }
}

/// Whether a request was refused because of what the model is said to have thought: signatures hold for
/// what stood before them, and that may have been shortened since.
fn is_about_thoughts(message: &str) -> bool {
    let message = message.to_lowercase();
    ["thinking", "thought", "signature", "encrypted", "reasoning"]
        .iter()
        .any(|it| message.contains(it))
}

/// The path behind a base URL. The version is added where there is no path at all, as most people
/// name a server of their own, or always; unless it stands there. A query stays behind.
fn url(base: &str, version: &str, path: &str, always: bool) -> String {
    let (base, query) = base.split_once('?').unwrap_or((base, ""));
    let base = base.trim().trim_end_matches('/');
    let (_, rest) = base.split_once("://").unwrap_or(("", base));
    let own = rest.split_once('/').map(|it| it.1);
    let has_version = own.is_some_and(|it| {
        let last = it.rsplit('/').next().unwrap_or_default();
        last.strip_prefix('v').is_some_and(|it| it.starts_with(|c: char| c.is_ascii_digit()))
    });
    let version = match own {
        Some(_) if has_version || !always => "",
        _ => version,
    };
    let join = if path.contains('?') { '&' } else { '?' };
    let query = if query.is_empty() { String::new() } else { format!("{join}{query}") };
    format!("{base}{version}{path}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_taken_as_people_write_it() {
        let chat = |base: &str| url(base, "/v1", "/chat/completions", false);
        assert_eq!(chat("http://localhost:11434"), "http://localhost:11434/v1/chat/completions");
        assert_eq!(chat("http://localhost:11434/"), "http://localhost:11434/v1/chat/completions");
        assert_eq!(chat("https://a.b/api/v1/"), "https://a.b/api/v1/chat/completions");
        assert_eq!(chat("https://a.b/openai"), "https://a.b/openai/chat/completions");
        assert_eq!(chat("https://a.b/v1?x=1"), "https://a.b/v1/chat/completions?x=1");
        let messages = |base: &str| url(base, "/v1", "/messages", true);
        assert_eq!(messages("https://api.anthropic.com"), "https://api.anthropic.com/v1/messages");
        assert_eq!(messages("https://a.b/anthropic"), "https://a.b/anthropic/v1/messages");
        assert_eq!(messages("https://a.b/v1"), "https://a.b/v1/messages");
        let gemini = url("http://x?key=1", "/v1beta", "/models/m:s?alt=sse", false);
        assert_eq!(gemini, "http://x/v1beta/models/m:s?alt=sse&key=1");
    }
}
