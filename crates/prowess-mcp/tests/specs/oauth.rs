//! Logging in to servers: authorization servers that misbehave, strangers, and tokens that expire.

use std::{
    fs,
    net::{Shutdown, SocketAddr, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
    thread::{self, JoinHandle},
};

use prowess_mcp::{
    client::{LoginPrompt, LoginRequest, LoginState, Logins, McpLauncher},
    config::{ServerSetting, Transport},
};
use prowess_runtime::approval::ApproveAll;
use prowess_testing::{
    login_site::{
        AUTHORITY, LOGINS, RESOURCE, Site, browse, encoded, expire, files, json_answer, pairs,
        send, value,
    },
    skill_servers::{local, mcp_launcher, message},
};
use serde_json::{Value as Json, json};
use tokio::runtime::Runtime;

use crate::{
    server::{Server as Listener, answer, redirect},
    world::World,
};

/// Somebody who has set a server.
struct User {
    world: World,
    setting: ServerSetting,
}

/// A pending login.
struct Login {
    /// The URL to open.
    url: String,
    /// Whether that is on another host than the authorization server.
    is_elsewhere: bool,
    prompts: Receiver<Prompt>,
    thread: JoinHandle<Result<LoginState, String>>,
}

/// An instruction to the person who logs in.
#[derive(Debug, PartialEq, Eq)]
enum Prompt {
    Open { url: String, is_elsewhere: bool },
    Stranger,
    Other,
}

impl User {
    fn of(site: &Site) -> Self {
        Self { world: World::new(), setting: site.setting() }
    }

    fn logged_in(site: &Site) -> Self {
        let user = Self::of(site);
        user.log_in().unwrap();
        user
    }

    fn launcher(&self) -> McpLauncher {
        let logins = Logins::at(self.world.path(LOGINS));
        mcp_launcher(local(), Arc::new(ApproveAll)).with_logins(logins)
    }

    /// Starts a login, whose prompts are sent.
    fn start(&self) -> (Receiver<Prompt>, JoinHandle<Result<LoginState, String>>) {
        let (launcher, setting) = (self.launcher(), self.setting.clone());
        let (sender, prompts) = channel();
        let log_in = move || {
            let prompt = |it: LoginPrompt<'_>| {
                let prompt = match it {
                    LoginPrompt::Browser { url, is_elsewhere, .. } => {
                        Prompt::Open { url: url.to_owned(), is_elsewhere }
                    }
                    LoginPrompt::Stranger => Prompt::Stranger,
                    _ => Prompt::Other,
                };
                // Nobody may listen any more.
                let _ = sender.send(prompt);
            };
            let (scopes, pasted) = (Vec::new(), None);
            let request = LoginRequest { is_device: false, scopes, pasted, prompt: &prompt };
            let state = Runtime::new().unwrap().block_on(launcher.login(&setting, request));
            state.map_err(|it| message(&it))
        };
        (prompts, thread::spawn(log_in))
    }

    /// Logs in as a person does.
    fn log_in(&self) -> Result<LoginState, String> {
        let login = Login::begin(self);
        browse(&login.url);
        login.end()
    }

    /// Returns why a login fails before there is a URL.
    fn no_login(&self) -> String {
        let (prompts, thread) = self.start();
        let said = thread.join().unwrap().unwrap_err();
        assert!(!said.contains(char::is_control), "{said:?}");
        assert!(prompts.recv().is_err(), "there is a URL: {said}");
        assert!(!self.world.path(LOGINS).exists() || files(&self.world).is_empty());
        said
    }

    fn log_out(&self) {
        assert!(Runtime::new().unwrap().block_on(self.launcher().logout(&self.setting)).is_ok());
    }

    /// Connects to the server, and returns its tools.
    fn tools(&self) -> Result<Vec<String>, String> {
        let server = Runtime::new().unwrap().block_on(self.launcher().connect(&self.setting));
        let tools = server.map_err(|it| message(&it))?.tools();
        Ok(tools.iter().map(|it| it.name().to_owned()).collect())
    }

    fn assert_lists(&self) {
        assert_eq!(self.tools(), Ok(vec!["mcp__docs__hello".to_owned()]));
    }

    fn assert_needs_login(&self) -> String {
        let said = self.tools().unwrap_err();
        assert!(said.contains("run `prowess servers login docs`"), "{said}");
        said
    }
}

