//! The model interface: requests, replies and errors.

use std::{fmt, future::Future, iter::Sum, ops::AddAssign, pin::Pin, time::Duration};

use prowess::Message;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

/// An adapter to a language model.
///
/// An implementer sends the request unchanged, without cutting or adding anything. It reports
/// deltas while the reply streams, and the returned reply contains all of them. Dropping the future
/// cancels the reply and closes the connection. An API key never appears in an error, nor in
/// `Debug` output.
pub trait Model: Send + Sync + fmt::Debug {
    /// The model name, as its provider knows it.
    fn name(&self) -> &str;

    /// The provider, in one word: `openai`, `anthropic`, `gemini`, `scripted`.
    fn provider(&self) -> &str;

    /// Sends a request.
    fn reply<'a>(
        &'a self,
        ask: &'a ChatRequest,
        hear: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    ) -> ModelFuture<'a>;

    /// Returns the body that would be sent, for inspection beforehand.
    fn body(&self, ask: &ChatRequest) -> Json {
        json!(ask)
    }
}

/// The future of a reply.
pub type ModelFuture<'a> =
    Pin<Box<dyn Future<Output = Result<ChatResponse, ModelError>> + Send + 'a>>;

/// The field that marks a message as the result of a failed call.
pub(crate) const IS_ERROR: &str = "is_error";

/// A request to a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ChatRequest {
    /// The conversation so far, the system prompt first.
    pub messages: Vec<Message>,
    /// The tools that it can call.
    pub tools: Vec<ToolDefinition>,
    /// The maximum number of tokens in the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<usize>,
    /// The sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
}

/// A tool that a model can call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// The name to call it by.
    pub name: String,
    /// The description of its purpose.
    pub description: String,
    /// The JSON schema of its input.
    pub input_schema: Json,
}

impl ToolDefinition {
    /// Creates a tool with the JSON schema of its input.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Json,
    ) -> Self {
        Self { name: name.into(), description: description.into(), input_schema }
    }
}

/// A piece of a streamed reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta<'a> {
    /// More text.
    Text(&'a str),
    /// More reasoning, before the text.
    Thought(&'a str),
    /// The start of a call of this tool.
    Call(&'a str),
}

/// A reply of a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ChatResponse {
    /// The message, with the tool calls. Data that the provider expects back with the next request,
    /// such as signed reasoning, is kept in fields that are not interpreted here.
    pub message: Message,
    /// The reason it ended.
    pub stop: StopReason,
    /// The token usage.
    pub spent: TokenUsage,
    /// A remark for the caller about the end of the reply, such as a stop reason that is not known
    /// here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

/// The reason a reply ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The model finished its reply.
    #[default]
    Done,
    /// The model waits for the results of its tool calls.
    Calls,
    /// The reply was cut off at the token limit.
    Length,
    /// The provider's content filter stopped it.
    Filtered,
}

/// The token usage of a reply, as its provider counts it; estimated if the provider does not report
/// it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// The input tokens, including cached ones.
    pub input: u64,
    /// The output tokens, including reasoning.
    pub output: u64,
    /// The input tokens that were read from the provider's cache.
    pub cached: u64,
    /// Whether some of it is estimated, because a provider did not report it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        // Absurd numbers from a provider must not cause an overflow.
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        if other.estimated {
            self.estimated = true;
        }
    }
}

impl fmt::Display for TokenUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { input, output, .. } = self;
        match self.estimated {
            true => write!(f, "tokens unknown, about {input} read and {output} written"),
            false => write!(f, "{input} tokens read, {output} written"),
        }
    }
}

impl Sum for TokenUsage {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, it| {
            sum += it;
            sum
        })
    }
}

