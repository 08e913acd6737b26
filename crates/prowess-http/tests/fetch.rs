//! Requests to a server on this machine, and to names that lead to it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::{
    io::{self, Read as _, Write as _},
    net::{IpAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use futures_util::future::BoxFuture;
use prowess_http::{
    ClientRequest, FetchError, FetchRequest, FetchResponse, Fetcher, HeaderMap, Hosts, HttpClient,
    HttpError, Method, Proxies, Resolver, Timeouts, Url,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};

/// Answers every request with the same bytes; gives its port.
fn serve(answer: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.extend(byte);
            }
            // A client that has read enough hangs up.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

fn answer(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

async fn fetch(fetcher: &Fetcher, url: &str, max_body: u64) -> Result<FetchResponse, FetchError> {
    let request = FetchRequest {
        method: Method::GET,
        url: Url::parse(url).unwrap(),
        headers: HeaderMap::new(),
        body: None,
        timeout: Duration::from_secs(60),
        idle: Duration::from_secs(60),
        max_body,
    };
    fetcher.fetch(request).await
}

/// Leads every name to one address.
#[derive(Debug)]
struct To(IpAddr);

impl Resolver for To {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![self.0]) })
    }
}

#[tokio::test]
async fn a_listed_address_is_fetched_up_to_a_length() {
    let port = serve(answer("200 OK", "0123456789"));
    let fetcher = Fetcher::new(Hosts::new(["127.0.0.1"]).unwrap());
    let url = format!("http://127.0.0.1:{port}/");
    let whole = fetch(&fetcher, &url, 10).await.unwrap();
    assert_eq!(
        (whole.status.as_u16(), &*whole.body, whole.truncated),
        (200, &b"0123456789"[..], false)
    );
    let part = fetch(&fetcher, &url, 9).await.unwrap();
    assert_eq!((&*part.body, part.truncated), (&b"012345678"[..], true));
}

#[tokio::test]
async fn a_name_that_leads_to_this_machine_is_refused() {
    let to = Arc::new(To([127, 0, 0, 1].into()));
    let fetcher = Fetcher::new(Hosts::default()).with_resolver(to);
    let error = fetch(&fetcher, "http://rebind.test/", 9).await.unwrap_err();
    assert!(matches!(error, FetchError::Address { .. }), "{error}");
}

#[tokio::test]
async fn a_redirect_to_another_host_is_checked() {
    let port = serve(answer("302 Found\r\nlocation: http://169.254.169.254/", ""));
    let fetcher = Fetcher::new(Hosts::new(["127.0.0.1"]).unwrap());
    let error = fetch(&fetcher, &format!("http://127.0.0.1:{port}/"), 9).await.unwrap_err();
    assert!(matches!(error, FetchError::Host { .. }), "{error}");
}

#[tokio::test]
async fn a_response_is_streamed_up_to_a_length() {
    let port = serve(answer("418 I'm a teapot\r\nx-a: 1", "0123456789"));
    let request = |max_body| ClientRequest {
        url: format!("http://127.0.0.1:{port}/"),
        headers: Vec::new(),
        body: b"{}".to_vec(),
        max_body,
    };
    let client = HttpClient::new(Timeouts::default());
    let mut response = client.post(request(10)).await.unwrap();
    assert_eq!((response.status, response.header("x-a")), (418, Some("1")));
    assert_eq!(response.whole().await.unwrap(), b"0123456789");
    let error = client.post(request(9)).await.unwrap().whole().await.unwrap_err();
    assert!(matches!(error, HttpError::TooLong { limit: 9, .. }), "{error}");
}

#[test]
fn what_is_no_request_is_refused_without_its_secrets() {
    let client = HttpClient::new(Timeouts::default());
    let request = |url: &str, header: &str| ClientRequest {
        url: url.to_owned(),
        headers: vec![(header.to_owned(), "s3cret".to_owned())],
        body: Vec::new(),
        max_body: 0,
    };
    for request in [
        request("ftp://example.com", "x-key"),
        request("https://me:s3cret@example.com", "x-key"),
        request("nowhere", "x-key"),
        request("https://example.com", "no header"),
    ] {
        let error = client.check(&request).unwrap_err();
        assert!(!format!("{error} {error:?} {request:?}").contains("s3cret"), "{error:?}");
    }
    assert!(client.check(&request("https://example.com", "x-key")).is_ok());
}

