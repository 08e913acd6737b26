//! The HTTP adapter that all providers share.

use std::{
    error::Error,
    fmt,
    io::ErrorKind,
    sync::{Mutex, MutexGuard},
    time::{Duration, Instant},
};

use prowess::{ContextWindow, Tokenizer, lock};
use prowess_http::{ClientRequest, HttpClient, HttpError, StreamedResponse};
use serde_json::{Value as Json, json};

use super::{
    draft::Draft,
    history::without_invalid_names,
    provider::ModelProvider,
    sse::{Events, TooLong},
    trouble::{AskedServer, Trouble, contains_any, numbers, safe_message, wait},
};
use crate::{
    middleware::request::is_empty,
    model::{
        ChatRequest, ChatResponse, Delta, Model, ModelError, ModelFuture, StopReason, TokenUsage,
    },
};

/// A model that is reached over HTTP.
pub(super) struct Adapter {
    pub(super) provider: ModelProvider,
    pub(super) name: String,
    pub(super) base: String,
    pub(super) key: String,
    pub(super) stream: bool,
    pub(super) wire: HttpClient,
    pub(super) protocol: Box<dyn Protocol>,
    /// The quirks its server has shown so far.
    pub(super) quirks: Mutex<ProviderQuirks>,
}

/// The wire protocol of a provider. An implementer translates, and makes no decisions.
pub(super) trait Protocol: Send + Sync {
    /// Returns the path after the base URL, as the version, which may already be part of the base
    /// URL, and the rest of the path.
    fn path(&self, model: &str, stream: bool) -> (&'static str, String);

    /// The authentication headers, and any others that are required.
    fn headers(&self, key: &str) -> Vec<(&'static str, String)>;

    /// Returns the request body. `by` identifies the model among those whose replies are in the
    /// messages.
    fn body(&self, model: &str, by: &str, ask: &ChatRequest, quirks: ProviderQuirks) -> Json;

    /// Reads one event of a stream, or the whole answer if there is no stream.
    fn take(&self, event: &Json, draft: &mut Draft<'_>) -> Result<Flow, Trouble>;

    /// The default limit of output tokens, for a protocol that requires one.
    fn usual_output(&self) -> Option<usize> {
        None
    }

    /// Returns the quirks to retry with after a request was rejected with this message; unchanged
    /// if there is no alternative.
    fn adapt(&self, quirks: ProviderQuirks, _message: &str) -> ProviderQuirks {
        quirks
    }
}

/// The deviations of a server from the usual protocol, as learned from its rejections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ProviderQuirks {
    /// It rejects streaming.
    pub(super) no_stream: bool,
    /// It rejects the option that reports usage in a stream.
    pub(super) no_usage: bool,
    /// Its output limit has the other field name.
    pub(super) other_limit: bool,
    /// It rejects the request for reasoning that can be sent back.
    pub(super) no_thoughts: bool,
    /// It requires the reasoning field even if there was no reasoning.
    pub(super) empty_thoughts: bool,
    /// It does not recognize data sent back as its own. This applies to one request only.
    pub(super) forgotten: bool,
    /// The maximum number of output tokens it accepts.
    pub(super) most_output: Option<usize>,
}

/// Whether more of a reply is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Flow {
    More,
    /// The reply is complete; the token usage may follow.
    Nearly,
    Over,
}

/// The maximum size of a reply in bytes, including its framing.
const MAX_REPLY: u64 = 64 * 1024 * 1024;
/// The maximum size of an error answer in bytes.
const MAX_TROUBLE: usize = 64 * 1024;
/// The timeout for reading all of an error answer.
const TROUBLE: Duration = Duration::from_secs(10);
/// The timeout for what may follow a complete reply.
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
        ask: &'a ChatRequest,
        hear: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    ) -> ModelFuture<'a> {
        Box::pin(async move {
            let mut quirks = *self.quirks();
            loop {
                let reply = self.ask(ask, quirks, hear).await;
                let Err(ModelError::Invalid { message, .. }) = &reply else { return reply };
                let wanted = self.max_output(ask, quirks);
                let most_output = wanted.and_then(|it| less_output(message, it));
                let mut better = match most_output {
                    Some(_) => ProviderQuirks { most_output, ..quirks },
                    None => self.protocol.adapt(quirks, message),
                };
                better.forgotten |= better == quirks && is_about_thoughts(message);
                if better == quirks {
                    return reply;
                }
                *self.quirks() = ProviderQuirks { forgotten: false, ..better };
                quirks = better;
            }
        })
    }

    fn body(&self, ask: &ChatRequest) -> Json {
        self.request_body(ask, *self.quirks())
    }
}

