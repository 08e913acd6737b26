//! Sending something to a server that the user has named.

use std::{io, net::SocketAddr};

use http_body_util::Full;
use hyper::{Method, Request, body::Bytes, header};
use rustls::pki_types::ServerName;
use url::Url;

use super::{connect::Connection, trust::Trust};

/// Posts a body to a server, whichever it is, and returns the status of its answer. No redirect is
/// followed, and no proxy is used.
pub async fn post(url: &str, headers: &[(String, String)], body: Vec<u8>) -> io::Result<u16> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let url = Url::parse(url).map_err(|it| invalid(it.to_string()))?;
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err(invalid("the address has no host".to_owned()));
    };
    let name = host.trim_matches(['[', ']']);
    let tls = match url.scheme() {
        "http" => None,
        "https" => {
            let server = ServerName::try_from(name.to_owned());
            Some((Trust::default().config(), server.map_err(|it| invalid(it.to_string()))?))
        }
        other => return Err(invalid(format!("`{other}` is not spoken, only `http` and `https`"))),
    };
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host((name, port)).await?.collect();
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(&url[url::Position::BeforePath..url::Position::AfterQuery])
        .header(header::HOST, url[url::Position::BeforeHost..url::Position::AfterPort].to_owned())
        .header(header::USER_AGENT, concat!("prowess/", env!("CARGO_PKG_VERSION")));
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let request =
        request.body(Full::new(Bytes::from(body))).map_err(|it| invalid(it.to_string()))?;
    let mut connection = Connection::new(&addresses, tls).await?;
    let response = connection.send(request).await.map_err(io::Error::other)?;
    Ok(response.status().as_u16())
}