/// A proxy that connects every `CONNECT` to one port of this machine; gives its port and the heads that
/// it was sent.
fn tunnel_to(port: u16) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = heads.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut client = stream.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).unwrap();
                head.extend(byte);
            }
            let head = String::from_utf8(head).unwrap();
            let is_known = head.contains("Proxy-Authorization: Basic YTpi");
            seen.lock().unwrap().push(head);
            if !is_known {
                let refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
                client.write_all(refusal).unwrap();
                continue;
            }
            let mut server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            client.write_all(b"HTTP/1.1 200 Connection established\r\nx: y\r\n\r\n").unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            // Either side may hang up.
            thread::spawn(move || io::copy(&mut from, &mut to));
            thread::spawn(move || io::copy(&mut server, &mut client));
        }
    });
    (own, heads)
}

/// A server that speaks TLS as `secure.test`; gives its port.
fn secure(answer: String) -> u16 {
    let certificate = include_bytes!("../../../fixtures/tls/server.pem");
    let key = include_bytes!("../../../fixtures/tls/server.key");
    let config = rustls::ServerConfig::builder_with_provider(
        rustls::crypto::ring::default_provider().into(),
    )
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_no_client_auth()
    .with_single_cert(
        vec![CertificateDer::from_pem_slice(certificate).unwrap()],
        PrivateKeyDer::from_pem_slice(key).unwrap(),
    )
    .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = rustls::ServerConnection::new(Arc::new(config.clone())).unwrap();
            let mut stream = rustls::StreamOwned::new(connection, stream.unwrap());
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n{}") {
                let mut byte = [0];
                // A client that trusts nobody hangs up.
                if stream.read_exact(&mut byte).is_err() {
                    break;
                }
                head.extend(byte);
            }
            let _ = stream.write_all(answer.as_bytes());
            let _ = stream.flush();
        }
    });
    port
}

#[tokio::test]
async fn an_https_request_goes_through_a_tunnel_of_the_proxy() {
    let (proxy, heads) = tunnel_to(secure(answer("200 OK", "safe")));
    let client = |user: &str| {
        let url = format!("http://{user}127.0.0.1:{proxy}");
        let proxies = Proxies::from_variables(|it| (it == "HTTPS_PROXY").then(|| url.clone()));
        HttpClient::new(Timeouts::default())
            .with_proxies(proxies.unwrap())
            .with_certificates(include_bytes!("../../../fixtures/tls/ca.pem"))
            .unwrap()
    };
    let request = |host: &str| ClientRequest {
        url: format!("https://{host}/x"),
        headers: Vec::new(),
        body: b"{}".to_vec(),
        max_body: 100,
    };
    let mut response = client("a:b@").post(request("secure.test")).await.unwrap();
    assert_eq!(response.whole().await.unwrap(), b"safe");
    assert!(heads.lock().unwrap()[0].starts_with("CONNECT secure.test:443 HTTP/1.1\r\n"));

    let error = client("").post(request("secure.test")).await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "it requires a user name and password");
    // The name in the certificate counts, not that of the proxy.
    let error = client("a:b@").post(request("other.test")).await.unwrap_err();
    assert!(matches!(error, HttpError::Proxy { .. }), "{error}");
    // Where only some hosts may be asked, no proxy is.
    let hosts = Hosts::new(["secure.test"]).unwrap();
    let to = Arc::new(To("127.0.0.1".parse().unwrap()));
    let guarded = client("a:b@").with_hosts(hosts).with_resolver(to);
    assert!(guarded.post(request("secure.test")).await.is_err());
    assert_eq!(heads.lock().unwrap().len(), 3);
}
