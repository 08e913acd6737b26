//! A server that needs a login, its authorization server, and a person with a browser.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use prowess_mcp::config::ServerSetting;
use prowess_runtime::text::percent_decoded;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use crate::{
    server::{Asked, Server, answer, redirect},
    skill_servers::setting,
    world::{SETTINGS, World},
};

/// The logins of the user.
pub const LOGINS: &str = "home/.local/state/prowess/logins";

/// A server that speaks MCP at `/mcp`, and its authorization server.
#[derive(Debug)]
pub struct Site {
    pub listener: Server,
    says: Arc<Mutex<Says>>,
}

/// The messages of the site.
#[derive(Debug)]
pub struct Says {
    base: String,
    /// Responses at a path that replace all others.
    pub instead: Vec<(String, String)>,
    /// Documents at their paths.
    pub documents: Vec<(String, Json)>,
    pub challenge: String,
    /// The scope that a token needs beside being valid.
    pub scope: Option<String>,
    pub is_open: bool,
    /// The query of the redirect besides code and state.
    pub comes_back: String,
    pub lifetime: u64,
    given: usize,
    pub access: Option<String>,
    pub refresh: Option<String>,
    codes: Vec<(String, Query)>,
    pending: usize,
    /// The requests to the authorization server.
    pub log: Vec<(String, Query)>,
    /// The tokens of requests, and the methods called.
    pub tokens: Vec<String>,
}

/// Pairs of a query or form.
pub type Query = Vec<(String, String)>;

impl Site {
    pub fn start() -> Self {
        let says = Arc::new(Mutex::new(Says {
            base: String::new(),
            instead: Vec::new(),
            documents: Vec::new(),
            challenge: String::new(),
            scope: None,
            is_open: false,
            comes_back: String::new(),
            lifetime: 3600,
            given: 0,
            access: None,
            refresh: None,
            codes: Vec::new(),
            pending: 1,
            log: Vec::new(),
            tokens: Vec::new(),
        }));
        let own = says.clone();
        let listener = Server::new(move |asked, client| {
            let said = own.lock().unwrap().answer(asked);
            client.write_all(said.as_bytes())
        });
        let site = Self { listener, says };
        let base = site.listener.url("");
        let resource = json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]});
        let authority = json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "device_authorization_endpoint": format!("{base}/device"),
            "revocation_endpoint": format!("{base}/revoke"),
            "code_challenge_methods_supported": ["plain", "S256"],
            "authorization_response_iss_parameter_supported": true,
        });
        let mut says = site.says();
        says.documents = vec![(RESOURCE.to_owned(), resource), (AUTHORITY.to_owned(), authority)];
        says.challenge = format!("Bearer resource_metadata=\"{base}{RESOURCE}\", scope=\"read\"");
        says.comes_back = format!("&iss={}", encoded(&base));
        says.base = base;
        drop(says);
        site
    }

    /// Returns its messages, to be changed.
    pub fn says(&self) -> MutexGuard<'_, Says> {
        self.says.lock().unwrap()
    }

    /// Changes a field of a document.
    pub fn set(&self, path: &str, key: &str, value: Json) {
        let mut says = self.says();
        let document = says.documents.iter_mut().find(|it| it.0 == path).unwrap();
        match value {
            Json::Null => drop(document.1.as_object_mut().unwrap().remove(key)),
            value => document.1[key] = value,
        }
    }

    /// Sets the response at a path.
    pub fn instead(&self, path: &str, said: String) {
        self.says().instead.push((path.to_owned(), said));
    }

    /// Returns the settings of a user with this server.
    pub fn settings(&self, more: &str) -> String {
        let url = self.listener.url("/mcp");
        format!("policy.hosts = [\"127.0.0.1\"]\n[servers.docs]\nurl = \"{url}\"\n{more}")
    }

    /// Returns a world whose user has this server.
    pub fn world(&self) -> World {
        World::new().file(SETTINGS, self.settings(""))
    }

    /// Returns the server as a user sets it.
    pub fn setting(&self) -> ServerSetting {
        setting("docs", &json!({ "url": self.listener.url("/mcp") }))
    }

    /// Returns the requests to a path of the authorization server.
    pub fn log(&self, path: &str) -> Vec<Query> {
        self.says().log.iter().filter(|it| it.0 == path).map(|it| it.1.clone()).collect()
    }
}

