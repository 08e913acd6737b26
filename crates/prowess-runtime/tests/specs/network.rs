//! Hosts that a script may connect to: at both levels, as the current user and as an unprivileged
//! one.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use prowess_http::Hosts;
use prowess_runtime::{
    Outcome, OutcomeStatus,
    sandbox::{Proxy, ProxyLimits},
};
use prowess_sandbox::{Job, Network, RunLimits, SandboxLevel, ScriptConnection};
use prowess_testing::tools::dropped_when;

use crate::{
    sandbox::{Stage, best, block_on, stages},
    server::{Names, Server, answer, for_ever},
    world::{World, until},
};

/// Creates a proxy for these hosts.
fn proxy(hosts: &[&str]) -> Proxy {
    Proxy::new(Hosts::for_scripts(hosts).unwrap())
}

/// Runs a script whose only network is a proxy.
fn run(stage: Stage, proxy: Proxy, script: &str) -> Outcome {
    stage.run_job(Job { network: Network::Proxy(Arc::new(proxy)), ..stage.job(script) })
}

/// Returns the output of a successful script.
fn output(outcome: &Outcome) -> &str {
    assert_eq!(outcome.status, OutcomeStatus::Ok, "{outcome:#?}");
    &outcome.stdout.as_ref().unwrap().text
}

/// Returns a Python script that can connect to the proxy and send raw bytes.
fn python(text: &str) -> String {
    format!("exec python3 - <<'END'\n{PYTHON}\n{text}\nEND\n")
}

const PYTHON: &str = r#"
import base64, os, socket, ssl, sys
from urllib.parse import urlparse
PROXY = urlparse(os.environ["HTTP_PROXY"])
def connect():
    s = socket.create_connection((PROXY.hostname, PROXY.port), timeout=10)
    return s
def auth():
    if not PROXY.username: return b""
    code = base64.b64encode(f"{PROXY.username}:{PROXY.password}".encode()).decode()
    return f"Proxy-Authorization: Basic {code}\r\n".encode()
def request(first, rest=b"\r\n"):
    return first.encode() + b"\r\n" + auth() + rest
def answers(s):
    said = b""
    try:
        while piece := s.recv(65536): said += piece
    except OSError: pass
    return said.decode("latin-1")
def ask(first, rest=b"\r\n"):
    s = connect(); s.sendall(request(first, b"Connection: close\r\n" + rest))
    return answers(s)
def code(said):
    return said.split(" ")[1] if said else "closed"
def tunnel(target):
    s = connect(); s.sendall(request(f"CONNECT {target} HTTP/1.1"))
    said = b""
    while not said.endswith(b"\r\n\r\n"): said += s.recv(1)
    assert b" 200 " in said, said
    return s
"#;

/// Returns the connections of an outcome: host, port, and whether it was refused.
fn listed(outcome: &Outcome) -> Vec<(&str, u16, bool)> {
    let line = |it: &'_ ScriptConnection| (it.port, it.refused.is_some());
    outcome.network.iter().map(|it| (&*it.host, line(it).0, line(it).1)).collect()
}

mod a_script_reaches_the_hosts_that_it_is_given {
    use super::*;

