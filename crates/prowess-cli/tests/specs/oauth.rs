//! Logging in to servers: a well-behaved one, its misbehaviours, and a real one.

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard},
    thread,
    time::{Duration, Instant},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use crate::{
    ask::ask,
    mcp_clients::{CLIENTS, node},
    model_server::{Answer, ModelServer},
    server::{Asked, Server as Listener, answer, redirect},
    world::{Ran, SETTINGS, World, program},
};

/// The logins of the user.
const LOGINS: &str = "home/.local/state/prowess/logins";
/// A timeout longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that speaks MCP at `/mcp`, and its authorization server.
struct Site {
    listener: Listener,
    says: Arc<Mutex<Says>>,
}

/// The messages of the site.
struct Says {
    base: String,
    /// Responses at a path that replace all others.
    instead: Vec<(String, String)>,
    /// Documents at their paths.
    documents: Vec<(String, Json)>,
    challenge: String,
    /// The scope that a token needs beside being valid.
    scope: Option<String>,
    is_open: bool,
    /// The query of the redirect besides code and state.
    comes_back: String,
    lifetime: u64,
    given: usize,
    access: Option<String>,
    refresh: Option<String>,
    codes: Vec<(String, Query)>,
    pending: usize,
    /// The requests to the authorization server.
    log: Vec<(String, Query)>,
    /// The tokens of requests, and the methods called.
    tokens: Vec<String>,
}

/// Pairs of a query or form.
type Query = Vec<(String, String)>;

impl Site {
    fn new() -> Self {
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
        let listener = Listener::new(move |asked, client| {
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

    fn says(&self) -> MutexGuard<'_, Says> {
        self.says.lock().unwrap()
    }

    /// Changes a field of a document.
    fn set(&self, path: &str, key: &str, value: Json) {
        let mut says = self.says();
        let document = says.documents.iter_mut().find(|it| it.0 == path).unwrap();
        match value {
            Json::Null => drop(document.1.as_object_mut().unwrap().remove(key)),
            value => document.1[key] = value,
        }
    }

    /// Sets the response at a path.
    fn instead(&self, path: &str, said: String) {
        self.says().instead.push((path.to_owned(), said));
    }

    /// Returns the settings of a user with this server.
    fn settings(&self, more: &str) -> String {
        let url = self.listener.url("/mcp");
        format!("policy.hosts = [\"127.0.0.1\"]\n[servers.docs]\nurl = \"{url}\"\n{more}")
    }

    /// Returns a world whose user has this server.
    fn world(&self) -> World {
        World::new().file(SETTINGS, self.settings(""))
    }

    /// Returns a world whose user has logged in.
    fn logged_in(&self) -> World {
        let world = self.world();
        let ran = log_in(&world);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        world
    }

    /// Returns the requests to a path of the authorization server.
    fn log(&self, path: &str) -> Vec<Query> {
        self.says().log.iter().filter(|it| it.0 == path).map(|it| it.1.clone()).collect()
    }
}

const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";
const AUTHORITY: &str = "/.well-known/oauth-authorization-server";

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

fn json_answer(status: &str, document: &Json) -> String {
    answer(status, "content-type: application/json\r\n", &document.to_string())
}

fn value<'q>(query: &'q Query, key: &str) -> &'q str {
    query.iter().find(|it| it.0 == key).map_or("", |it| &it.1)
}

fn pairs(text: &str) -> Query {
    let decoded = |it: &str| prowess_runtime::text::percent_decoded(&it.replace('+', " ")).unwrap();
    let pairs = text.split('&').filter_map(|it| it.split_once('='));
    pairs.map(|(key, value)| (decoded(key), decoded(value))).collect()
}

fn encoded(text: &str) -> String {
    let encoded = |it: u8| match it {
        it if it.is_ascii_alphanumeric() || b"-._~".contains(&it) => char::from(it).to_string(),
        it => format!("%{it:02X}"),
    };
    text.bytes().map(encoded).collect()
}

/// A pending login.
struct Login {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    said: String,
    /// The URL to open.
    url: String,
}

impl Login {
    /// Begins a login and waits until there is a URL to open.
    fn begin(world: &World, arguments: &[&str]) -> Self {
        let arguments = ["servers", "login", "docs"].iter().chain(arguments);
        let mut command = world.command(arguments);
        command.stdin(Stdio::piped());
        Self::of(command)
    }

    /// Like [`begin`](Self::begin), with a prepared command.
    fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut login = Self { child, stderr, said: String::new(), url: String::new() };
        login.url = login.hear("  http").trim().to_owned();
        login
    }

    /// Waits for a line with this beginning.
    fn hear(&mut self, beginning: &str) -> String {
        loop {
            let mut line = String::new();
            let length = self.stderr.read_line(&mut line).unwrap();
            self.said += &line;
            assert!(length > 0, "no line begins with {beginning:?}: {}", self.said);
            if line.starts_with(beginning) {
                return line;
            }
        }
    }

    fn state(&self) -> String {
        value(&pairs(self.url.split_once('?').unwrap().1), "state").to_owned()
    }

    /// Returns the address at which the redirect of the browser is waited for.
    fn port(&self) -> SocketAddr {
        let back = value(&pairs(self.url.split_once('?').unwrap().1), "redirect_uri").to_owned();
        back.strip_prefix("http://").unwrap().split('/').next().unwrap().parse().unwrap()
    }

    /// Returns the result.
    fn end(mut self) -> Ran {
        let start = Instant::now();
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            assert!(start.elapsed() < PATIENCE, "it does not end: {}", self.said);
            thread::sleep(Duration::from_millis(5));
        };
        self.stderr.read_to_string(&mut self.said).unwrap();
        let mut out = Vec::new();
        self.child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
        Ran { code, out, stderr: std::mem::take(&mut self.said) }
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Logs in as a person does.
fn log_in(world: &World) -> Ran {
    log_in_with(world, &[])
}

