//! From what a user names to a model that can be asked.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use prowess_http::{CertificateError, ClientRequest, HttpClient, HttpError, Proxies, Timeouts};

use super::{adapter::Adapter, provider::ModelProvider};
use crate::model::Model;

/// How a model is reached.
#[derive(Debug, Clone)]
pub struct ModelConnection {
    /// How it is spoken to.
    pub provider: ModelProvider,
    /// What it is called, as its provider knows it.
    pub name: String,
    /// Where it is, if not where its provider has it: `http://localhost:11434` or
    /// `https://openrouter.ai/api/v1`.
    pub base_url: Option<String>,
    /// What lets one in. A server of one's own may want none.
    pub key: Option<ApiKey>,
    /// How long is waited. Without a stream nothing is heard until the end, so only the total counts.
    pub timeouts: Timeouts,
    /// Whether it is heard while it replies.
    pub stream: bool,
    /// Authorities (PEM) that are trusted beside those of the system.
    pub certificates: Option<Vec<u8>>,
    /// The proxies that it is reached through.
    pub proxies: Proxies,
}

/// What lets one in. It is sent, and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// A model cannot be asked like this.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// It has no name.
    #[error("no model was given")]
    Name,
    /// The address is none.
    #[error("the base URL cannot be used: {source}")]
    Url {
        /// Why.
        source: HttpError,
    },
    /// The key cannot be sent.
    #[error("the key has invalid characters")]
    Key,
    /// The certificates are none.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
}

/// Makes a model that can be asked. Nothing is sent until it is.
pub fn model(connection: ModelConnection) -> Result<Arc<dyn Model>, ConnectionError> {
    let ModelConnection {
        provider,
        name,
        base_url,
        key,
        mut timeouts,
        stream,
        certificates,
        proxies,
    } = connection;
    let name = name.trim().to_owned();
    if name.is_empty() {
        return Err(ConnectionError::Name);
    }
    if !stream {
        timeouts.idle = timeouts.total;
    }
    let base = base_url.unwrap_or_else(|| provider.row().base_url.to_owned());
    let wire = HttpClient::new(timeouts).with_proxies(proxies);
    let wire = match certificates {
        Some(pem) => wire.with_certificates(&pem)?,
        None => wire,
    };
    let protocol = provider.protocol(&base);
    let key = key.map(|it| it.0).unwrap_or_default();
    let manners = Mutex::default();
    let adapter = Adapter { provider, name, base, key, stream, wire, protocol, manners };
    let post = adapter.post(Vec::new());
    // With a path behind it, half a base URL may look like a whole one.
    let base = ClientRequest { url: adapter.base.clone(), headers: Vec::new(), ..post.clone() };
    match base.check().and_then(|()| post.check()) {
        Ok(()) => Ok(Arc::new(adapter)),
        Err(HttpError::Header { .. }) => Err(ConnectionError::Key),
        Err(source) => Err(ConnectionError::Url { source }),
    }
}

impl ModelConnection {
    /// A model at its provider's own place, without a key.
    pub fn new(provider: ModelProvider, name: impl Into<String>) -> Self {
        Self {
            provider,
            name: name.into(),
            base_url: None,
            key: None,
            timeouts: Timeouts::default(),
            stream: true,
            certificates: None,
            proxies: Proxies::default(),
        }
    }
}

impl ApiKey {
    /// Takes a key, without the white space around it.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}