impl Login {
    /// Begins a login and waits until there is a URL to open.
    fn begin(user: &User) -> Self {
        let (prompts, thread) = user.start();
        match prompts.recv() {
            Ok(Prompt::Open { url, is_elsewhere }) => Self { url, is_elsewhere, prompts, thread },
            other => panic!("there is no URL: {other:?}"),
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
    fn end(self) -> Result<LoginState, String> {
        self.thread.join().unwrap()
    }
}

mod a_person_logs_in_once {
    use super::*;

    #[test]
    fn metadata_are_found_wherever_the_specification_has_them() {
        const ROOT: &str = "/.well-known/oauth-protected-resource";
        for place in ["/elsewhere", RESOURCE, ROOT, ""] {
            let site = Site::start();
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
            User::logged_in(&site);
        }
        for place in [
            "/.well-known/oauth-authorization-server/tenant",
            "/.well-known/openid-configuration/tenant",
            "/tenant/.well-known/openid-configuration",
        ] {
            let site = Site::start();
            let issuer = site.listener.url("/tenant");
            site.set(RESOURCE, "authorization_servers", json!([issuer]));
            site.set(AUTHORITY, "issuer", json!(issuer));
            let mut says = site.says();
            says.documents[1].0 = place.to_owned();
            says.comes_back = format!("&iss={}", encoded(&issuer));
            drop(says);
            User::logged_in(&site);
        }
        let site = Site::start();
        site.says().documents[0].0 = ROOT.to_owned();
        site.says().documents[1].0 = "/.well-known/openid-configuration".to_owned();
        site.says().challenge = "Bearer".to_owned();
        for path in [RESOURCE, AUTHORITY] {
            site.instead(path, answer("200 OK", "content-type: text/html\r\n", "<html></html>"));
        }
        User::logged_in(&site);
    }
}

mod a_token_is_renewed_when_it_has_expired {
    use super::*;

    #[test]
    fn a_token_that_the_server_does_not_take_any_more_is_renewed() {
        let site = Site::start();
        let user = User::logged_in(&site);
        site.says().access = Some("revoked".to_owned());
        site.says().tokens.clear();
        user.assert_lists();
        assert_eq!(site.says().tokens[..2], ["access-secret-1", "access-secret-2"]);

        // A refused token, however new, is not renewed forever.
        site.instead("/mcp", answer("401 Unauthorized", "www-authenticate: Bearer\r\n", ""));
        let before = site.log("/token").len();
        user.assert_needs_login();
        assert!(site.log("/token").len() - before <= 2);
    }

    #[test]
    fn a_refresh_that_fails_leads_to_a_login() {
        let site = Site::start();
        let user = User::logged_in(&site);
        expire(&user.world);
        site.instead("/token", answer("503 Service Unavailable", "", ""));
        let said = user.tools().unwrap_err();
        assert!(said.contains("its token cannot be renewed"), "{said}");
        assert_eq!(files(&user.world).len(), 1);

        // The authorization server may have forgotten the client.
        site.says().instead.clear();
        let error = json!({"error": "invalid_client"});
        site.instead("/token", json_answer("401 Unauthorized", &error));
        user.assert_needs_login();
        assert_eq!(files(&user.world).len(), 1);

        site.says().instead.clear();
        site.says().refresh = None;
        let said = user.assert_needs_login();
        assert!(said.contains("invalid_grant"), "{said}");
        assert!(files(&user.world).is_empty());
        site.says().tokens.clear();
        user.assert_needs_login();
        assert!(site.says().tokens.iter().all(|it| it == "none"));
    }
}

mod nobody_else_gets_a_code_or_a_token {
    use super::*;

    #[test]
    fn strangers_at_the_port_do_not_end_a_login() {
        let site = Site::start();
        let user = User::of(&site);
        let login = Login::begin(&user);
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
            assert_eq!(login.prompts.recv(), Ok(Prompt::Stranger));
        }
        assert!(get(&format!("/?code=evil&state={state}")).starts_with("HTTP/1.1 404"));
        let post = format!("POST /callback?code=evil&state={state} HTTP/1.1\r\nhost: x\r\n\r\n");
        assert!(send(port, &post).unwrap().starts_with("HTTP/1.1 404"));
        let _ = send(port, "nonsense\r\n\r\n");
        let _ = send(port, &format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000)));
        assert!(site.log("/token").is_empty());
        browse(&login.url);
        login.end().unwrap();
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
            let site = Site::start();
            site.says().comes_back = comes_back.to_owned();
            let user = User::of(&site);
            let said = user.log_in().unwrap_err();
            assert!(said.contains(why), "{said}");
            assert!(site.log("/token").is_empty());
            assert!(files(&user.world).is_empty());
        }
        let site = Site::start();
        let page = format!("http://localhost:{}/authorize", site.listener.port());
        site.set(AUTHORITY, "authorization_endpoint", json!(page));
        let login = Login::begin(&User::of(&site));
        assert!(login.is_elsewhere, "the person is told before anybody goes there");
    }

    #[test]
    fn an_authorization_server_without_pkce_is_refused() {
        for methods in [Json::Null, json!([]), json!(["plain"]), json!("S256")] {
            let site = Site::start();
            site.set(AUTHORITY, "code_challenge_methods_supported", methods);
            let said = User::of(&site).no_login();
            assert!(said.contains("does not offer PKCE with S256"), "{said}");
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
            let site = Site::start();
            site.set(path, key, value.clone());
            let said = User::of(&site).no_login();
            assert!(said.contains(why), "{value}: {said}");
        }
        let site = Site::start();
        site.says().challenge = format!("Bearer resource_metadata=\"{listed}\"");
        let said = User::of(&site).no_login();
        assert!(said.contains("not allowed"), "{said}");
        // The token endpoint is requested only after the browser.
        let site = Site::start();
        site.set(AUTHORITY, "token_endpoint", json!("https://10.0.0.1/token"));
        let said = User::of(&site).log_in().unwrap_err();
        assert!(said.contains("not allowed"), "{said}");
        assert_eq!(other.connections(), 0);
    }

    #[test]
    fn a_redirect_takes_no_token_along() {
        let other = Listener::saying(answer("200 OK", "", "{}"));
        let to = |path: &str| redirect(307, &other.url(path));
        for path in ["/register", AUTHORITY, RESOURCE] {
            let site = Site::start();
            site.instead(path, to(path));
            User::of(&site).no_login();
        }
        let site = Site::start();
        site.instead("/token", to("/token"));
        let user = User::of(&site);
        let said = user.log_in().unwrap_err();
        assert!(said.contains("the status 307"), "{said}");

        let site = Site::start();
        let user = User::logged_in(&site);
        site.instead("/mcp", to("/mcp"));
        assert!(user.tools().is_err());
        site.says().instead.clear();
        expire(&user.world);
        site.instead("/token", to("/token"));
        assert!(user.tools().is_err());
        assert_eq!(other.connections(), 0);
    }

    #[test]
    fn what_changes_after_a_login_leads_no_token_elsewhere() {
        let other = Site::start();
        let site = Site::start();
        let user = User::logged_in(&site);
        let elsewhere = other.listener.url("");
        site.set(RESOURCE, "authorization_servers", json!([elsewhere]));
        site.set(AUTHORITY, "token_endpoint", json!(other.listener.url("/token")));
        expire(&user.world);
        user.assert_lists();
        assert_eq!(value(site.log("/token").last().unwrap(), "refresh_token"), "refresh-secret-1");
        assert!(other.listener.asked().is_empty());

        let moved = User { setting: other.setting(), ..user };
        moved.assert_needs_login();
        assert_eq!(other.says().tokens.iter().filter(|it| *it != "none").count(), 0);
        let mut setting = site.setting();
        let Transport::Http(address) = &mut setting.description.transport else { panic!() };
        address.oauth.issuer = Some(elsewhere);
        site.says().tokens.clear();
        let narrowed = User { setting, ..moved };
        narrowed.assert_needs_login();
        assert!(site.says().tokens.iter().all(|it| it == "none"));
        let mut setting = site.setting();
        setting.description.name = "work".to_owned();
        site.says().tokens.clear();
        let renamed = User { setting, ..narrowed };
        assert!(renamed.tools().is_err());
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
                let site = Site::start();
                site.instead(path, said);
                let said = User::of(&site).no_login();
                assert!(said.contains(why), "{path} {why}: {said}");
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
            let site = Site::start();
            site.instead("/token", said);
            let user = User::of(&site);
            let said = user.log_in().unwrap_err();
            assert!(said.contains(why) && !said.contains(char::is_control), "{why}: {said}");
            assert!(!said.contains("access-secret-9"), "{said}");
            assert!(files(&user.world).is_empty());
        }
        // The redirect of the browser is checked too.
        let site = Site::start();
        let issuer = site.says().comes_back.clone();
        site.says().comes_back =
            format!("{issuer}&error=x%1b%5b31m&error_description=%1b%5d0%3bpwned%07");
        let said = User::of(&site).log_in().unwrap_err();
        assert!(said.contains("says: x[31m: ]0;pwned"), "{said}");
    }

    #[test]
    fn a_file_that_others_could_read_or_plant_is_not_used() {
        let site = Site::start();
        let user = User::logged_in(&site);
        let file = files(&user.world).remove(0);
        let chmod = |path: &PathBuf, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let unused = |why: &str| {
            site.says().tokens.clear();
            let said = user.tools().unwrap_err();
            assert!(said.contains(why), "{why}: {said}");
            assert!(said.contains("`prowess servers logout docs` removes it"), "{said}");
            assert!(site.says().tokens.is_empty());
        };
        chmod(&file, 0o644);
        unused("other users can read or change it");
        chmod(&file, 0o600);
        chmod(&user.world.path(LOGINS), 0o755);
        user.assert_lists();
        let mode = fs::metadata(user.world.path(LOGINS)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);

        let aside = user.world.path("aside");
        fs::rename(&file, &aside).unwrap();
        std::os::unix::fs::symlink(&aside, &file).unwrap();
        unused("it is a link");
        // The target of a link is neither read nor written.
        let before = fs::read(&aside).unwrap();
        user.log_in().unwrap();
        assert_eq!(fs::read(&aside).unwrap(), before);
        user.assert_lists();

        fs::write(&file, "{}").unwrap();
        unused("it is not a login");
        user.log_out();
        user.assert_needs_login();

        let folder = user.world.path(LOGINS);
        fs::rename(&folder, user.world.path("elsewhere")).unwrap();
        std::os::unix::fs::symlink(user.world.path("elsewhere"), &folder).unwrap();
        unused("its directory is a link, or not a directory");
    }
}