fn log_in_with(world: &World, arguments: &[&str]) -> Ran {
    let login = Login::begin(world, arguments);
    browse(&login.url);
    login.end()
}

/// Runs a login that fails before there is a URL.
fn no_login(world: &World) -> Ran {
    let ran = world.run(["servers", "login", "docs"]);
    assert_eq!(ran.code, Some(2), "{}{}", ran.stdout(), ran.stderr);
    ran.assert_safe();
    assert!(!ran.stderr.contains("Open this URL"), "{}", ran.stderr);
    assert!(!world.path(LOGINS).exists() || files(world).is_empty());
    ran
}

/// Opens a URL as a browser does, and follows redirects.
fn browse(url: &str) -> String {
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
fn get(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let address = host.replace("localhost", "127.0.0.1").parse().unwrap();
    send(address, &format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\n\r\n")).unwrap()
}

fn send(address: SocketAddr, request: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(request.as_bytes())?;
    let mut said = String::new();
    stream.read_to_string(&mut said)?;
    Ok(said)
}

/// Returns the files of logins, without the locks.
fn files(world: &World) -> Vec<PathBuf> {
    let files = fs::read_dir(world.path(LOGINS)).into_iter().flatten().map(|it| it.unwrap().path());
    files.filter(|it| it.extension().is_none_or(|it| it != "lock")).collect()
}

/// Makes the token of the only login expire now.
fn expire(world: &World) {
    let [file] = &files(world)[..] else { panic!("not one login") };
    let mut login: Json = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    login["expires_at"] = 1.into();
    fs::write(file, login.to_string()).unwrap();
}

fn servers(world: &World) -> Ran {
    let ran = world.run(["servers"]);
    ran.assert_safe();
    ran
}

fn assert_needs_login(ran: &Ran) {
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("run `prowess servers login docs`"), "{}", ran.stderr);
}

fn assert_lists(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout().contains("mcp__docs__hello"), "{}", ran.stdout());
}

mod a_person_logs_in_once {
    use super::*;