impl Adapter {
    fn request_body(&self, ask: &ChatRequest, mut quirks: ProviderQuirks) -> Json {
        quirks.no_stream |= !self.stream;
        let by = if quirks.forgotten { String::new() } else { self.by() };
        let mut ask = without_invalid_names(ask);
        let max_output = self.max_output(&ask, quirks);
        if ask.max_output != max_output {
            ask.to_mut().max_output = max_output;
        }
        self.protocol.body(&self.name, &by, &ask, quirks)
    }

    /// Returns the limit of output tokens, if one is sent at all.
    fn max_output(&self, ask: &ChatRequest, quirks: ProviderQuirks) -> Option<usize> {
        let wanted = ask.max_output.or(self.protocol.usual_output())?;
        Some(quirks.most_output.map_or(wanted, |most| most.min(wanted)))
    }

    pub(super) fn post(&self, body: Vec<u8>) -> ClientRequest {
        let (version, path) = self.protocol.path(&self.name, self.stream);
        let mut headers = vec![("content-type", "application/json".to_owned())];
        headers.extend(self.protocol.headers(&self.key));
        let accept =
            if self.stream { "text/event-stream, application/json" } else { "application/json" };
        headers.push(("accept", accept.to_owned()));
        ClientRequest {
            url: url(&self.base, version, &path, self.provider == ModelProvider::Anthropic),
            headers: headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            body,
            max_body: MAX_REPLY,
        }
    }