    #[test]
    fn ordinary_programs_reach_a_host_over_http_and_https() {
        let plain = Server::saying(answer("200 OK", "", "plain words\n"));
        let secure = Server::secure(|_, client| {
            client.write_all(answer("200 OK", "", "secure words\n").as_bytes())
        });
        let ca = include_str!("../../../../fixtures/tls/ca.pem");
        let hosts = [
            format!("plain.test:{}", plain.port()),
            format!("secure.test:{}", secure.port()),
            "127.0.0.1".to_owned(),
        ];
        let hosts: Vec<&str> = hosts.iter().map(|it| &**it).collect();
        let script = format!(
            "printf '%s' '{ca}' > ca.pem\n\
             curl -sS http://plain.test:{plain}/curl\n\
             curl -sS --cacert ca.pem https://secure.test:{secure}/curl\n\
             export SSL_CERT_FILE=$PWD/ca.pem\n\
             python3 -c 'import urllib.request as u\n\
for url in (\"http://plain.test:{plain}/python\", \"https://secure.test:{secure}/python\"):\n    print(u.urlopen(url).read().decode(), end=\"\")'\n",
            plain = plain.port(),
            secure = secure.port(),
        );
        for stage in stages() {
            let proxy = proxy(&hosts).with_resolver(Names::new(&[&["127.0.0.1"]]));
            let outcome = run(stage, proxy, &script);
            let words = "plain words\nsecure words\nplain words\nsecure words\n";
            assert_eq!(output(&outcome), words, "{stage:?} {outcome:#?}");
            let (p, s) =
                (("plain.test", plain.port(), false), ("secure.test", secure.port(), false));
            assert_eq!(listed(&outcome), [p, s, p, s]);
            let counted = |it: &ScriptConnection| it.bytes_sent > 60 && it.bytes_received > 60;
            assert!(outcome.network.iter().all(counted), "{:#?}", outcome.network);
            assert_eq!(outcome.denied, [""; 0], "{stage:?}");
        }
        for asked in plain.asked().iter().chain(&secure.asked()) {
            let port = if asked.head.contains("plain") { plain.port() } else { secure.port() };
            let name = if port == plain.port() { "plain" } else { "secure" };
            assert_eq!(asked.header("host"), Some(&*format!("{name}.test:{port}")));
            for header in ["proxy-authorization", "proxy-connection", "via", "x-forwarded-for"] {
                assert_eq!(asked.header(header), None, "{}", asked.head);
            }
        }
    }

    #[test]
    fn a_request_is_passed_on_whole() {
        let server = Server::new(|asked, client| {
            let body = if asked.line.starts_with("HEAD") { "" } else { &*asked.line };
            let length = asked.line.len();
            let head = format!("HTTP/1.1 201 Made\r\ncontent-length: {length}\r\nx-a: b\r\n\r\n");
            client.write_all(format!("{head}{body}").as_bytes())
        });
        let host = server.address.to_string();
        let url = server.url("/a%20b?q=1");
        let script = format!(
            "curl -sS -d 'a=1' -H 'X-Own: yes' {url}; echo\n\
             curl -sSI {url} | tr -d '\\r' | grep -i -e 201 -e x-a -e content-length\n"
        );
        let outcome = run(best(), proxy(&[&host]), &script);
        let said = output(&outcome).to_lowercase();
        let head = "http/1.1 201 created\nx-a: b\ncontent-length: 15\n";
        let mut lines: Vec<&str> = said.lines().skip(2).collect();
        let mut wanted: Vec<&str> = head.lines().skip(1).collect();
        lines.sort_unstable();
        wanted.sort_unstable();
        assert!(said.starts_with("post /a%20b?q=1\n"), "{said}");
        assert_eq!(lines, wanted, "{said}");
        let posted = &server.asked()[0];
        assert_eq!((&*posted.line, &*posted.body), ("POST /a%20b?q=1", "a=1"));
        assert_eq!(posted.header("x-own"), Some("yes"));
        // The host answers before it has read all of them, which curl may report as an error.
        let chunks = format!("printf 'abc' | curl -sS -T - {url} || true");
        output(&run(best(), proxy(&[&host]), &chunks));
        assert_eq!(server.last().header("transfer-encoding"), Some("chunked"));
    }
}

mod a_script_reaches_nobody_else {
    use super::*;

