//! Local servers with the answers of a test.

use std::{
    io::{self, BufRead as _, BufReader, Read, Write},
    net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};

/// A server that remembers its requests. Ended when dropped.
#[derive(Debug)]
pub struct Server {
    pub address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    connections: Mutex<usize>,
    asked: Mutex<Vec<Asked>>,
    done: AtomicBool,
}

/// A request to a server.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Method and path.
    pub line: String,
    /// The lines of the head after the first, in lower case.
    pub head: String,
    pub body: String,
    /// The body as bytes.
    pub bytes: Vec<u8>,
}

/// Answers one request.
type Handler = dyn Fn(&Asked, &mut dyn Write) -> io::Result<()> + Send + Sync;

impl Server {
    /// Starts a server whose answers a function writes.
    pub fn new(
        answer: impl Fn(&Asked, &mut dyn Write) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::at((Ipv4Addr::LOCALHOST, 0), answer).unwrap()
    }

    /// Starts a server that gives everybody the same answer.
    pub fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::new(move |_, client| client.write_all(&answer))
    }

    /// Like [`new`](Self::new), at a given address.
    pub fn at(
        address: impl Into<SocketAddr>,
        answer: impl Fn(&Asked, &mut dyn Write) -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::start(address.into(), None, Arc::new(answer))
    }

    /// Starts a server that speaks TLS, with the certificate of `secure.test`.
    pub fn secure(
        answer: impl Fn(&Asked, &mut dyn Write) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let certificate = include_bytes!("../../../fixtures/tls/server.pem");
        let key = include_bytes!("../../../fixtures/tls/server.key");
        let config = ServerConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(certificate).unwrap()],
                PrivateKeyDer::from_pem_slice(key).unwrap(),
            )
            .unwrap();
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        Self::start(address, Some(Arc::new(config)), Arc::new(answer)).unwrap()
    }

    fn start(
        address: SocketAddr,
        tls: Option<Arc<ServerConfig>>,
        answer: Arc<Handler>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let state = Arc::new(State::default());
        let own = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if own.done.load(Ordering::Relaxed) {
                    break;
                }
                *own.connections.lock().unwrap() += 1;
                // Small writes are sent as small packets.
                let _ = stream.set_nodelay(true);
                let (state, answer, tls) = (own.clone(), answer.clone(), tls.clone());
                thread::spawn(move || {
                    let mut socket = stream.try_clone().unwrap();
                    match tls {
                        Some(tls) => {
                            let connection = ServerConnection::new(tls).unwrap();
                            serve(StreamOwned::new(connection, stream), &state, &*answer);
                        }
                        None => serve(stream, &state, &*answer),
                    }
                    // Closing with unread bytes would discard what was sent.
                    let _ = socket.shutdown(Shutdown::Write);
                    let _ = socket.read(&mut [0; 64]);
                });
            }
        });
        Ok(Self { address, state })
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns a URL of this server.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        *self.state.connections.lock().unwrap()
    }

    /// Returns its requests, the last at the end.
    pub fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().unwrap().clone()
    }

    pub fn last(&self) -> Asked {
        self.asked().pop().expect("it was asked")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.done.store(true, Ordering::Relaxed);
        // A connection wakes the loop.
        let _ = TcpStream::connect(self.address);
    }
}

impl Asked {
    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().filter_map(|it| it.split_once(": "));
        headers.find(|it| it.0 == name).map(|it| it.1)
    }
}

fn serve(stream: impl Read + Write, state: &State, answer: &Handler) {
    let mut stream = BufReader::new(stream);
    let Ok(asked) = read(&mut stream) else { return };
    state.asked.lock().unwrap().push(asked.clone());
    let stream = stream.get_mut();
    let _ = answer(&asked, stream).and_then(|()| stream.flush());
}

fn read(stream: &mut BufReader<impl Read>) -> io::Result<Asked> {
    let mut asked = Asked::default();
    stream.read_line(&mut asked.line)?;
    if asked.line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    asked.line = asked.line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        if line.trim_end().is_empty() {
            break;
        }
        asked.head += &line.to_lowercase();
    }
    let length = asked.header("content-length").map_or(0, |it| it.trim().parse().unwrap());
    stream.take(length).read_to_end(&mut asked.bytes)?;
    asked.body = String::from_utf8_lossy(&asked.bytes).into_owned();
    Ok(asked)
}

/// Returns an answer with a body, after which the connection is closed.
pub fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
    )
}

/// Returns a redirect.
pub fn redirect(status: u16, to: &str) -> String {
    answer(&format!("{status} Moved"), &format!("location: {to}\r\n"), "")
}

/// Returns an address of this machine at which nobody listens.
pub fn nowhere() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}

/// Writes for as long as the client reads, with a pause after each time.
pub fn for_ever(client: &mut dyn Write, bytes: &[u8], pause: Duration) -> io::Result<()> {
    loop {
        client.write_all(bytes)?;
        client.flush()?;
        thread::sleep(pause);
    }
}

/// A resolver that gives its answers in order, and then repeats the last one.
#[derive(Debug)]
pub struct Names {
    answers: Vec<Vec<IpAddr>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    pub fn new(answers: &[&[&str]]) -> Arc<Self> {
        Arc::new(Self {
            answers: answers
                .iter()
                .map(|it: &&[&str]| it.iter().map(|it| it.parse().unwrap()).collect())
                .collect(),
            asked: Mutex::default(),
        })
    }

    /// Returns the names that it was asked for.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl prowess_http::Resolver for Names {
    fn resolve<'a>(
        &'a self,
        host: &'a str,
    ) -> futures_util::future::BoxFuture<'a, std::io::Result<Vec<std::net::IpAddr>>> {
        let mut asked = self.asked.lock().unwrap();
        let at = asked.len().min(self.answers.len().saturating_sub(1));
        asked.push(host.to_owned());
        Box::pin(std::future::ready(Ok(self.answers.get(at).cloned().unwrap_or_default())))
    }
}