    async fn ask(
        &self,
        ask: &ChatRequest,
        quirks: ProviderQuirks,
        hear: &(dyn Fn(Delta<'_>) + Send + Sync),
    ) -> Result<ChatResponse, ModelError> {
        let post = self.post(self.request_body(ask, quirks).to_string().into_bytes());
        let mut incoming = self.wire.post(post).await.map_err(|it| self.connection_error(it))?;
        if !(200..300).contains(&incoming.status) {
            return Err(self.refusal(&mut incoming).await);
        }
        let mut draft = Draft::new(hear);
        let kind = incoming.header("content-type").unwrap_or_default();
        if kind.contains("html") {
            let message = "got an HTML page instead of JSON".to_owned();
            return Err(ModelError::Elsewhere { host: self.host(), message });
        }
        let has_events = kind.contains("event-stream") || self.stream && !kind.contains("json");
        if has_events {
            self.hear_events(&mut incoming, &mut draft).await?;
        } else {
            let whole = incoming.whole().await.map_err(|it| self.connection_error(it))?;
            let flow = self.take(&String::from_utf8_lossy(&whole), &mut draft)?;
            if flow == Flow::More {
                return Err(self.malformed_error("it is incomplete"));
            }
        }
        let mut reply = self.finish(draft)?;
        reply.spent = self.count_usage(ask, &reply);
        Ok(reply)
    }

    /// Returns the token usage of a reply; estimated if its provider reports nothing, or 0 for
    /// something.
    fn count_usage(&self, ask: &ChatRequest, reply: &ChatResponse) -> TokenUsage {
        let mut spent = reply.spent;
        let window = ContextWindow {
            vocabulary: Tokenizer::for_model(&self.name),
            ..ContextWindow::default()
        };
        if spent.input == 0 {
            let tools = ask.tools.iter().map(|it| window.vocabulary.count(&json!(it).to_string()));
            let messages = ask.messages.iter().map(|it| window.count(it));
            spent.input = messages.chain(tools).sum::<usize>() as u64;
            spent.estimated = true;
        }
        if spent.output == 0 && !is_empty(&reply.message) {
            spent.output = window.count(&reply.message) as u64;
            spent.estimated = true;
        }
        spent
    }

    async fn hear_events(
        &self,
        incoming: &mut StreamedResponse,
        draft: &mut Draft<'_>,
    ) -> Result<(), ModelError> {
        let mut events = Events::default();
        let mut flow = Flow::More;
        let mut end = None;
        loop {
            let chunk = match flow {
                Flow::More => incoming.chunk().await.map_err(|it| self.connection_error(it))?,
                // Losing what is missing now is better than losing the reply.
                Flow::Nearly => {
                    let end = *end.get_or_insert_with(|| Instant::now() + LINGER);
                    incoming.chunk_within(end - Instant::now()).await.unwrap_or_default()
                }
                Flow::Over => return Ok(()),
            };
            let Some(chunk) = chunk else { break };
            let taken = events.take(&chunk);
            for event in taken.map_err(|TooLong| self.malformed_error("an event is too long"))? {
                flow = flow.max(self.take(&event, draft)?);
            }
        }
        if let Some(event) = events.finish() {
            flow = flow.max(self.take(&event, draft)?);
        }
        match flow {
            Flow::More => {
                let message = match draft.is_empty() {
                    true => "the stream ended before it began",
                    false => "the stream ended in the middle of the reply",
                };
                Err(ModelError::Broken { host: self.host(), message: message.to_owned() })
            }
            Flow::Nearly | Flow::Over => Ok(()),
        }
    }

    fn take(&self, event: &str, draft: &mut Draft<'_>) -> Result<Flow, ModelError> {
        match event.trim() {
            "" => return Ok(Flow::More),
            // Only chat completions end like this, and some servers that speak other protocols.
            "[DONE]" if draft.stop.is_some() || !draft.is_empty() => return Ok(Flow::Over),
            "[DONE]" => return Ok(Flow::More),
            _ => {}
        }
        let json = serde_json::from_str(event);
        let json: Json =
            json.map_err(|it| self.malformed_error(&format!("it is not JSON: {it}")))?;
        self.protocol.take(&json, draft).map_err(|it| self.model_error(it))
    }

    fn finish(&self, draft: Draft<'_>) -> Result<ChatResponse, ModelError> {
        if draft.stop == Some(StopReason::Filtered) && draft.is_empty() {
            let message = match &*draft.why {
                "" => "the reply was withheld",
                why => why,
            };
            let message = safe_message(message, &self.key);
            return Err(ModelError::Refused { model: self.name.clone(), message });
        }
        if draft.stop == Some(StopReason::Done) && !draft.why.is_empty() && draft.is_empty() {
            return Err(self.malformed_error(&draft.why));
        }
        let remark = Some(safe_message(&draft.why, &self.key)).filter(|it| !it.is_empty());
        Ok(ChatResponse { remark, ..draft.reply(&self.by()) })
    }

    /// Returns the tag of data in a message that only this model understands.
    fn by(&self) -> String {
        format!("{}/{}", self.provider.as_str(), self.name)
    }

    async fn refusal(&self, incoming: &mut StreamedResponse) -> ModelError {
        let status = incoming.status;
        let wait = wait(status, incoming.headers());
        let there = incoming.header("location").filter(|_| (300..400).contains(&status));
        if let Some(there) = there {
            let message = safe_message(&format!("it leads to `{there}`"), &self.key);
            return ModelError::Elsewhere { host: self.host(), message };
        }
        let mut body = Vec::new();
        let end = Instant::now() + TROUBLE;
        // If the connection breaks, what was read until then is the message.
        while let Ok(Some(chunk)) = incoming.chunk_within(end - Instant::now()).await {
            body.extend(chunk);
            if body.len() > MAX_TROUBLE {
                break;
            }
        }
        self.model_error(Trouble::read(status, &body, wait))
    }

    fn model_error(&self, trouble: Trouble) -> ModelError {
        let host = self.host();
        let is_usual = self.base == self.provider.row().base_url;
        trouble.error(&AskedServer {
            whom: if is_usual { self.provider.as_str() } else { &host },
            host: &host,
            url: &self.address(),
            model: &self.name,
            key: &self.key,
            variable: self.provider.row().key_variables[0],
        })
    }

    /// Returns the URL that is asked, without a password and without a query, which may contain a
    /// key.
    fn address(&self) -> String {
        let url = self.post(Vec::new()).url;
        let url = url.split('?').next().unwrap_or_default();
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let authority = authority.rsplit('@').next().unwrap_or_default();
        safe_message(&format!("{scheme}://{authority}/{path}"), &self.key)
    }

    fn malformed_error(&self, message: &str) -> ModelError {
        let message = safe_message(message, &self.key);
        ModelError::Malformed { model: self.name.clone(), message }
    }

    fn connection_error(&self, error: HttpError) -> ModelError {
        match error {
            HttpError::Timeout { after, .. } => {
                ModelError::Timeout { model: self.name.clone(), after }
            }
            HttpError::TooLong { .. } => self.malformed_error("it is too long"),
            HttpError::Connect { source, .. } if source.kind() == ErrorKind::ConnectionRefused => {
                ModelError::Absent { host: self.host() }
            }
            error => {
                let mut deepest: Option<&dyn Error> = error.source();
                while let Some(source) = deepest.and_then(Error::source) {
                    deepest = Some(source);
                }
                // The number of an OS error does not help the user.
                let cause = deepest.map(|it| it.to_string());
                let cause = cause.and_then(|it| it.split(" (os error").next().map(str::to_owned));
                let (host, error) = (self.host(), error);
                if cause.as_deref().is_some_and(|it| it.contains("before message completed")) {
                    let message = "the server closed the connection before it answered".to_owned();
                    return ModelError::Broken { host, message };
                }
                if let HttpError::Broken { .. } = error {
                    let message = cause.unwrap_or_else(|| error.to_string());
                    return ModelError::Broken { host, message: safe_message(&message, &self.key) };
                }
                let message = cause.map_or(error.to_string(), |it| format!("{error}: {it}"));
                ModelError::Network { host, message: safe_message(&message, &self.key) }
            }
        }
    }

    fn quirks(&self) -> MutexGuard<'_, ProviderQuirks> {
        lock(&self.quirks)
    }

    fn host(&self) -> String {
        let rest = self.base.split_once("://").map_or(&*self.base, |it| it.1);
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        // User info before the host may contain a password.
        authority.rsplit('@').next().unwrap_or_default().to_owned()
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Adapter");
        shown.field("provider", &self.provider).field("name", &self.name);
        shown.field("host", &self.host()).finish_non_exhaustive()
    }
}

/// Returns the output limit to retry with, if a request was rejected because `wanted` is too high.
fn less_output(message: &str, wanted: usize) -> Option<usize> {
    const SETTING: &[&str] =
        &["max_tokens", "max_completion_tokens", "max_output_tokens", "maxoutputtokens"];
    const EXCESS: &[&str] = &[">", "at most", "maximum", "too large", "less than"];
    let message = message.to_lowercase();
    let is_it = contains_any(&message, SETTING) && contains_any(&message, EXCESS);
    numbers(&message).into_iter().filter(|it| is_it && (1..wanted).contains(it)).max()
}

/// Whether a request was rejected because of the reasoning sent back: signatures cover everything
/// before them, and that may have been shortened since.
fn is_about_thoughts(message: &str) -> bool {
    const WORDS: &[&str] = &["thinking", "thought", "signature", "encrypted", "reasoning"];
    contains_any(&message.to_lowercase(), WORDS)
}

/// The paths that the protocols append to a base URL.
const ENDPOINTS: [&str; 3] = ["/chat/completions", "/responses", "/messages"];

/// Returns the URL of a path behind a base URL. The version is added if the base has no path, as is
/// usual for self-hosted servers, or if `always` is set; never twice. A query is kept at the end.
fn url(base: &str, version: &str, path: &str, always: bool) -> String {
    let (base, query) = base.split_once('?').unwrap_or((base, ""));
    let base = base.trim().trim_end_matches('/');
    // Some users give the whole endpoint URL, as in their own program.
    let whole = ENDPOINTS.iter().find_map(|it| base.strip_suffix(it));
    let base = whole.unwrap_or(base);
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
    use crate::models::{
        anthropic::Anthropic, gemini::Gemini, openai::OpenAi, responses::Responses,
    };

    /// Sample events of each provider, in the order of a stream.
    const SAMPLES: &[(&dyn Protocol, &[&str])] = &[
        (
            &OpenAi { is_newer: true },
            &[
                r#"{"choices": [{"delta": {"content": [{"type": "thinking", "thinking": [{"text": "a"}]}, {"text": "b"}], "reasoning": "c", "reasoning_details": [{"type": "x", "index": 0, "text": "d"}, {"type": "x", "index": 0, "text": "e"}]}}]}"#,
                r#"{"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "i", "extra_content": {}, "function": {"name": "n", "arguments": "{"}}, {"function": {"arguments": "}"}}]}}]}"#,
                r#"{"choices": [{"delta": {"refusal": "no"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}}}"#,
                r#"{"error": {"message": "m", "code": 400, "details": [{"reason": "r", "retryDelay": "1s"}]}}"#,
            ],
        ),
        (
            &Responses,
            &[
                r#"{"type": "response.output_item.added", "output_index": 0, "item": {"type": "function_call", "call_id": "c", "name": "n", "arguments": ""}}"#,
                r#"{"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"}"#,
                r#"{"type": "response.output_item.done", "output_index": 0, "item": {"type": "function_call", "id": "i", "arguments": "{}"}}"#,
                r#"{"type": "response.output_text.delta", "output_index": 1, "delta": "ä"}"#,
                r#"{"type": "response.output_item.done", "output_index": 1, "item": {"type": "message", "phase": "p", "content": [{"text": "äb"}, {"refusal": "no"}]}}"#,
                r#"{"type": "response.output_item.done", "output_index": 2, "item": {"type": "reasoning", "status": "s"}}"#,
                r#"{"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": "r"}, "output": [{"type": "x"}], "usage": {"input_tokens": 1}}}"#,
            ],
        ),
        (
            &Anthropic,
            &[
                r#"{"type": "message_start", "message": {"usage": {"input_tokens": 1, "cache_read_input_tokens": 2}}}"#,
                r#"{"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}"#,
                r#"{"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "a"}}"#,
                r#"{"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "b"}}"#,
                r#"{"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "i", "name": "n", "input": {}}}"#,
                r#"{"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{}"}}"#,
                r#"{"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "t"}}"#,
                r#"{"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": {"explanation": "e"}}, "usage": {"output_tokens": 1}}"#,
            ],
        ),
        (
            &Gemini,
            &[
                r#"{"candidates": [{"content": {"parts": [{"text": "a", "thought": true}, {"text": "b", "thoughtSignature": "s"}, {"functionCall": {"id": "i", "name": "n", "args": {}}}, {"other": 1}]}}]}"#,
                r#"{"candidates": [{"finishReason": "STOP", "finishMessage": "m"}], "usageMetadata": {"promptTokenCount": 1}}"#,
                r#"{"promptFeedback": {"blockReason": "r"}}"#,
            ],
        ),
    ];

    /// Collects the paths of all values in a JSON value.
    fn paths(json: &Json, path: &str, paths: &mut Vec<String>) {
        paths.push(path.to_owned());
        let names: Vec<String> = match json {
            Json::Object(fields) => fields.keys().cloned().collect(),
            Json::Array(items) => (0..items.len()).map(|it| it.to_string()).collect(),
            _ => Vec::new(),
        };
        for name in names {
            let path = format!("{path}/{name}");
            self::paths(&json.pointer(&format!("/{name}")).cloned().unwrap(), &path, paths);
        }
    }

    #[test]
    fn no_provider_can_say_anything_that_breaks_us() {
        let odd = [
            Json::Null,
            true.into(),
            u64::MAX.into(),
            (-1).into(),
            "ß".into(),
            json!([]),
            json!({}),
            json!([[1]]),
        ];
        let mut replies = 0;
        for (protocol, events) in SAMPLES {
            let events: Vec<Json> =
                events.iter().map(|it| serde_json::from_str(it).unwrap()).collect();
            for (at, event) in events.iter().enumerate() {
                let mut all = Vec::new();
                paths(event, "", &mut all);
                for (path, odd) in all.iter().flat_map(|path| odd.iter().map(move |it| (path, it)))
                {
                    let mut events = events.clone();
                    *events[at].pointer_mut(path).unwrap() = odd.clone();
                    let mut draft = Draft::new(&|_| {});
                    for event in events.iter().chain(&events) {
                        let (whom, host, url) = ("p", "h", "u");
                        let (model, key, variable) = ("m", "k", "K");
                        let asked = AskedServer { whom, host, url, model, key, variable };
                        let _ = protocol.take(event, &mut draft).map_err(|it| it.error(&asked));
                    }
                    let reply = draft.reply("by");
                    replies += 1;
                    // The resulting message must be accepted by every protocol.
                    let ask =
                        ChatRequest { messages: vec![reply.message], ..ChatRequest::default() };
                    for (protocol, _) in SAMPLES {
                        protocol.body("m", "by", &ask, ProviderQuirks::default());
                    }
                }
            }
        }
        assert!(replies > 1000, "{replies}");
    }

    #[test]
    fn a_base_url_is_taken_as_people_write_it() {
        let chat = |base: &str| url(base, "/v1", "/chat/completions", false);
        assert_eq!(chat("http://localhost:11434"), "http://localhost:11434/v1/chat/completions");
        assert_eq!(chat("http://localhost:11434/"), "http://localhost:11434/v1/chat/completions");
        assert_eq!(chat("https://a.b/api/v1/"), "https://a.b/api/v1/chat/completions");
        assert_eq!(chat("https://a.b/openai"), "https://a.b/openai/chat/completions");
        assert_eq!(chat("https://a.b/v1?x=1"), "https://a.b/v1/chat/completions?x=1");
        assert_eq!(chat("https://a.b/v1/chat/completions"), "https://a.b/v1/chat/completions");
        assert_eq!(chat("https://a.b/v1/responses/"), "https://a.b/v1/chat/completions");
        let messages = |base: &str| url(base, "/v1", "/messages", true);
        assert_eq!(messages("https://api.anthropic.com"), "https://api.anthropic.com/v1/messages");
        assert_eq!(messages("https://a.b/anthropic"), "https://a.b/anthropic/v1/messages");
        assert_eq!(messages("https://a.b/v1"), "https://a.b/v1/messages");
        let gemini = url("http://x?key=1", "/v1beta", "/models/m:s?alt=sse", false);
        assert_eq!(gemini, "http://x/v1beta/models/m:s?alt=sse&key=1");
    }
}