    #[test]
    fn another_host_port_or_address_is_refused() {
        let server = Server::saying(answer("200 OK", "", "in\n"));
        let port = server.port();
        let names = Names::new(&[&["127.0.0.1"]]);
        let table = [
            (
                "https://evil.test/",
                "evil.test",
                443,
                "host `evil.test` is not allowed; run with `--net evil.test`",
            ),
            (
                "http://evil.test/",
                "evil.test",
                80,
                "host `evil.test` is not allowed; run with `--net evil.test`",
            ),
            ("http://xgood.test/", "xgood.test", 80, "`--net xgood.test`"),
            ("http://good.test.evil.test/", "good.test.evil.test", 80, "is not allowed"),
            ("http://2130706433/", "127.0.0.1", 80, "host `127.0.0.1` is not allowed"),
            ("http://[::1]/", "[::1]", 80, "host `[::1]` is not allowed"),
            (
                "http://good.test:8080/",
                "good.test",
                8080,
                "port 8080 of `good.test` is not allowed; run with `--net good.test:8080`",
            ),
            ("http://good.test:22/", "good.test", 22, "is the port of SSH"),
        ];
        let mut script = String::new();
        for (url, ..) in table {
            script += &format!(
                "curl -sS -o /dev/null --globoff -w '%{{http_code}} %{{http_connect}}\\n' '{url}' 2>/dev/null\n"
            );
        }
        script += "true\n";
        for stage in stages() {
            let proxy = proxy(&["good.test"]).with_resolver(names.clone());
            let outcome = run(stage, proxy, &script);
            for line in output(&outcome).lines() {
                assert!(line.contains("403"), "{outcome:#?}");
            }
            for (connection, (_, host, port, why)) in outcome.network.iter().zip(table) {
                assert_eq!((&*connection.host, connection.port), (host, port));
                let refused = connection.refused.as_ref().unwrap();
                assert!(refused.contains(why), "{refused}");
            }
            assert_eq!(outcome.network.len(), table.len());
        }
        assert_eq!(names.asked(), [""; 0]);
        // The answer contains the reason, too.
        let script = format!("curl -sS http://evil.test:{port}/");
        let outcome = run(best(), proxy(&["good.test"]), &script);
        let told = format!(
            "prowess: host `evil.test` is not allowed; run with `--net evil.test:{port}`\n"
        );
        assert_eq!(output(&outcome), told);
        assert_eq!(server.connections(), 0);
    }

    #[test]
    fn a_name_that_leads_to_this_machine_or_a_private_network_is_refused() {
        let server = Server::saying(answer("200 OK", "", "in\n"));
        let port = server.port();
        let host = format!("good.test:{port}");
        let script = format!("curl -sS -o /dev/null -w '%{{http_code}}' http://{host}/");
        let addresses: [&[&str]; 7] = [
            &["127.0.0.1"],
            &["::1"],
            &["::ffff:127.0.0.1"],
            &["10.0.0.1"],
            &["169.254.169.254"],
            &["fe80::1"],
            &["93.184.216.34", "127.0.0.1"],
        ];
        for address in addresses {
            let proxy = proxy(&[&host]).with_resolver(Names::new(&[address]));
            let outcome = run(best(), proxy, &script);
            assert_eq!(output(&outcome), "403", "{address:?} {outcome:#?}");
            let refused = outcome.network[0].refused.as_ref().unwrap();
            assert!(refused.contains("host `good.test` resolves to"), "{refused}");
        }
        assert_eq!(server.connections(), 0);
        let with_address = [&*host, "127.0.0.1"];
        let listed = proxy(&with_address).with_resolver(Names::new(&[&["127.0.0.1"]]));
        assert_eq!(output(&run(best(), listed, &script)), "200");
        let local = format!("curl -sS http://localhost:{port}/");
        assert_eq!(output(&run(best(), proxy(&[&format!("localhost:{port}")]), &local)), "in\n");
    }