    #[test]
    fn a_login_in_a_browser_is_used_by_later_requests() {
        let site = Site::new();
        let world = site.world();
        let before = servers(&world);
        assert_needs_login(&before);
        assert!(before.stderr.contains("the server `docs` cannot be asked: it needs a login"));
        let login = Login::begin(&world, &[]);
        let page = browse(&login.url);
        assert!(page.starts_with("HTTP/1.1 200") && page.contains("close this window"), "{page}");
        let did = login.end();
        assert_eq!(did.code, Some(0), "{}", did.stderr);
        let base = site.listener.url("");
        assert_eq!(did.stdout(), format!("logged in to docs at {base}\n"));

        let [asked] = &site.log("/authorize")[..] else { panic!() };
        assert_eq!(value(asked, "response_type"), "code");
        assert_eq!(value(asked, "code_challenge_method"), "S256");
        assert_eq!(value(asked, "resource"), format!("{base}/mcp"));
        assert_eq!(value(asked, "scope"), "read");
        assert_eq!(value(asked, "client_id"), "client-1");
        assert_eq!(value(asked, "state").len(), 43);
        assert_eq!(value(&site.log("/token")[0], "resource"), format!("{base}/mcp"));

        let after = servers(&world);
        assert_lists(&after);
        assert!(after.stdout().contains(&format!("(logged in at {base})")), "{}", after.stdout());
        let document = world.run(["servers", "--json"]);
        assert_eq!(document.json()["servers"][0]["login"]["issuer"], base);
        for ran in [&before, &did, &after, &document] {
            assert!(!format!("{}{}", ran.stdout(), ran.stderr).contains("-secret-"));
        }
        let [file] = &files(&world)[..] else { panic!() };
        let mode = |it: &PathBuf| fs::metadata(it).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(file), mode(&world.path(LOGINS))), (0o600, 0o700));
        assert!(fs::read_to_string(file).unwrap().contains("refresh-secret-1"));
    }

    #[test]
    fn the_address_that_a_browser_elsewhere_came_to_can_be_pasted() {
        let site = Site::new();
        let world = site.world();
        let mut login = Login::begin(&world, &[]);
        let said = get(&login.url);
        let to = said.lines().find_map(|it| it.strip_prefix("location: ")).unwrap();
        let other = to.replace(&login.state(), "other");
        let stdin = login.child.stdin.as_mut().unwrap();
        write!(stdin, "nonsense\n{other}\n\n{to}\n").unwrap();
        let did = login.end();
        assert_eq!(did.code, Some(0), "{}", did.stderr);
        assert_eq!(did.stderr.matches("does not belong to this login").count(), 2);
        assert_lists(&servers(&world));
    }

    #[test]
    fn a_device_code_is_typed_anywhere() {
        let site = Site::new();
        let world = site.world();
        let login = Login::begin(&world, &["--device"]);
        assert_eq!(login.url, site.listener.url("/activate"));
        let did = login.end();
        assert_eq!(did.code, Some(0), "{}", did.stderr);
        assert!(did.stderr.contains("type the code WDJB-MJHT"), "{}", did.stderr);
        assert!(!did.stderr.contains("device-secret"));
        // The first request was too early.
        assert_eq!(site.log("/token").len(), 2);
        assert_eq!(value(&site.log("/device")[0], "scope"), "read");
        assert_lists(&servers(&world));

        site.set(AUTHORITY, "device_authorization_endpoint", Json::Null);
        let did = world.run(["servers", "login", "docs", "--device"]);
        assert_eq!(did.code, Some(2));
        assert!(did.stderr.contains("offers no login by device code"), "{}", did.stderr);
        assert!(did.stderr.contains("leave out `--device`"), "{}", did.stderr);
    }

    #[test]
    fn a_client_that_was_registered_by_hand_is_used() {
        let site = Site::new();
        let base = site.listener.url("");
        let free = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
        let back = format!("http://localhost:{}/back", free.port());
        let oauth = |issuer: &str| {
            format!(
                "oauth = {{ client_id = \"me\", client_secret = \"${{OUR_SECRET}}\", issuer = \"{issuer}\", redirect_uri = \"{back}\", scopes = [\"write\", \"all\"] }}\n[policy]\nenvironment = [\"OUR_SECRET\"]\n"
            )
        };
        let settings = |issuer: &str| {
            site.settings(&oauth(issuer)).replace("policy.hosts = [\"127.0.0.1\"]\n", "")
                + "hosts = [\"127.0.0.1\"]\n"
        };
        let world = World::new().file(SETTINGS, settings(&base));
        let did = {
            let mut command = world.command(["servers", "login", "docs"]);
            command.env("OUR_SECRET", "xyz").stdin(Stdio::null());
            let login = Login::of(command);
            browse(&login.url);
            login.end()
        };
        assert_eq!(did.code, Some(0), "{}", did.stderr);
        assert!(site.log("/register").is_empty());
        let asked = &site.log("/authorize")[0];
        assert_eq!(value(asked, "client_id"), "me");
        assert_eq!(value(asked, "redirect_uri"), back);
        assert_eq!(value(asked, "scope"), "write all");
        // `me:xyz`; the server reads heads in lower case.
        assert_eq!(value(&site.log("/token")[0], "authorization"), "basic bwu6ehl6");

        world.write(SETTINGS, settings("http://127.0.0.1:1"));
        let asked = site.says().log.len();
        let did = world.run_with_env(&[("OUR_SECRET", "xyz")], &["servers", "login", "docs"]);
        assert_eq!(did.code, Some(2));
        assert!(
            did.stderr.contains("allow the authorization server `http://127.0.0.1:1` alone"),
            "{}",
            did.stderr
        );
        assert_eq!(site.says().log.len(), asked);

        for (wrong, why) in [
            ("oauth = 1\n", "`oauth` is not a table"),
            ("oauth = { secret = \"x\" }\n", "`oauth` has no key `secret`"),
            ("oauth = { client_id = 1 }\n", "`oauth.client_id` is not a text"),
            ("oauth = { scopes = [\"a b\"] }\n", "`oauth.scopes` is not a list of scopes"),
            ("oauth = { client_secret = \"x\" }\n", "`oauth.client_secret` needs a `client_id`"),
            ("oauth = { client_id = \"x\", client_secret = \"x\" }\n", "needs the `issuer`"),
        ] {
            world.write(SETTINGS, site.settings(wrong));
            let did = world.run(["servers"]);
            assert_eq!(did.code, Some(2), "{wrong}");
            assert!(
                did.stderr.contains(why) && did.stderr.contains("prowess.toml"),
                "{}",
                did.stderr
            );
        }
    }

    #[test]
    fn a_logout_forgets_the_token_and_has_it_revoked() {
        let site = Site::new();
        let world = site.logged_in();
        let did = world.run(["servers", "logout", "docs"]);
        assert_eq!((did.code, did.stdout()), (Some(0), "logged out of docs\n"));
        assert_eq!(value(&site.log("/revoke")[0], "token"), "refresh-secret-1");
        assert!(files(&world).is_empty());
        site.says().tokens.clear();
        assert_needs_login(&servers(&world));
        assert!(site.says().tokens.iter().all(|it| it == "none"));
        let again = world.run(["servers", "logout", "docs"]);
        assert_eq!((again.code, again.stdout()), (Some(0), ""));
        assert!(again.stderr.contains("not logged in to `docs`"), "{}", again.stderr);
    }

    #[test]
    fn metadata_are_found_wherever_the_specification_has_them() {
        const ROOT: &str = "/.well-known/oauth-protected-resource";
        for place in ["/elsewhere", RESOURCE, ROOT, ""] {
            let site = Site::new();
            let base = site.listener.url("");
            let mut says = site.says();
            says.challenge = match place {
                "/elsewhere" => format!("Basic, Bearer resource_metadata={base}{place}"),
                _ => "Bearer".to_owned(),
            };
            match place {
                "" => drop(says.documents.remove(0)),
                place => says.documents[0].0 = place.to_owned(),
            }
            drop(says);
            site.logged_in();
        }
        for place in [
            "/.well-known/oauth-authorization-server/tenant",
            "/.well-known/openid-configuration/tenant",
            "/tenant/.well-known/openid-configuration",
        ] {
            let site = Site::new();
            let issuer = site.listener.url("/tenant");
            site.set(RESOURCE, "authorization_servers", json!([issuer]));
            site.set(AUTHORITY, "issuer", json!(issuer));
            let mut says = site.says();
            says.documents[1].0 = place.to_owned();
            says.comes_back = format!("&iss={}", encoded(&issuer));
            drop(says);
            site.logged_in();
        }
        let site = Site::new();
        site.says().documents[0].0 = ROOT.to_owned();
        site.says().documents[1].0 = "/.well-known/openid-configuration".to_owned();
        site.says().challenge = "Bearer".to_owned();
        for path in [RESOURCE, AUTHORITY] {
            site.instead(path, answer("200 OK", "content-type: text/html\r\n", "<html></html>"));
        }
        site.logged_in();
    }

    #[test]
    fn a_server_that_a_project_sets_is_logged_in_to_once_it_was_approved() {
        let site = Site::new();
        let server = format!("[servers.docs]\nurl = \"{}\"\n", site.listener.url("/mcp"));
        let world = World::new()
            .file(SETTINGS, "policy.hosts = [\"127.0.0.1\"]\n")
            .file("prowess.toml", server);
        let did = no_login(&world);
        assert!(did.stderr.contains("approval is needed"), "{}", did.stderr);
        assert_eq!(site.listener.connections(), 0);
        let did = log_in_with(&world, &["--yes"]);
        assert_eq!(did.code, Some(0), "{}", did.stderr);
        assert_lists(&servers(&world));
    }

    #[test]
    fn where_there_is_no_login_that_is_said() {
        let site = Site::new();
        site.says().documents.clear();
        site.says().challenge = "Basic realm=\"x\"".to_owned();
        let world = site.world();
        let did = no_login(&world);
        assert!(did.stderr.contains("it offers no login by OAuth"), "{}", did.stderr);
        site.says().is_open = true;
        let did = no_login(&world);
        assert!(did.stderr.contains("it answers without a login"), "{}", did.stderr);

        let header = "headers = { Authorization = \"Bearer x\" }\n";
        for (settings, why) in [
            (site.settings(header), "have an `authorization` header"),
            ("[servers.docs]\ncommand = \"cat\"\n".to_owned(), "it is a program"),
            (
                "[servers.docs]\nurl = \"http://example.com/mcp\"\n".to_owned(),
                "its address is not `https:`",
            ),
        ] {
            let asked = site.listener.asked().len();
            let world = World::new().file(SETTINGS, settings);
            let did = no_login(&world);
            assert!(did.stderr.contains(why), "{}", did.stderr);
            assert_eq!(site.listener.asked().len(), asked);
        }
        let did = site.world().run(["servers", "login", "dosc"]);
        assert_eq!(did.code, Some(1));
        assert!(did.stderr.contains("did you mean `docs`?"), "{}", did.stderr);
    }
}

