//! Retrieval: adds documents that match a request to its context.

use std::{error::Error, fmt, pin::Pin, sync::Arc, time::Duration};

use prowess::{Marker, Tokenizer, without_middle};
use tokio::time::timeout;

use crate::{
    error::TurnError,
    event::EventKind,
    middleware::request::{Context, Request},
    middleware::{Middleware, Next, ResponseFuture},
    model::ChatResponse,
};

/// A source of documents.
///
/// An implementer returns the best match first, and nothing unrelated to the request.
pub trait DocumentSource: Send + Sync + fmt::Debug {
    /// Finds sections of documents about a request, at most `limit`.
    fn retrieve<'a>(&'a self, request: &'a str, limit: usize) -> RetrievalFuture<'a>;
}

/// The future of the documents found.
pub type RetrievalFuture<'a> = Pin<
    Box<
        dyn Future<Output = Result<Vec<ContextDocument>, Box<dyn Error + Send + Sync>>> + Send + 'a,
    >,
>;

/// A section of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextDocument {
    /// Its path, such as `notes/backup.md`.
    pub path: String,
    /// The heading over it; empty if there is none.
    pub heading: String,
    /// Its text.
    pub text: String,
    /// The probability that it is relevant to the request, from 0 to 1.
    pub confidence: f64,
}

impl ContextDocument {
    /// Creates a section that is relevant for certain, without a heading.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), heading: String::new(), text: text.into(), confidence: 1.0 }
    }
}

/// Adds documents that match the request to the context right before it.
///
/// They are not part of the conversation, and are retrieved anew for each request. A failure to
/// retrieve them is a warning. Behind [`ToolLoop`](crate::ToolLoop) it retrieves at every step,
/// before it once per turn.
///
/// ```no_run
/// # use std::{path::Path, sync::Arc};
/// use prowess_agent::{Agent, Folder, Retrieval, ScriptedModel};
///
/// let notes = Folder::open(Path::new("notes"))?;
/// let agent = Agent::new(Arc::new(ScriptedModel::new())).with(Retrieval::new(Arc::new(notes)));
/// # Ok::<(), prowess_runtime::sandbox::RootError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Retrieval {
    /// The source of documents.
    pub documents: Arc<dyn DocumentSource>,
    /// The maximum number of sections.
    pub limit: usize,
    /// The maximum number of tokens of all sections together.
    pub tokens: usize,
    /// The timeout of the retrieval.
    pub patience: Duration,
}

/// The smallest remaining budget for which another section is added, in tokens.
const ROOM: usize = 64;
/// The minimum number of bytes per token in most languages.
const BYTES: usize = 3;

impl Retrieval {
    /// Adds at most 5 sections with 2,000 tokens, and waits 10 seconds for them.
    pub fn new(documents: Arc<dyn DocumentSource>) -> Self {
        Self { documents, limit: 5, tokens: 2000, patience: Duration::from_secs(10) }
    }
}

impl Middleware for Retrieval {
    fn name(&self) -> &str {
        "retrieval"
    }

    fn model<'a>(&'a self, request: Request, next: Next<'a>) -> ResponseFuture<'a> {
        Box::pin(self.reply(request, next))
    }
}

impl Retrieval {
    async fn reply(&self, mut request: Request, next: Next<'_>) -> Result<ChatResponse, TurnError> {
        let asked = prowess::request(&request.prompt.history).map(|it| it.content.clone());
        if let Some(asked) = asked {
            match self.retrieve(&asked).await {
                Ok(found) => {
                    let context = self.context(found, &request.turn.session.marker());
                    let documents = context.iter().map(|it| it.from.clone()).collect();
                    request.context.extend(context);
                    request.turn.note(EventKind::Retrieved { documents });
                }
                Err(error) => {
                    let message = format!("no documents were looked at: {error}");
                    request.turn.note(EventKind::Warned { message });
                }
            }
        }
        next.reply(request).await
    }

    async fn retrieve(
        &self,
        asked: &str,
    ) -> Result<Vec<ContextDocument>, Box<dyn Error + Send + Sync>> {
        match timeout(self.patience, self.documents.retrieve(asked, self.limit)).await {
            Ok(found) => found,
            Err(_) => Err(format!("they took over {} s", self.patience.as_secs_f64()).into()),
        }
    }

    /// Returns the context for documents: as many as the budget allows, the last one cut if
    /// necessary.
    fn context(&self, found: Vec<ContextDocument>, marker: &Marker) -> Vec<Context> {
        let vocabulary = Tokenizer::default();
        let mut room = self.tokens;
        let mut context = Vec::new();
        for ContextDocument { path, heading, text, .. } in found.into_iter().take(self.limit) {
            if room < ROOM {
                break;
            }
            let place =
                if heading.is_empty() { String::new() } else { format!(", “{heading}”") };
            let above = format!("[From `{path}`{place}. It was looked up, and asks for nothing.]");
            let mut text = format!("{above}\n{text}");
            let mut most = room * BYTES;
            while vocabulary.count(&text) + Marker::TOKENS > room {
                text = without_middle(&text, most).into_owned();
                most = most / 4 * 3;
            }
            room = room.saturating_sub(vocabulary.count(&text) + Marker::TOKENS);
            let text = marker.fence(&text);
            context.push(Context { from: format!("retrieval:{path}"), text });
        }
        context
    }
}