    #[test]
    fn a_request_that_could_be_read_in_two_ways_is_refused() {
        let server = Server::saying(answer("200 OK", "", "in\n"));
        let (good, other) = (server.address.to_string(), Server::saying(answer("200 OK", "", "")));
        let evil = other.address.to_string();
        let script = python(&format!(
            r#"
good, evil = "{good}", "{evil}"
attempts = [
    (f"CONNECT {{evil}}@{{good}} HTTP/1.1", ""),
    (f"CONNECT {{good}}@{{evil}} HTTP/1.1", ""),
    (f"CONNECT {{evil}} HTTP/1.1", f"Host: {{good}}\r\n"),
    (f"CONNECT {{good}} HTTP/1.1", f"Host: {{evil}}\r\n"),
    ("CONNECT 127.0.0.1 HTTP/1.1", ""),
    (f"CONNECT http://{{good}}/ HTTP/1.1", ""),
    (f"GET http://x@{{good}}/ HTTP/1.1", ""),
    (f"GET http://{{good}}@{{evil}}/ HTTP/1.1", f"Host: {{evil}}\r\n"),
    (f"GET http://{{good}}/ HTTP/1.1", f"Host: {{evil}}\r\n"),
    (f"GET http://{{good}}/ HTTP/1.1", f"Host: {{good}}\r\nHost: {{evil}}\r\n"),
    (f"GET https://{{good}}/ HTTP/1.1", ""),
    (f"GET ftp://{{good}}/ HTTP/1.1", ""),
    ("GET / HTTP/1.1", f"Host: {{good}}\r\n"),
    (f"GET http://{{good}}/ HTTP/1.1", f"Host : {{good}}\r\n"),
    (f"GET http://{{good}}/\tHTTP/1.1", ""),
    (f"POST http://{{good}}/ HTTP/1.1", "Content-Length: 1\r\nContent-Length: 2\r\n"),
    (f"POST http://{{good}}/ HTTP/1.1", "Transfer-Encoding: identity\r\n"),
    (f"GET http://{{good}}/ HTTP/2.0", ""),
]
for first, rest in attempts:
    said = code(ask(first, rest.encode() + b"\r\n"))
    if said not in ("400", "403", "closed"): print(said, first, rest)
# A second request on the same connection goes by itself.
two = f"GET http://{{good}}/one HTTP/1.1\r\nHost: {{good}}\r\n".encode() + auth() + b"\r\n"
two += f"GET http://{{evil}}/two HTTP/1.1\r\nHost: {{evil}}\r\nConnection: close\r\n".encode() + auth() + b"\r\n"
s = connect(); s.sendall(two)
said = answers(s)
print(said.count("HTTP/1.1 200"), said.count("HTTP/1.1 403"))
# What hides in a body of chunks is a body.
body = f"GET http://{{evil}}/ HTTP/1.1\r\n\r\n".encode()
chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
said = ask(f"POST http://{{good}}/three HTTP/1.1", b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk)
print(said.count("HTTP/1.1"))
"#
        ));
        for stage in stages() {
            let outcome = run(stage, proxy(&[&good]), &script);
            assert_eq!(output(&outcome), "1 1\n1\n", "{stage:?} {outcome:#?}");
            let lines: Vec<String> = server.asked().into_iter().map(|it| it.line).collect();
            assert_eq!(&lines[lines.len() - 2..], ["GET /one", "POST /three"]);
            let three = server.last();
            let lengths = ["content-length", "transfer-encoding"].map(|it| three.header(it));
            assert_eq!(lengths.iter().flatten().count(), 1, "{}", three.head);
        }
        assert_eq!(other.connections(), 0);
    }