mod a_token_is_renewed_when_it_has_expired {
    use super::*;

    #[test]
    fn two_processes_renew_it_once() {
        let site = Site::new();
        let world = site.logged_in();
        for refresh in ["refresh-secret-1", "refresh-secret-2"] {
            expire(&world);
            let before = site.log("/token").len();
            thread::scope(|scope| {
                let both = [(); 2].map(|()| scope.spawn(|| servers(&world)));
                both.into_iter().for_each(|it| assert_lists(&it.join().unwrap()));
            });
            let asked = site.log("/token").split_off(before);
            assert_eq!(asked.len(), 1, "{asked:?}");
            assert_eq!(value(&asked[0], "refresh_token"), refresh);
            assert_eq!(value(&asked[0], "resource"), site.listener.url("/mcp"));
        }
        let mode = fs::metadata(&files(&world)[0]).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_token_that_the_server_does_not_take_any_more_is_renewed() {
        let site = Site::new();
        let world = site.logged_in();
        site.says().access = Some("revoked".to_owned());
        site.says().tokens.clear();
        assert_lists(&servers(&world));
        assert_eq!(site.says().tokens[..2], ["access-secret-1", "access-secret-2"]);

        // A refused token, however new, is not renewed forever.
        site.instead("/mcp", answer("401 Unauthorized", "www-authenticate: Bearer\r\n", ""));
        let before = site.log("/token").len();
        assert_needs_login(&servers(&world));
        assert!(site.log("/token").len() - before <= 2);
    }

    #[test]
    fn a_refresh_that_fails_leads_to_a_login() {
        let site = Site::new();
        let world = site.logged_in();
        expire(&world);
        site.instead("/token", answer("503 Service Unavailable", "", ""));
        let did = servers(&world);
        assert_eq!(did.code, Some(1));
        assert!(did.stderr.contains("its token cannot be renewed"), "{}", did.stderr);
        assert_eq!(files(&world).len(), 1);

        // The authorization server may have forgotten the client.
        site.says().instead.clear();
        let error = json!({"error": "invalid_client"});
        site.instead("/token", json_answer("401 Unauthorized", &error));
        assert_needs_login(&servers(&world));
        assert_eq!(files(&world).len(), 1);

        site.says().instead.clear();
        site.says().refresh = None;
        let did = servers(&world);
        assert_needs_login(&did);
        assert!(did.stderr.contains("invalid_grant"), "{}", did.stderr);
        assert!(files(&world).is_empty());
        site.says().tokens.clear();
        assert_needs_login(&servers(&world));
        assert!(site.says().tokens.iter().all(|it| it == "none"));
    }

    #[test]
    fn an_agent_uses_the_login_and_asks_nobody() {
        let site = Site::new();
        let call = || Answer::calls([("mcp__docs__hello", json!({}))]);
        let model = ModelServer::start([call(), Answer::text("Done."), Answer::text("Without.")]);
        let world = site.logged_in();
        expire(&world);
        let did = ask(&world, &model, &["--yes", "say hello"]);
        assert_eq!((did.code, did.stdout()), (Some(0), "Done.\n"), "{}", did.stderr);
        assert!(model.requests()[1].body.to_string().contains("Hello from docs."));
        assert!(model.requests().iter().all(|it| !it.body.to_string().contains("-secret-")));

        assert_eq!(world.run(["servers", "logout", "docs"]).code, Some(0));
        let did = ask(&world, &model, &["say hello"]);
        assert_eq!((did.code, did.stdout()), (Some(0), "Without.\n"), "{}", did.stderr);
        assert!(did.stderr.contains("prowess servers login docs"), "{}", did.stderr);
        assert_eq!(site.log("/authorize").len(), 1);
    }

    #[test]
    fn more_permissions_are_asked_for_when_the_server_wants_them() {
        let site = Site::new();
        site.says().scope = Some("write".to_owned());
        let world = site.world();
        let mut login = Login::begin(&world, &[]);
        browse(&login.url);
        login.hear("`docs` needs more permissions: read write");
        let second = login.hear("  http").trim().to_owned();
        browse(&second);
        let did = login.end();
        assert_eq!(did.code, Some(0), "{}", did.stderr);
        assert_eq!(value(&site.log("/authorize")[1], "scope"), "read write");
        assert_lists(&servers(&world));

        site.says().scope = Some("admin';id".to_owned());
        let did = servers(&world);
        assert_eq!(did.code, Some(1));
        assert!(!did.stderr.contains("';id"), "{}", did.stderr);
        site.says().scope = Some("admin".to_owned());
        let did = servers(&world);
        assert!(
            did.stderr.contains("run `prowess servers login docs --scope 'admin'`"),
            "{}",
            did.stderr
        );
        let did = log_in_with(&world, &["--scope", "admin"]);
        assert_eq!(did.code, Some(0), "{}", did.stderr);
        assert_eq!(value(&site.log("/authorize")[2], "scope"), "read admin write");
        assert_lists(&servers(&world));
    }
}

mod nobody_else_gets_a_code_or_a_token {
    use super::*;