/// The paths of the metadata.
pub const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";
pub const AUTHORITY: &str = "/.well-known/oauth-authorization-server";

impl Says {
    fn answer(&mut self, asked: &Asked) -> String {
        let (method, target) = asked.line.split_once(' ').unwrap();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if let Some((_, said)) = self.instead.iter().find(|it| it.0 == path) {
            return said.clone();
        }
        if let Some((_, document)) = self.documents.iter().find(|it| it.0 == path) {
            return json_answer("200 OK", document);
        }
        let query = pairs(if method == "POST" { &asked.body } else { query });
        match path {
            "/mcp" if method != "POST" => answer("405 Method Not Allowed", "", ""),
            "/mcp" => self.mcp(asked),
            "/authorize" => {
                let code = format!("code-{}", self.codes.len() + 1);
                let to = format!(
                    "{}?code={code}&state={}{}",
                    value(&query, "redirect_uri"),
                    encoded(value(&query, "state")),
                    self.comes_back,
                );
                self.codes.push((code, query.clone()));
                self.log.push((path.to_owned(), query));
                redirect(302, &to)
            }
            "/register" => {
                let client: Json = serde_json::from_str(&asked.body).unwrap();
                let redirect = client["redirect_uris"][0].as_str().unwrap_or_default().to_owned();
                self.log.push((path.to_owned(), vec![("redirect_uri".to_owned(), redirect)]));
                json_answer("201 Created", &json!({"client_id": "client-1"}))
            }
            "/device" => {
                self.log.push((path.to_owned(), query));
                let page = format!("{}/activate", self.base);
                json_answer(
                    "200 OK",
                    &json!({"device_code": "device-secret", "user_code": "WDJB-MJHT", "verification_uri": page, "interval": 1, "expires_in": 60}),
                )
            }
            "/token" => {
                let mut noted = query.clone();
                noted.extend(
                    asked
                        .header("authorization")
                        .map(|it| ("authorization".to_owned(), it.to_owned())),
                );
                self.log.push((path.to_owned(), noted));
                self.token(&query)
            }
            "/revoke" => {
                self.log.push((path.to_owned(), query));
                answer("200 OK", "", "")
            }
            _ => answer("404 Not Found", "", ""),
        }
    }

    /// Issues tokens for a grant.
    fn token(&mut self, form: &Query) -> String {
        let bad = |error: &str| json_answer("400 Bad Request", &json!({ "error": error }));
        match value(form, "grant_type") {
            "authorization_code" => {
                let Some((_, asked)) = self.codes.iter().find(|it| it.0 == value(form, "code"))
                else {
                    return bad("invalid_grant");
                };
                let digest = Sha256::digest(value(form, "code_verifier"));
                let is_same = |key: &str| value(asked, key) == value(form, key);
                let is_proven =
                    value(asked, "code_challenge") == BASE64_URL_SAFE_NO_PAD.encode(digest);
                if !is_proven || !is_same("redirect_uri") || !is_same("resource") {
                    return bad("invalid_grant");
                }
            }
            "refresh_token" if self.refresh.as_deref() == Some(value(form, "refresh_token")) => {}
            "urn:ietf:params:oauth:grant-type:device_code"
                if value(form, "device_code") == "device-secret" =>
            {
                if self.pending > 0 {
                    self.pending -= 1;
                    return bad("authorization_pending");
                }
            }
            _ => return bad("invalid_grant"),
        }
        self.given += 1;
        let [access, refresh] =
            ["access", "refresh"].map(|it| format!("{it}-secret-{}", self.given));
        (self.access, self.refresh) = (Some(access.clone()), Some(refresh.clone()));
        json_answer(
            "200 OK",
            &json!({"access_token": access, "token_type": "bearer", "refresh_token": refresh, "expires_in": self.lifetime}),
        )
    }