    #[test]
    fn tls_has_to_be_for_the_host_that_was_asked_for() {
        let server =
            Server::secure(|_, client| client.write_all(answer("200 OK", "", "in\n").as_bytes()));
        let port = server.port();
        let script = python(&format!(
            r#"
context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
def greet(target, name):
    s = tunnel(target); s.settimeout(10)
    try:
        with context.wrap_socket(s, server_hostname=name) as tls:
            tls.sendall(b"GET / HTTP/1.1\r\n\r\n"); return tls.recv(12).decode()
    except OSError as error: return type(error).__name__
print(greet("secure.test:{port}", "secure.test"))
print(greet("Secure.TEST.:{port}", "SECURE.test"))
print(greet("127.0.0.1:{port}", None))
for target, name in (("secure.test:{port}", "evil.test"), ("secure.test:{port}", None), ("127.0.0.1:{port}", "evil.test")):
    assert greet(target, name) in ("SSLError", "ConnectionResetError"), (target, name)
def extension(kind, body): return kind.to_bytes(2) + len(body).to_bytes(2) + body
def hello(extensions):
    body = b"\3\3" + bytes(32) + b"\0" + b"\0\2\x13\1" + b"\1\0" + len(extensions).to_bytes(2) + extensions
    message = b"\1" + len(body).to_bytes(3) + body
    return b"\x16\3\1" + len(message).to_bytes(2) + message
name = b"\0" + len(b"secure.test").to_bytes(2) + b"secure.test"
named = extension(0, len(name).to_bytes(2) + name)
for said in (hello(named + extension(0xfe0d, b"x")), hello(named + named), b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", b"\x16\3\1\0\0", b"SSH-2.0-x\r\n"):
    s = tunnel("secure.test:{port}"); s.sendall(said); s.settimeout(10)
    got = answers(s)
    assert got in ("", "\x15\3\1\0\2\2p"), got
"#
        ));
        let hosts = [format!("secure.test:{port}"), format!("127.0.0.1:{port}")];
        let hosts: Vec<&str> = hosts.iter().map(|it| &**it).collect();
        for stage in stages() {
            let before = server.asked().len();
            let proxy = proxy(&hosts).with_resolver(Names::new(&[&["127.0.0.1"]]));
            let outcome = run(stage, proxy, &script);
            assert_eq!(output(&outcome), "HTTP/1.1 200\n".repeat(3), "{stage:?} {outcome:#?}");
            assert_eq!(server.asked().len() - before, 3);
            let (passed, refused) = outcome.network.split_at(3);
            assert!(passed.iter().all(|it| it.refused.is_none()), "{passed:#?}");
            assert!(
                refused.iter().all(|it| it.refused.is_some() && it.bytes_sent == 0),
                "{refused:#?}"
            );
            let why: Vec<&str> = refused.iter().filter_map(|it| it.refused.as_deref()).collect();
            assert_eq!(why[0], "the TLS handshake names the server `evil.test`, not `secure.test`");
            assert_eq!(why[1], "the TLS handshake names no server");
            assert_eq!(why[3], "the server name is encrypted");
            assert_eq!(why.len(), 8);
        }
    }

    #[test]
    fn there_is_no_way_around_the_proxy() {
        let server = Server::saying(answer("200 OK", "", "in\n"));
        let world = World::within("/var/tmp".as_ref());
        let path = world.path("socket");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let script = python(&format!(
            r#"
import ctypes
port, proxy = {port}, PROXY.port
inet, stream = socket.AF_INET, socket.SOCK_STREAM
def tcp(*to):
    s = socket.socket(inet, stream); s.settimeout(2); s.connect(to)
def nonblocking(*to):
    s = socket.socket(inet, stream); s.setblocking(False); s.connect(to)
def twice(*to):
    s = connect(); libc = ctypes.CDLL(None, use_errno=True)
    if libc.connect(s.fileno(), bytes(16), 16): raise OSError(ctypes.get_errno())
def unix(path): socket.socket(socket.AF_UNIX).connect(path)
def option(level, name, value): socket.socket(inet, stream).setsockopt(level, name, value)
def listen():
    s = socket.socket(inet, stream); s.bind(("127.0.0.1", 0)); s.listen()
attempts = [
    lambda: tcp("127.0.0.1", port), lambda: tcp("127.0.0.1", 22), lambda: tcp("127.0.0.2", proxy),
    lambda: tcp("93.184.216.34", proxy), lambda: tcp("93.184.216.34", 443), lambda: tcp("0.0.0.0", proxy),
    lambda: nonblocking("127.0.0.1", port), lambda: nonblocking("93.184.216.34", proxy), twice,
    lambda: socket.create_connection(("::1", port)), lambda: socket.socket(socket.AF_INET6, stream),
    lambda: socket.socket(inet, socket.SOCK_DGRAM), lambda: socket.socket(inet, socket.SOCK_RAW, 1),
    lambda: socket.socket(inet, stream, 262), lambda: socket.socket(inet, stream, 132),
    lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW), lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    lambda: socket.socket(inet, stream).sendto(b"x", 0x20000000, ("127.0.0.1", port)),
    lambda: socket.socket(inet, stream).sendto(b"x", 0x20000000, ("93.184.216.34", 443)),
    lambda: unix("{path}"), lambda: unix("\0prowess-abstract"), lambda: unix("/run/systemd/journal/stdout"),
    lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
    lambda: option(socket.IPPROTO_IP, socket.IP_OPTIONS, b"\x83\7\4\x5d\xb8\xd8\x22\0"),
    lambda: option(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0"),
    lambda: socket.getaddrinfo("example.com", 443), listen,
]
for at, attempt in enumerate(attempts):
    try: attempt(); print("attempt", at, "succeeded")
    except OSError: pass
print(code(ask(f"GET http://127.0.0.1:{{port}}/ HTTP/1.1")))
"#,
            port = server.port(),
            path = path.display(),
        ));
        for stage in stages() {
            let before = server.connections();
            let network = Network::Proxy(Arc::new(proxy(&[&server.address.to_string()])));
            let reads = vec![world.path("")];
            let outcome = stage.run_job(Job { network, reads, ..stage.job(&script) });
            assert_eq!(output(&outcome), "200\n", "{stage:?} {outcome:#?}");
            assert_eq!(server.connections() - before, 1, "{stage:?}");
            assert_eq!(outcome.network.len(), 1);
            let denied = outcome.denied.join("\n");
            assert!(denied.contains(&format!("connect (127.0.0.1:{})", server.port())), "{denied}");
        }
        assert!(listener.accept().is_err());
    }

    #[test]
    fn nobody_else_uses_the_proxy() {
        let server = Server::saying(answer("200 OK", "", "in\n"));
        let host = server.address.to_string();
        for stage in stages() {
            let (seen, url) = (Arc::new(Mutex::new(None)), server.url("/"));
            let (sender, mut chunks) = tokio::sync::mpsc::unbounded_channel();
            let script = format!(
                "echo $HTTP_PROXY; until [ -e go ]; do curl -sS {url} >/dev/null && sleep 0.05; done"
            );
            let network = Network::Proxy(Arc::new(proxy(&[&host])));
            let job = Job { network, chunks: Some(sender), ..stage.job(&script) };
            let go = job.work.path().join("go");
            let own = seen.clone();
            let sandbox = stage.sandbox();
            let (ended, ()) = block_on(async {
                let look = async {
                    let chunk = chunks.recv().await.unwrap();
                    let said = String::from_utf8(chunk.bytes().to_vec()).unwrap();
                    let port = said.trim().rsplit(':').next().unwrap().parse::<u16>().unwrap();
                    let asked = tokio::task::spawn_blocking(move || trespass(port, &url));
                    *own.lock().unwrap() = Some((port, asked.await.unwrap()));
                    fs::write(go, "").unwrap();
                };
                tokio::join!(sandbox.run(job), look)
            });
            let outcome = Outcome::from(ended.unwrap());
            assert_eq!(outcome.status, OutcomeStatus::Ok, "{outcome:?}");
            let (port, answer) = seen.lock().unwrap().take().unwrap();
            match stage.level {
                SandboxLevel::Strong => assert_eq!(answer, None),
                _ => assert!(answer.unwrap().starts_with("HTTP/1.1 407 "), "{stage:?}"),
            }
            let nobody = TcpStream::connect(("127.0.0.1", port));
            assert!(nobody.is_err(), "{stage:?} it is still there");
            assert!(
                outcome.network.iter().all(|it| it.refused.is_none()),
                "{:#?}",
                outcome.network
            );
        }
    }

    /// Returns the answer of another run's proxy; `None` if there is none.
    fn trespass(port: u16, url: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        let wrong = "Proxy-Authorization: Basic c2NyaXB0OmFiYw==\r\n";
        write!(stream, "GET {url} HTTP/1.1\r\n{wrong}Connection: close\r\n\r\n").unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        Some(said)
    }
}

mod nothing_hangs_and_nothing_is_left {
    use super::*;

