//! A connection to a checked address, for one request.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use http_body_util::Full;
use hyper::{
    body::{Bytes, Incoming},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    task::JoinSet,
};
use tokio_rustls::TlsConnector;

/// The TLS configuration, and the name of the server.
pub(crate) type Tls = (Arc<ClientConfig>, ServerName<'static>);

/// A connection for one request. Closed when it is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// The number of bytes that may still be received.
    remaining: Arc<AtomicUsize>,
    _driver: JoinSet<hyper::Result<()>>,
}

/// The timeout for each address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of a response head in bytes.
const MAX_HEAD: usize = 64 * 1024;
/// The maximum number of bytes before a response: its head, and all informational responses (1xx).
const MAX_BEFORE: usize = 256 * 1024;

impl Connection {
    /// Connects to the first of these addresses that accepts; with TLS, to the server of that name.
    pub(crate) async fn new(addresses: &[SocketAddr], tls: Option<Tls>) -> io::Result<Self> {
        Self::over(Box::new(connect(addresses).await?), tls).await
    }

    /// Creates a connection over a stream; with TLS, to the server of that name.
    pub(crate) async fn over(stream: Box<dyn Stream>, tls: Option<Tls>) -> io::Result<Self> {
        let stream = encrypt(stream, tls).await?;
        let remaining = Arc::new(AtomicUsize::new(MAX_BEFORE));
        let stream = TokioIo::new(MeteredStream { stream, remaining: remaining.clone() });
        let mut builder = http1::Builder::new();
        let handshake = builder.max_buf_size(MAX_HEAD).handshake(stream).await;
        let (sender, connection) = handshake.map_err(io::Error::other)?;
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        Ok(Self { sender, remaining, _driver: driver })
    }

    /// Sends the request, and waits for the head of the response.
    pub(crate) async fn send(
        &mut self,
        request: hyper::Request<Full<Bytes>>,
    ) -> hyper::Result<hyper::Response<Incoming>> {
        let response = self.sender.send_request(request).await?;
        self.remaining.store(usize::MAX, Ordering::Relaxed);
        Ok(response)
    }
}

/// Connects to the first of these addresses that accepts, trying each for five seconds.
pub async fn connect(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::ErrorKind::NotFound.into();
    for address in addresses {
        match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}

/// Encrypts a stream, if TLS is set.
pub(crate) async fn encrypt(
    stream: Box<dyn Stream>,
    tls: Option<Tls>,
) -> io::Result<Box<dyn Stream>> {
    Ok(match tls {
        Some((config, name)) => Box::new(TlsConnector::from(config).connect(name, stream).await?),
        None => stream,
    })
}

/// A bidirectional byte stream.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A stream with a limit of bytes to read: otherwise a server could send informational responses
/// without end.
struct MeteredStream {
    stream: Box<dyn Stream>,
    remaining: Arc<AtomicUsize>,
}

impl AsyncRead for MeteredStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let read = buffer.filled().len() - before;
        if self.remaining.fetch_sub(read, Ordering::Relaxed) < read {
            return Poll::Ready(Err(io::Error::other("too many bytes before the response")));
        }
        polled
    }
}

impl AsyncWrite for MeteredStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