    #[test]
    fn strangers_at_the_port_do_not_end_a_login() {
        let site = Site::new();
        let world = site.world();
        let mut login = Login::begin(&world, &[]);
        let (port, state) = (login.port(), login.state());
        let silent = TcpStream::connect(port).unwrap();
        drop(TcpStream::connect(port).unwrap());
        let half = TcpStream::connect(port).unwrap();
        half.shutdown(Shutdown::Write).unwrap();
        let get = |target: &str| {
            send(port, &format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n")).unwrap()
        };
        for target in [
            "/callback?code=evil&state=guess".to_owned(),
            "/callback?code=evil".to_owned(),
            format!("/callback?code=evil&state={state}&state=x"),
            format!("/callback?code=evil&state={}", state.to_lowercase()),
        ] {
            let said = get(&target);
            assert!(said.starts_with("HTTP/1.1 400"), "{target}: {said}");
            assert!(!said.contains(&state), "{said}");
            login.hear("warning: ignored an answer that does not belong to this login");
        }
        assert!(get(&format!("/?code=evil&state={state}")).starts_with("HTTP/1.1 404"));
        let post = format!("POST /callback?code=evil&state={state} HTTP/1.1\r\nhost: x\r\n\r\n");
        assert!(send(port, &post).unwrap().starts_with("HTTP/1.1 404"));
        let _ = send(port, "nonsense\r\n\r\n");
        let _ = send(port, &format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000)));
        assert!(site.log("/token").is_empty());
        browse(&login.url);
        let did = login.end();
        assert_eq!(did.code, Some(0), "{}", did.stderr);
        assert_eq!(site.log("/token").len(), 1);
        assert!(TcpStream::connect(port).is_err());
        drop(silent);
    }

    #[test]
    fn an_answer_in_the_name_of_another_authorization_server_is_refused() {
        for (comes_back, why) in [
            ("&iss=https%3A%2F%2Fevil.example", "not of `https://evil.example`"),
            (
                "&iss=https%3A%2F%2Fevil.example&error=access_denied",
                "not of `https://evil.example`",
            ),
            ("", "does not say which authorization server"),
        ] {
            let site = Site::new();
            site.says().comes_back = comes_back.to_owned();
            let world = site.world();
            let did = log_in(&world);
            assert_eq!(did.code, Some(2));
            assert!(did.stderr.contains(why), "{}", did.stderr);
            assert!(site.log("/token").is_empty());
            assert!(files(&world).is_empty());
        }
        let site = Site::new();
        let page = format!("http://localhost:{}/authorize", site.listener.port());
        site.set(AUTHORITY, "authorization_endpoint", json!(page));
        let mut login = Login::begin(&site.world(), &[]);
        login.hear("warning: this page is not on the host of the authorization server");
    }

    #[test]
    fn an_authorization_server_without_pkce_is_refused() {
        for methods in [Json::Null, json!([]), json!(["plain"]), json!("S256")] {
            let site = Site::new();
            site.set(AUTHORITY, "code_challenge_methods_supported", methods);
            let did = no_login(&site.world());
            assert!(did.stderr.contains("does not offer PKCE with S256"), "{}", did.stderr);
            assert!(site.log("/register").is_empty());
        }
    }