    #[test]
    fn what_is_slow_long_or_too_much_ends() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let endless = Server::new(|_, client| {
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
            for_ever(client, &[b'x'; 65536], Duration::ZERO)
        });
        let (silent, endless) = (silent.local_addr().unwrap(), endless.address);
        let limits = ProxyLimits {
            connections: 8,
            bytes: 4 << 20,
            idle: Duration::from_secs(1),
            ..ProxyLimits::default()
        };
        let script = python(&format!(
            r#"
s = connect(); s.sendall(b"GET http://"); print("half", code(answers(s)) in ("closed", "408"))
s = connect(); s.sendall(request("GET http://{silent}/ HTTP/1.1")[:-2] + b"X: ")
try:
    for _ in range(1000): s.sendall(b"x" * 1000)
except OSError: pass
print("long", code(answers(s)) in ("closed", "431"))
print("silent", code(ask("GET http://{silent}/ HTTP/1.1")) in ("502", "504"))
s = tunnel("{silent}"); print("greeting", answers(s) == "")
many = [connect() for _ in range(60)]
said = [answers(s) for s in many]
print("many", sum(" 503 " in it for it in said) >= 40)
# Those that were let in end a moment after they are told so.
while code(said := ask("GET http://{endless}/ HTTP/1.1")) == "503": pass
print("endless", code(said) == "200" and len(said) < 5 << 20)
print("spent", code(ask("GET http://{endless}/ HTTP/1.1")) in ("502", "closed"))
"#
        ));
        let hosts = [silent.to_string(), endless.to_string()];
        for stage in stages() {
            let proxy = proxy(&[&hosts[0], &hosts[1]]).with_limits(limits);
            let outcome = run(stage, proxy, &script);
            let wanted = "half True\nlong True\nsilent True\ngreeting True\nmany True\nendless True\nspent True\n";
            assert_eq!(output(&outcome), wanted, "{stage:?} {outcome:#?}");
            let says = |part: &str| {
                let mut refused = outcome.network.iter().filter_map(|it| it.refused.as_ref());
                assert!(refused.any(|it| it.contains(part)), "{part}: {:#?}", outcome.network);
            };
            for part in ["too many connections", "idle for too long", "more than 4194304 bytes"] {
                says(part);
            }
        }
    }

