//! Requests to a server on this machine, and to names that lead to it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::{
    io::{self, Read as _, Write as _},
    net::{IpAddr, TcpListener},
    sync::Arc,
    thread,
    time::Duration,
};

use futures_util::future::BoxFuture;
use prowess_http::{
    ClientRequest, FetchError, FetchRequest, FetchResponse, Fetcher, HeaderMap, Hosts, HttpClient,
    HttpError, Method, Resolver, Timeouts, Url,
};

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
