//! Retrieval: what documents say about a request is told along with it.

use std::{error::Error, fmt, pin::Pin, sync::Arc, time::Duration};

use prowess::{Marker, Tokenizer};
use tokio::time::timeout;

use super::calling::shortened;
use crate::{
    error::TurnError,
    event::EventKind,
    middleware::request::{Context, Request},
    middleware::{Middleware, Next, ResponseFuture},
    model::ChatResponse,
};

/// Whoever has documents to look things up in.
///
/// An implementer gives the best first, and nothing that has nothing to do with what was asked.
pub trait DocumentSource: Send + Sync + fmt::Debug {
    /// Finds what there is about a request, `limit` parts of documents at the most.
    fn retrieve<'a>(&'a self, request: &'a str, limit: usize) -> RetrievalFuture<'a>;
}

/// What was found, once it is waited for.
pub type RetrievalFuture<'a> = Pin<
    Box<
        dyn Future<Output = Result<Vec<ContextDocument>, Box<dyn Error + Send + Sync>>> + Send + 'a,
    >,
>;

/// A part of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextDocument {
    /// Where it stands, such as `notes/backup.md`.
    pub path: String,
    /// The heading over it; empty if there is none.
    pub heading: String,
    /// What it says.
    pub text: String,
    /// How likely it is about what was asked, from 0 to 1.
    pub confidence: f64,
}

/// Tells the model what documents say about the request, right before it.
///
/// It is no part of the conversation, and is looked up anew for each request. Documents that cannot
/// be had are a warning. Behind [`ToolLoop`](crate::ToolLoop) it looks things up at every step, before
/// it once a turn.
///
/// ```no_run
/// # use std::{path::Path, sync::Arc};
/// use prowess_agent::{Agent, Folder, Retrieval, ScriptedModel};
///
/// let notes = Folder::open(Path::new("notes"))?;
/// let agent = Agent::new(Arc::new(ScriptedModel::new())).with(Retrieval::new(Arc::new(notes)));
/// # Ok::<(), prowess_runtime::RootError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Retrieval {
    /// Where to look.
    pub documents: Arc<dyn DocumentSource>,
    /// How many parts of documents are told at the most.
    pub limit: usize,
    /// How many tokens they may take together.
    pub tokens: usize,
    /// How long is waited for them.
    pub patience: Duration,
}

/// The least room that is worth a part of a document, in tokens.
const ROOM: usize = 64;
/// How many bytes a token has at the least, in most languages.
const BYTES: usize = 3;

impl Retrieval {
    /// Tells 5 parts of 2,000 tokens at the most, and waits 10 seconds for them.
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

    /// What is told of documents: as many as there is room for, the last one cut where it must be.
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
                text = shortened(text, most);
                most = most / 4 * 3;
            }
            room = room.saturating_sub(vocabulary.count(&text) + Marker::TOKENS);
            let text = marker.fence(&text);
            context.push(Context { from: format!("retrieval:{path}"), text });
        }
        context
    }
}