/// A model failed to reply.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The rate limit is exceeded.
    #[error("`{model}` is rate limited{}", why(message, *wait))]
    RateLimited {
        /// The model.
        model: String,
        /// The message of its provider.
        message: String,
        /// The delay that its provider asks for.
        wait: Option<Duration>,
    },
    /// The prompt exceeds the context window.
    #[error("the prompt is too long for `{model}`: {message}")]
    TooLong {
        /// The model.
        model: String,
        /// The message of its provider.
        message: String,
        /// The size of the context window in tokens, if reported.
        window: Option<usize>,
        /// The size of the prompt in tokens, if reported.
        prompt: Option<usize>,
    },
    /// The provider refuses to answer this request.
    #[error("`{model}` refused: {message}")]
    Refused {
        /// The model.
        model: String,
        /// The message of its provider.
        message: String,
    },
    /// The credentials are missing, unknown or insufficient.
    #[error("`{provider}` refused the credentials: {message}")]
    Auth {
        /// The provider of the model, or the host asked in its place.
        provider: String,
        /// Its message.
        message: String,
        /// The environment variable that usually contains the key.
        variable: &'static str,
    },
    /// The account has no credit left.
    #[error("billing error from `{provider}`: {message}")]
    Unpaid {
        /// The provider of the model, or the host asked in its place.
        provider: String,
        /// Its message.
        message: String,
    },
    /// Something else than a model answers at the address.
    #[error("there is no model server at `{host}`: {message}")]
    Elsewhere {
        /// The host that was asked.
        host: String,
        /// A description of the answer.
        message: String,
    },
    /// The server does not know the path.
    #[error("`{url}` does not exist: {message}")]
    NoEndpoint {
        /// The URL of the request.
        url: String,
        /// The message of the server.
        message: String,
    },
    /// There is no such model.
    #[error("there is no model `{model}`: {message}")]
    NotFound {
        /// The model.
        model: String,
        /// The message of its provider.
        message: String,
    },
    /// The provider rejects the request as invalid.
    #[error("`{provider}` rejected the request: {message}")]
    Invalid {
        /// The provider of the model.
        provider: String,
        /// Its message.
        message: String,
    },
    /// The provider has an internal error.
    #[error("`{provider}` reports an error: {message}")]
    Server {
        /// The provider of the model.
        provider: String,
        /// Its message.
        message: String,
        /// The delay it asks for.
        wait: Option<Duration>,
    },
    /// The host could not be reached, or the connection broke before an answer.
    #[error("`{host}` cannot be reached: {message}")]
    Network {
        /// The host to be reached.
        host: String,
        /// The network error.
        message: String,
    },
    /// The connection broke after the answer had begun.
    #[error("the answer of `{host}` was cut off: {message}")]
    Broken {
        /// The host that was answering.
        host: String,
        /// The network error.
        message: String,
    },
    /// The connection was refused: nothing listens at the address.
    #[error("`{host}` cannot be reached: connection refused")]
    Absent {
        /// The host to be reached.
        host: String,
    },
    /// It took too long.
    #[error("`{model}` sent nothing for {} s", after.as_secs_f64())]
    Timeout {
        /// The model.
        model: String,
        /// The timeout.
        after: Duration,
    },
    /// The reply cannot be parsed.
    #[error("the reply of `{model}` cannot be read: {message}")]
    Malformed {
        /// The model.
        model: String,
        /// The fault in the reply.
        message: String,
    },
}

/// Formats a provider's message about a limit, with the delay it asks for.
fn why(message: &str, wait: Option<Duration>) -> String {
    let message = if message.is_empty() { String::new() } else { format!(": {message}") };
    let wait = wait.map(|it| format!(" (it asks to wait {} s)", it.as_secs_f64().ceil()));
    message + &wait.unwrap_or_default()
}

/// Returns the base URL of an endpoint's URL.
fn base_url(url: &str) -> &str {
    let ends = ["/chat/completions", "/responses", "/messages"];
    let base = ends.iter().find_map(|it| url.strip_suffix(it));
    base.or_else(|| url.split_once("/models/").map(|it| it.0)).unwrap_or(url)
}

/// The hint for a prompt that is too long.
pub(crate) const WINDOW: &str = "set the model's context window with `--window` or `window.tokens`";

impl ModelError {
    /// Returns whether the same request may succeed a little later.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. }
                | Self::Server { .. }
                | Self::Network { .. }
                | Self::Broken { .. }
                | Self::Absent { .. }
                | Self::Timeout { .. }
                | Self::Malformed { .. }
        )
    }

    /// Returns the delay before the next attempt, if the provider gave one.
    pub fn wait(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { wait, .. } | Self::Server { wait, .. } => *wait,
            _ => None,
        }
    }

    /// Returns the kind of error in one word, as for `error.type` of a span.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::RateLimited { .. } => "rate_limited",
            Self::TooLong { .. } => "context_length_exceeded",
            Self::Refused { .. } => "refused",
            Self::Auth { .. } => "authentication_failed",
            Self::Unpaid { .. } => "payment_required",
            Self::Elsewhere { .. } => "wrong_address",
            Self::NoEndpoint { .. } => "endpoint_not_found",
            Self::NotFound { .. } => "model_not_found",
            Self::Invalid { .. } => "invalid_request",
            Self::Server { .. } => "server_error",
            Self::Network { .. } => "network_error",
            Self::Broken { .. } => "connection_broken",
            Self::Absent { .. } => "connection_refused",
            Self::Timeout { .. } => "timeout",
            Self::Malformed { .. } => "malformed_reply",
        }
    }

    /// Returns a hint: the action that may resolve the error.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::RateLimited { .. } => "wait, or use another model with `--model`".to_owned(),
            Self::TooLong { .. } => WINDOW.to_owned(),
            Self::Auth { variable, .. } => {
                format!("check `{variable}`, or use `--key-file FILE`")
            }
            Self::Unpaid { .. } => {
                "check the credits of that account, or use another model with `--model`".to_owned()
            }
            Self::Elsewhere { .. } => {
                "set the address with `--base-url`, such as `https://host/v1`".to_owned()
            }
            Self::NotFound { .. } => {
                "set the model with `--model`, and the address with `--base-url`".to_owned()
            }
            Self::NoEndpoint { url, .. } => {
                let base = base_url(url);
                format!(
                    "the server may use another protocol (`--provider`), or another base URL \
                     than `{base}`, such as `https://host/v1`"
                )
            }
            Self::Invalid { .. } => "`--dry-run --json` shows what is sent; `--provider` selects \
                                     the protocol"
                .to_owned(),
            Self::Timeout { .. } => "`--model-timeout` waits longer".to_owned(),
            Self::Network { host, .. } => {
                format!("check that `{host}` is the right address, and running")
            }
            Self::Absent { .. } => {
                "start the server, or set its address with `--base-url`".to_owned()
            }
            _ => return None,
        })
    }
}
