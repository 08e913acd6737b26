//! Logging in to servers: a well-behaved one, its misbehaviours, and a real one.

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Mutex,
    thread,
};

use prowess_testing::login_site::{
    AUTHORITY, LOGINS, Site, browse, expire, files, get, pairs, value,
};
use serde_json::{Value as Json, json};

use crate::{
    ask::ask,
    mcp_clients::{CLIENTS, node},
    model_server::{Answer, ModelServer},
    world::{Ran, SETTINGS, World, program, until},
};

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

    /// Returns the result.
    fn end(mut self) -> Ran {
        until("the login has ended", || self.child.try_wait().unwrap().is_some());
        let code = self.child.wait().unwrap().code();
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

/// Returns a world whose user has logged in.
fn logged_in(site: &Site) -> World {
    let world = site.world();
    let ran = log_in(&world);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    world
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
        let site = Site::start();
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
        let site = Site::start();
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
        let site = Site::start();
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
        let site = Site::start();
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
            did.stderr.contains("allow only the authorization server `http://127.0.0.1:1`,"),
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
        let site = Site::start();
        let world = logged_in(&site);
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
    fn a_server_that_a_project_sets_is_logged_in_to_once_it_was_approved() {
        let site = Site::start();
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
        let site = Site::start();
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
        let site = Site::start();
        let world = logged_in(&site);
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
    fn an_agent_uses_the_login_and_asks_nobody() {
        let site = Site::start();
        let call = || Answer::calls([("mcp__docs__hello", json!({}))]);
        let model = ModelServer::start([call(), Answer::text("Done."), Answer::text("Without.")]);
        let world = logged_in(&site);
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
        let site = Site::start();
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