    fn mcp(&mut self, asked: &Asked) -> String {
        let token = asked.header("authorization").and_then(|it| it.strip_prefix("bearer "));
        self.tokens.push(token.unwrap_or("none").to_owned());
        if !self.is_open && (token.is_none() || token != self.access.as_deref()) {
            return answer(
                "401 Unauthorized",
                &format!("www-authenticate: {}\r\n", self.challenge),
                "",
            );
        }
        if let Some(scope) = &self.scope {
            let asked = self.log.iter().rfind(|it| it.0 == "/authorize");
            if !asked.is_some_and(|it| value(&it.1, "scope").split(' ').any(|it| it == scope)) {
                let head = format!(
                    "www-authenticate: Bearer error=\"insufficient_scope\", scope=\"{scope}\"\r\n"
                );
                return answer("403 Forbidden", &head, "");
            }
        }
        let message: Json = serde_json::from_str(&asked.body).unwrap();
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "docs", "version": "1"},
            }),
            "tools/list" => {
                json!({"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]})
            }
            "tools/call" => json!({"content": [{"type": "text", "text": "Hello from docs."}]}),
            _ if message["id"].is_null() => return answer("202 Accepted", "", ""),
            _ => {
                let error = json!({"code": -32601, "message": "not known"});
                return json_answer(
                    "200 OK",
                    &json!({"jsonrpc": "2.0", "id": message["id"], "error": error}),
                );
            }
        };
        json_answer("200 OK", &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
    }
}

/// Returns an answer with a document.
pub fn json_answer(status: &str, document: &Json) -> String {
    answer(status, "content-type: application/json\r\n", &document.to_string())
}

/// Returns a value of a query; empty if there is none.
pub fn value<'q>(query: &'q Query, key: &str) -> &'q str {
    query.iter().find(|it| it.0 == key).map_or("", |it| &it.1)
}

/// Reads a query or form.
pub fn pairs(text: &str) -> Query {
    let decoded = |it: &str| percent_decoded(&it.replace('+', " ")).unwrap();
    let pairs = text.split('&').filter_map(|it| it.split_once('='));
    pairs.map(|(key, value)| (decoded(key), decoded(value))).collect()
}

/// Returns a text as a query has it.
pub fn encoded(text: &str) -> String {
    let encoded = |it: u8| match it {
        it if it.is_ascii_alphanumeric() || b"-._~".contains(&it) => char::from(it).to_string(),
        it => format!("%{it:02X}"),
    };
    text.bytes().map(encoded).collect()
}

/// Opens a URL as a browser does, and follows redirects.
pub fn browse(url: &str) -> String {
    let mut url = url.to_owned();
    for _ in 0..5 {
        let said = get(&url);
        let to = said.lines().find_map(|it| it.strip_prefix("location: "));
        match to {
            Some(to) => url = to.to_owned(),
            None => return said,
        }
    }
    panic!("it leads round and round");
}

/// Returns the response to one request.
pub fn get(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let address = host.replace("localhost", "127.0.0.1").parse().unwrap();
    send(address, &format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\n\r\n")).unwrap()
}

/// Sends a request, and returns the response.
pub fn send(address: SocketAddr, request: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(request.as_bytes())?;
    let mut said = String::new();
    stream.read_to_string(&mut said)?;
    Ok(said)
}

/// Returns the files of logins, without the locks.
pub fn files(world: &World) -> Vec<PathBuf> {
    let files = fs::read_dir(world.path(LOGINS)).into_iter().flatten().map(|it| it.unwrap().path());
    files.filter(|it| it.extension().is_none_or(|it| it != "lock")).collect()
}

/// Makes the token of the only login expire now.
pub fn expire(world: &World) {
    let [file] = &files(world)[..] else { panic!("not one login") };
    let mut login: Json = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    login["expires_at"] = 1.into();
    fs::write(file, login.to_string()).unwrap();
}
