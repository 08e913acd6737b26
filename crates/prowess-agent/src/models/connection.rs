//! Creates a model from the user's settings.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use prowess_http::{CertificateError, ClientRequest, HttpClient, HttpError, Proxies, Timeouts};

use super::{adapter::Adapter, provider::ModelProvider};
use crate::model::Model;

/// The connection settings of a model.
#[derive(Debug, Clone)]
pub struct ModelConnection {
    /// The provider, which determines the protocol.
    pub provider: ModelProvider,
    /// The model name, as its provider knows it.
    pub name: String,
    /// The base URL, if not the provider's own: `http://localhost:11434` or
    /// `https://openrouter.ai/api/v1`.
    pub base_url: Option<String>,
    /// The API key. A self-hosted server may need none.
    pub key: Option<ApiKey>,
    /// The timeouts. Without streaming nothing arrives until the end, so only the total applies.
    pub timeouts: Timeouts,
    /// Whether the reply is streamed.
    pub stream: bool,
    /// Certificate authorities (PEM) that are trusted in addition to those of the system.
    pub certificates: Option<Vec<u8>>,
    /// The proxies of the connection.
    pub proxies: Proxies,
}

/// An API key. Redacted in `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// The connection settings of a model are invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// It has no name.
    #[error("no model was given")]
    Name,
    /// The base URL is invalid.
    #[error("the base URL cannot be used: {source}")]
    Url {
        /// The cause.
        source: HttpError,
    },
    /// The key cannot be sent.
    #[error("the key has invalid characters")]
    Key,
    /// The certificates are invalid.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
}

/// Creates a model. Nothing is sent until the first request.
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
    let quirks = Mutex::default();
    let adapter = Adapter { provider, name, base, key, stream, wire, protocol, quirks };
    let post = adapter.post(Vec::new());
    // With a path appended, an incomplete base URL may look complete.
    let base = ClientRequest { url: adapter.base.clone(), headers: Vec::new(), ..post.clone() };
    match base.check().and_then(|()| post.check()) {
        Ok(()) => Ok(Arc::new(adapter)),
        Err(HttpError::Header { .. }) => Err(ConnectionError::Key),
        Err(source) => Err(ConnectionError::Url { source }),
    }
}

impl ModelConnection {
    /// Creates the settings of a model at its provider's own address, without a key.
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
    /// Creates a key, without surrounding white space.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}