    #[test]
    fn metadata_that_lead_elsewhere_are_refused() {
        let other = Listener::saying(answer("200 OK", "", "{}"));
        let private = "http://10.0.0.1/";
        let listed = format!("http://localhost:{}/", other.port());
        for (path, key, value, why) in [
            (RESOURCE, "resource", json!("https://evil.example/mcp"), "describe another server"),
            (RESOURCE, "resource", json!(other.url("/mcp")), "describe another server"),
            (RESOURCE, "resource", Json::Null, "it has no `resource`"),
            (RESOURCE, "authorization_servers", json!([]), "it names no authorization server"),
            (RESOURCE, "authorization_servers", json!([private]), "is not `https:`"),
            (RESOURCE, "authorization_servers", json!(["https://10.0.0.1"]), "not allowed"),
            (RESOURCE, "authorization_servers", json!(["https://169.254.169.254"]), "not allowed"),
            (RESOURCE, "authorization_servers", json!([listed]), "not allowed"),
            (RESOURCE, "authorization_servers", json!(["file:///etc/passwd"]), "is not `https:`"),
            (AUTHORITY, "issuer", json!("https://evil.example"), "not of `https://evil.example`"),
            (AUTHORITY, "issuer", Json::Null, "it has no `issuer`"),
            (AUTHORITY, "token_endpoint", json!(private), "the token endpoint is not `https:`"),
            (
                AUTHORITY,
                "token_endpoint",
                json!("https://u:p@evil.example/"),
                "a user name or password",
            ),
            (AUTHORITY, "token_endpoint", Json::Null, "it has no `token_endpoint`"),
            (AUTHORITY, "authorization_endpoint", json!("javascript:alert(1)"), "is not `https:`"),
            (AUTHORITY, "authorization_endpoint", json!("http://evil.example/"), "is not `https:`"),
            (AUTHORITY, "registration_endpoint", json!("https://192.168.0.1/"), "not allowed"),
        ] {
            let site = Site::new();
            site.set(path, key, value.clone());
            let did = no_login(&site.world());
            assert!(did.stderr.contains(why), "{value}: {}", did.stderr);
        }
        let site = Site::new();
        site.says().challenge = format!("Bearer resource_metadata=\"{listed}\"");
        let did = no_login(&site.world());
        assert!(did.stderr.contains("not allowed"), "{}", did.stderr);
        // The token endpoint is requested only after the browser.
        let site = Site::new();
        site.set(AUTHORITY, "token_endpoint", json!("https://10.0.0.1/token"));
        let did = log_in(&site.world());
        assert_eq!(did.code, Some(2));
        assert!(did.stderr.contains("not allowed"), "{}", did.stderr);
        assert_eq!(other.connections(), 0);
    }

    #[test]
    fn a_redirect_takes_no_token_along() {
        let other = Listener::saying(answer("200 OK", "", "{}"));
        let to = |path: &str| redirect(307, &other.url(path));
        for path in ["/register", AUTHORITY, RESOURCE] {
            let site = Site::new();
            site.instead(path, to(path));
            no_login(&site.world());
        }
        let site = Site::new();
        site.instead("/token", to("/token"));
        let world = site.world();
        let did = log_in(&world);
        assert_eq!(did.code, Some(2));
        assert!(did.stderr.contains("the status 307"), "{}", did.stderr);

        let site = Site::new();
        let world = site.logged_in();
        site.instead("/mcp", to("/mcp"));
        assert_eq!(servers(&world).code, Some(1));
        site.says().instead.clear();
        expire(&world);
        site.instead("/token", to("/token"));
        assert_eq!(servers(&world).code, Some(1));
        assert_eq!(other.connections(), 0);
    }

    #[test]
    fn what_changes_after_a_login_leads_no_token_elsewhere() {
        let other = Site::new();
        let site = Site::new();
        let world = site.logged_in();
        let elsewhere = other.listener.url("");
        site.set(RESOURCE, "authorization_servers", json!([elsewhere]));
        site.set(AUTHORITY, "token_endpoint", json!(other.listener.url("/token")));
        expire(&world);
        assert_lists(&servers(&world));
        assert_eq!(value(site.log("/token").last().unwrap(), "refresh_token"), "refresh-secret-1");
        assert!(other.listener.asked().is_empty());

        world.write(SETTINGS, other.settings(""));
        assert_needs_login(&servers(&world));
        assert_eq!(other.says().tokens.iter().filter(|it| *it != "none").count(), 0);
        world.write(SETTINGS, site.settings(&format!("oauth.issuer = \"{elsewhere}\"\n")));
        site.says().tokens.clear();
        assert_needs_login(&servers(&world));
        assert!(site.says().tokens.iter().all(|it| it == "none"));
        world.write(SETTINGS, site.settings("").replace("servers.docs", "servers.work"));
        site.says().tokens.clear();
        assert_eq!(servers(&world).code, Some(1));
        assert!(site.says().tokens.iter().all(|it| it == "none"));
    }