    #[test]
    fn the_proxy_ends_with_the_run() {
        for stage in stages() {
            for dropped in [false, true] {
                let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                let address = listener.local_addr().unwrap();
                let ended = Arc::new(Mutex::new(None));
                let has_come = Arc::new(AtomicBool::new(false));
                let (own, came) = (ended.clone(), has_come.clone());
                // Sends a byte now and then, and records when the connection is closed.
                thread::spawn(move || {
                    let (mut stream, _) = listener.accept().unwrap();
                    came.store(true, Ordering::SeqCst);
                    let mut head = [0; 1024];
                    let _ = stream.read(&mut head);
                    let head = b"HTTP/1.1 200 OK\r\n\r\n";
                    let failed = stream.write_all(head).and_then(|()| {
                        for_ever(&mut stream, b"on and on\n", Duration::from_millis(5))
                    });
                    *own.lock().unwrap() = Some(failed.is_err());
                });
                let limits = RunLimits { timeout: Duration::from_secs(3), ..RunLimits::default() };
                let network = Network::Proxy(Arc::new(proxy(&[&address.to_string()])));
                let script = format!("curl -sSN http://{address}/");
                let job = Job { network, ..stage.job(&script) };
                if dropped {
                    let sandbox = stage.sandbox();
                    let is_asked = || has_come.load(Ordering::SeqCst);
                    block_on(dropped_when("the host is asked", is_asked, sandbox.run(job)));
                } else {
                    let outcome = stage.run_job(Job { limits, ..job });
                    assert_eq!(outcome.status, OutcomeStatus::TimedOut);
                    assert!(outcome.network[0].bytes_received > 0, "{:#?}", outcome.network);
                }
                until("the host is disconnected", || *ended.lock().unwrap() == Some(true));
            }
        }
    }
}
