//! A model: what it is asked, what it replies, and how it can fail.

use std::{fmt, future::Future, iter::Sum, ops::AddAssign, pin::Pin, time::Duration};

use prowess::Message;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

/// An adapter to a language model.
///
/// An implementer sends what it is asked as it is, and cuts and adds nothing. What the model says on
/// the way is told as it comes; the reply has all of it. A reply that is dropped is cancelled: the
/// connection is closed. A key never stands in an error, and not in what `Debug` shows.
pub trait Model: Send + Sync + fmt::Debug {
    /// What it is called, as its provider knows it.
    fn name(&self) -> &str;

    /// Whose it is, in one word: `openai`, `anthropic`, `gemini`, `scripted`.
    fn provider(&self) -> &str;

    /// Asks it.
    fn reply<'a>(
        &'a self,
        ask: &'a ChatRequest,
        hear: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    ) -> ModelFuture<'a>;

    /// What it would be sent, for whoever wants to see that before it is.
    fn body(&self, ask: &ChatRequest) -> Json {
        json!(ask)
    }
}

/// A reply, once it is waited for.
pub type ModelFuture<'a> =
    Pin<Box<dyn Future<Output = Result<ChatResponse, ModelError>> + Send + 'a>>;

/// What a message has that is the result of a call that came out badly.
pub(crate) const IS_ERROR: &str = "is_error";

/// What a model is asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ChatRequest {
    /// What was said so far, the system prompt first.
    pub messages: Vec<Message>,
    /// The tools that it can call.
    pub tools: Vec<ToolDefinition>,
    /// How many tokens it may reply with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<usize>,
    /// How freely it replies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
}

/// A tool that a model can call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolDefinition {
    /// What it is called by.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of its input.
    pub input_schema: Json,
}

/// What comes of a model while it replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta<'a> {
    /// More of its text.
    Text(&'a str),
    /// More of what it thinks before it speaks.
    Thought(&'a str),
    /// It begins to call this tool.
    Call(&'a str),
}

/// What a model replied.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ChatResponse {
    /// What it said, with the tools that it calls. What its provider wants back with the next request,
    /// such as signed thoughts, stands among the fields that nobody here knows.
    pub message: Message,
    /// Why it ended.
    pub stop: StopReason,
    /// What it took.
    pub spent: TokenUsage,
    /// What whoever asked should know about its end, such as a reason that is not known here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

/// Why a reply ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The model has said what it has to say.
    #[default]
    Done,
    /// It waits for the tools that it calls.
    Calls,
    /// It was cut off: there is more than it may reply with.
    Length,
    /// Its provider held it back.
    Filtered,
}

/// The tokens of a reply, as its provider counts them; estimated where it does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// What was read, also what was remembered of it.
    pub input: u64,
    /// What was said and thought.
    pub output: u64,
    /// How much of the input was remembered from earlier requests.
    pub cached: u64,
    /// Whether some of it is estimated, because a provider did not report it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        // Whatever a provider claims, it is no reason to break down.
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

/// A model gave no reply.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// It was asked too often.
    #[error("`{model}` is rate limited{}", why(message, *wait))]
    RateLimited {
        /// The model.
        model: String,
        /// What its provider says.
        message: String,
        /// How long its provider asks to wait.
        wait: Option<Duration>,
    },
    /// It was told more than its window holds.
    #[error("the prompt is too long for `{model}`: {message}")]
    TooLong {
        /// The model.
        model: String,
        /// What its provider says.
        message: String,
        /// How many tokens its window holds, if that was said.
        window: Option<usize>,
        /// How many it counts in what it was told, if that was said.
        told: Option<usize>,
    },
    /// Its provider will not answer this, whoever asks.
    #[error("`{model}` refused: {message}")]
    Refused {
        /// The model.
        model: String,
        /// What its provider says.
        message: String,
    },
    /// Whoever asks is not known, or may not ask.
    #[error("`{provider}` refused the credentials: {message}")]
    Auth {
        /// Whose model it is, or who was asked in its place.
        provider: String,
        /// What it says.
        message: String,
        /// The variable that usually holds the key.
        variable: &'static str,
    },
    /// Whoever asks has nothing left to pay with.
    #[error("billing error from `{provider}`: {message}")]
    Unpaid {
        /// Whose model it is, or who was asked in its place.
        provider: String,
        /// What it says.
        message: String,
    },
    /// Something else than a model answers at the address.
    #[error("there is no model server at `{host}`: {message}")]
    Elsewhere {
        /// Who was asked.
        host: String,
        /// What answers instead.
        message: String,
    },
    /// The server has no such address.
    #[error("`{url}` does not exist: {message}")]
    NoEndpoint {
        /// What was asked.
        url: String,
        /// What the server says.
        message: String,
    },
    /// There is no such model.
    #[error("there is no model `{model}`: {message}")]
    NotFound {
        /// The model.
        model: String,
        /// What its provider says.
        message: String,
    },
    /// What was sent is not what the provider takes.
    #[error("`{provider}` rejected the request: {message}")]
    Invalid {
        /// Whose model it is.
        provider: String,
        /// What it says.
        message: String,
    },
    /// Its provider has trouble of its own.
    #[error("`{provider}` reports an error: {message}")]
    Server {
        /// Whose model it is.
        provider: String,
        /// What it says.
        message: String,
        /// How long it asks to wait.
        wait: Option<Duration>,
    },
    /// It could not be reached, or the connection broke before there was an answer.
    #[error("`{host}` cannot be reached: {message}")]
    Network {
        /// Who was to be reached.
        host: String,
        /// What went wrong.
        message: String,
    },
    /// The connection broke after the answer had begun.
    #[error("the answer of `{host}` was cut off: {message}")]
    Broken {
        /// Who was answering.
        host: String,
        /// What went wrong.
        message: String,
    },
    /// Nobody listens where it should be.
    #[error("`{host}` cannot be reached: connection refused")]
    Absent {
        /// Who was to be reached.
        host: String,
    },
    /// It took too long.
    #[error("`{model}` sent nothing for {} s", after.as_secs_f64())]
    Timeout {
        /// The model.
        model: String,
        /// How long was waited.
        after: Duration,
    },
    /// What it replied cannot be read.
    #[error("the reply of `{model}` cannot be read: {message}")]
    Malformed {
        /// The model.
        model: String,
        /// What is wrong with it.
        message: String,
    },
}

/// What a provider says of a limit, and how long it asks to wait.
fn why(message: &str, wait: Option<Duration>) -> String {
    let message = if message.is_empty() { String::new() } else { format!(": {message}") };
    let wait = wait.map(|it| format!(" (it asks to wait {} s)", it.as_secs_f64().ceil()));
    message + &wait.unwrap_or_default()
}

/// The base URL of the address of a protocol.
fn base_url(url: &str) -> &str {
    let ends = ["/chat/completions", "/responses", "/messages"];
    let base = ends.iter().find_map(|it| url.strip_suffix(it));
    base.or_else(|| url.split_once("/models/").map(|it| it.0)).unwrap_or(url)
}

/// What to do where too much is told.
pub(crate) const WINDOW: &str = "set the model's context window with `--window` or `window.tokens`";

impl ModelError {
    /// Whether the same request may come out well a little later.
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

    /// How long to wait before the next try, if the provider said so.
    pub fn wait(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { wait, .. } | Self::Server { wait, .. } => *wait,
            _ => None,
        }
    }

    /// What kind of error it is, in one word, as for `error.type` of a span.
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

    /// What to do about it.
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