    #[test]
    fn answers_without_measure_or_sense_fail() {
        let long = || {
            answer(
                "200 OK",
                "content-type: application/json\r\n",
                &format!("\"{}\"", "x".repeat(1 << 20)),
            )
        };
        let plain = |text: &str| answer("200 OK", "content-type: application/json\r\n", text);
        for path in [RESOURCE, AUTHORITY, "/register"] {
            for (said, why) in [
                (long(), "longer than"),
                (plain("<html>"), "it is not a JSON object"),
                (plain("[]"), "it is not a JSON object"),
                (plain("{\"issuer\": \"a\", \"issuer\": \"b\"}"), "it is not a JSON object"),
                (plain("{}"), "it has no `"),
                (answer("500 Oops", "", ""), "has the status 500"),
            ] {
                let site = Site::new();
                site.instead(path, said);
                let did = no_login(&site.world());
                assert!(did.stderr.contains(why), "{path} {why}: {}", did.stderr);
            }
        }
        let token = |more: Json| {
            let mut token = json!({"access_token": "access-secret-9", "token_type": "bearer"});
            token.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json_answer("200 OK", &token)
        };
        let error = json!({"error": "server\u{1b}[31m_error", "error_description": "\u{1b}]0;pwned\u{7}\u{202e}no\nway"});
        for (said, why) in [
            (long(), "longer than"),
            (plain("access-secret-9"), "it is not a JSON object"),
            (plain("{}"), "it has no `access_token`"),
            (token(json!({"token_type": "mac"})), "it is not a Bearer token"),
            (token(json!({"token_type": null})), "it has no `token_type`"),
            (
                token(json!({"access_token": "a\r\nb: access-secret-9"})),
                "characters that a header cannot have",
            ),
            (token(json!({"expires_in": -1})), "`expires_in` is not a number"),
            (json_answer("400 Bad Request", &error), "server[31m_error: ]0;pwnedno way"),
            (answer("400 Bad Request", "", "access-secret-9"), "has the status 400"),
        ] {
            let site = Site::new();
            site.instead("/token", said);
            let world = site.world();
            let did = log_in(&world);
            assert_eq!(did.code, Some(2), "{why}");
            did.assert_safe();
            assert!(did.stderr.contains(why), "{why}: {}", did.stderr);
            assert!(!did.stderr.contains("access-secret-9"), "{}", did.stderr);
            assert!(files(&world).is_empty());
        }
        // The redirect of the browser is checked too.
        let site = Site::new();
        let issuer = site.says().comes_back.clone();
        site.says().comes_back =
            format!("{issuer}&error=x%1b%5b31m&error_description=%1b%5d0%3bpwned%07");
        let did = log_in(&site.world());
        assert_eq!(did.code, Some(2));
        did.assert_safe();
        assert!(did.stderr.contains("says: x[31m: ]0;pwned"), "{}", did.stderr);
    }

    #[test]
    fn a_file_that_others_could_read_or_plant_is_not_used() {
        let site = Site::new();
        let world = site.logged_in();
        let file = files(&world).remove(0);
        let chmod = |path: &PathBuf, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let unused = |why: &str| {
            site.says().tokens.clear();
            let did = servers(&world);
            assert_eq!(did.code, Some(1), "{why}");
            assert!(did.stderr.contains(why), "{why}: {}", did.stderr);
            assert!(
                did.stderr.contains("`prowess servers logout docs` removes it"),
                "{}",
                did.stderr
            );
            assert!(site.says().tokens.is_empty());
        };
        chmod(&file, 0o644);
        unused("others than you can read or change it");
        chmod(&file, 0o600);
        chmod(&world.path(LOGINS), 0o755);
        assert_lists(&servers(&world));
        let mode = fs::metadata(world.path(LOGINS)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);

        let aside = world.path("aside");
        fs::rename(&file, &aside).unwrap();
        std::os::unix::fs::symlink(&aside, &file).unwrap();
        unused("it is a link");
        // The target of a link is neither read nor written.
        let before = fs::read(&aside).unwrap();
        assert_eq!(log_in(&world).code, Some(0));
        assert_eq!(fs::read(&aside).unwrap(), before);
        assert_lists(&servers(&world));

        fs::write(&file, "{}").unwrap();
        unused("it is not a login");
        assert_eq!(world.run(["servers", "logout", "docs"]).code, Some(0));
        assert_needs_login(&servers(&world));

        let folder = world.path(LOGINS);
        fs::rename(&folder, world.path("elsewhere")).unwrap();
        std::os::unix::fs::symlink(world.path("elsewhere"), &folder).unwrap();
        unused("its directory is a link, or none");
    }
}

mod real_servers_are_logged_in_to {
    use super::*;

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npm and a network")]
    fn a_login_at_oidc_provider_opens_a_server_on_the_official_sdk() {
        let server = Guarded::new();
        let url = &server.url;
        let settings = format!("policy.hosts = [\"127.0.0.1\"]\n[servers.docs]\nurl = \"{url}\"\n");
        let world = World::new().file(SETTINGS, settings);
        let lists = || {
            let ran = servers(&world);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            assert!(ran.stdout().contains("mcp__docs__whoami"), "{}", ran.stdout());
        };
        for is_device in [false, true] {
            assert_needs_login(&servers(&world));
            let did = match is_device {
                false => {
                    let login = Login::begin(&world, &[]);
                    let page = person(&[&login.url]);
                    assert!(page.starts_with("200 You can close this window"), "{page}");
                    login.end()
                }
                true => {
                    let mut login = Login::begin(&world, &["--device"]);
                    let line = login.hear("and type the code ");
                    let code = line.split_whitespace().nth(4).unwrap().trim_end_matches(',');
                    person(&[&login.url, code]);
                    login.end()
                }
            };
            assert_eq!(did.code, Some(0), "{}", did.stderr);
            lists();
            let token = || {
                let login = fs::read(&files(&world)[0]).unwrap();
                serde_json::from_slice::<Json>(&login).unwrap()["access_token"].clone()
            };
            let before = token();
            expire(&world);
            lists();
            assert_ne!(token(), before);
            assert_eq!(world.run(["servers", "logout", "docs"]).stdout(), "logged out of docs\n");
        }
        assert_needs_login(&servers(&world));
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs npm and a network")]
    fn the_conformance_suite_finds_no_fault_with_logins() {
        // Calls a tool that needs another scope, and returns the answer.
        let model = ModelServer::answering(|request| {
            match request.body.to_string().contains("tool_call_id") {
                true => Answer::text("Called."),
                false => Answer::calls([("mcp__suite__test-tool", json!({}))]),
            }
        });
        let world = World::new();
        world.write("host.sh", HOST);
        let clients = CLIENTS.display();
        let host = world.path("host.sh");
        let scenarios = Mutex::new(SCENARIOS.iter());
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        let next = scenarios.lock().unwrap().next();
                        let Some(scenario) = next else { break };
                        let home = world.path(format!("homes/{scenario}"));
                        fs::create_dir_all(&home).unwrap();
                        let mut command = Command::new("timeout");
                        command.arg("120").arg(node()).current_dir(&*CLIENTS);
                        command.args([SUITE, "client", "--scenario", &format!("auth/{scenario}")]);
                        command.args(["--command", &format!("sh {}", host.display())]);
                        command.env("HOME", home).env("MODEL", model.url());
                        command.env("PROWESS", program()).env("NODE", node());
                        command.env("PERSON", format!("{clients}/person.mjs"));
                        let output = command.output().unwrap();
                        let said = String::from_utf8_lossy(&output.stderr);
                        let is_well = said.contains(", 0 failed, 0 warnings");
                        assert!(is_well && !said.contains("Passed: 0/"), "{scenario}: {said}");
                    }
                });
            }
        });
    }

    const SUITE: &str = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
    const SCENARIOS: &[&str] = &[
        "2025-03-26-oauth-metadata-backcompat",
        "authorization-server-migration",
        "basic-cimd",
        "iss-normalized",
        "iss-not-advertised",
        "iss-supported",
        "iss-supported-missing",
        "iss-unexpected",
        "iss-wrong-issuer",
        "metadata-default",
        "metadata-issuer-mismatch",
        "metadata-var1",
        "metadata-var2",
        "metadata-var3",
        "offline-access-not-supported",
        "offline-access-scope",
        "pre-registration",
        "resource-mismatch",
        "scope-from-scopes-supported",
        "scope-from-www-authenticate",
        "scope-omitted-when-undefined",
        "scope-retry-limit",
        "scope-step-up",
        "token-endpoint-auth-basic",
        "token-endpoint-auth-none",
        "token-endpoint-auth-post",
    ];
    /// Logs in as a person with a browser does, uses the server, and logs in again if necessary.
    const HOST: &str = r#"cd "$HOME"
mkdir -p .config/prowess
config=.config/prowess/prowess.toml
printf 'policy.hosts = ["localhost", "127.0.0.1", "::1"]\n[servers.suite]\nurl = "%s"\n' "$1" > "$config"
field() { printf '%s' "$MCP_CONFORMANCE_CONTEXT" | sed "s/.*\"$1\":\"\([^\"]*\)\".*/\1/"; }
case "$MCP_CONFORMANCE_SCENARIO" in
*/pre-registration)
    printf 'oauth = { client_id = "%s", client_secret = "%s", issuer = "%s" }\n' \
        "$(field client_id)" "$(field client_secret)" "$(field issuer)" >> "$config" ;;
*/basic-cimd)
    printf 'oauth.client_id = "https://conformance-test.local/client-metadata.json"\n' >> "$config" ;;
esac
login() {
    : > said
    "$PROWESS" servers login suite "$@" 2> said < /dev/null &
    opened=0
    while kill -0 $! 2> /dev/null; do
        urls=$(grep -c '^  http' said)
        if [ "$urls" -gt "$opened" ]; then
            opened=$urls
            "$NODE" "$PERSON" "$(grep '^  http' said | tail -n 1 | tr -d ' ')"
        else
            sleep 0.05
        fi
    done
    wait $!
}
login || exit 1
"$PROWESS" servers || { login && "$PROWESS" servers || exit 1; }
case "$MCP_CONFORMANCE_SCENARIO" in
*/scope-step-up)
    export OPENAI_API_KEY=none
    "$PROWESS" ask --yes --base-url "$MODEL" --model m 'call it' < /dev/null
    login --scope mcp:write
    "$PROWESS" ask --yes --base-url "$MODEL" --model m 'call it' < /dev/null ;;
esac
"#;

    /// A server guarded by `oidc-provider`. Ended when dropped.
    struct Guarded {
        child: Child,
        url: String,
    }

    impl Guarded {
        fn new() -> Self {
            let mut command = Command::new(node());
            command.arg(CLIENTS.join("oidc.mjs")).arg("3600");
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            let mut stdout = BufReader::new(child.stdout.take().unwrap());
            let mut url = String::new();
            stdout.read_line(&mut url).unwrap();
            // It goes on printing, and would block if nobody read.
            thread::spawn(move || io::copy(&mut stdout, &mut io::sink()));
            Self { child, url: url.trim().to_owned() }
        }
    }

    impl Drop for Guarded {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    /// Runs the script of a person with a browser, and returns its output.
    fn person(arguments: &[&str]) -> String {
        let mut command = Command::new("timeout");
        command.arg("60").arg(node()).arg(CLIENTS.join("person.mjs")).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}
