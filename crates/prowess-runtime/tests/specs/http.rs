//! The tool `http_request`.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use prowess_http::Hosts;
use prowess_runtime::{
    Action, Outcome, OutcomeStatus, Tool as _, sandbox::RunLimits, secret::KnownSecret,
    tools::HttpRequest,
};
use serde_json::{Value as Json, json};

use crate::{
    server::{Names, Server, answer, for_ever, nowhere, redirect},
    world::call,
};

/// Longer than any answer takes here.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than any timeout.
const LONG: Duration = Duration::from_secs(60);

/// Creates the tool with these hosts listed.
fn tool<H: AsRef<str>>(hosts: impl IntoIterator<Item = H>) -> HttpRequest {
    tool_of(Hosts::new(hosts).unwrap())
}

fn tool_of(hosts: Hosts) -> HttpRequest {
    let limits = RunLimits { timeout: TIMEOUT, output: 64 * 1024, ..RunLimits::default() };
    HttpRequest::new(hosts, limits)
}

/// Creates the tool with access to this machine.
fn local() -> HttpRequest {
    tool(["127.0.0.0/8"])
}

/// Creates the tool with access to the internet only.
fn public() -> HttpRequest {
    tool_of(Hosts::default())
}

fn get(tool: &HttpRequest, url: &str) -> Outcome {
    call(tool, json!({ "url": url }))
}

/// Returns the output of a successful outcome.
fn output(outcome: Outcome) -> Json {
    assert!(outcome.is_ok(), "{outcome:?}");
    outcome.output.unwrap()
}

fn refused(outcome: &Outcome, part: &str) {
    assert_eq!(outcome.status, OutcomeStatus::Refused, "{outcome:?}");
    assert!(outcome.message.as_ref().unwrap().contains(part), "{part}: {outcome:?}");
}

mod a_server_is_asked_and_its_answer_is_told {
    use super::*;

    #[test]
    fn q_21_method_headers_query_and_body_reach_the_server() {
        let server = Server::saying(answer("200 OK", "", "fine"));
        let tool = local();
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD"] {
            let said = if method == "HEAD" {
                let server = Server::saying(answer("200 OK", "", ""));
                let said = output(call(&tool, json!({ "url": server.url("/"), "method": method })));
                assert_eq!(server.last().line, "HEAD /");
                said
            } else {
                let input = json!({
                    "url": server.url("/a%20b?x=1"),
                    "method": method,
                    "headers": { "X-Token": "abc", "accept": "text/plain" },
                    "query": { "q": "ä & b", "n": 3, "yes": true, "list": ["1", 2] },
                    "body": "text",
                });
                let said = output(call(&tool, input));
                let asked = server.last();
                let path = "/a%20b?x=1&q=%C3%A4+%26+b&n=3&yes=true&list=1&list=2";
                assert_eq!(asked.line, format!("{method} {path}"));
                assert_eq!(asked.header("x-token"), Some("abc"));
                assert_eq!(asked.header("accept"), Some("text/plain"));
                assert_eq!(asked.header("host"), Some(&*server.address.to_string()));
                assert_eq!(asked.header("content-type"), Some("text/plain; charset=utf-8"));
                assert_eq!(asked.body, "text");
                said
            };
            assert_eq!(said["status"], 200);
        }
        output(get(&tool, &server.url("/#part")));
        assert_eq!(server.last().line, "GET /");
        for (body, sent) in [
            (json!({ "a": [1, null] }), "{\"a\":[1,null]}"),
            (json!("{\"a\": 1}"), "{\"a\": 1}"),
            (json!([1]), "[1]"),
        ] {
            output(call(&tool, json!({ "url": server.url("/"), "method": "POST", "body": body })));
            let asked = server.last();
            assert_eq!(
                (&*asked.body, asked.header("content-type")),
                (sent, Some("application/json"))
            );
        }
        let own = json!({ "url": server.url("/"), "method": "PUT", "headers": { "Content-Type": "text/csv" }, "body": "a,b" });
        output(call(&tool, own));
        assert_eq!(server.last().header("content-type"), Some("text/csv"));
        let action =
            tool.action(&json!({ "url": server.url("/x"), "method": "PUT", "query": { "a": 1 } }));
        let Action::Fetch { method, url, .. } = action.unwrap() else { panic!("it asks a server") };
        assert_eq!((&*method, url), ("PUT", server.url("/x?a=1")));
    }

    #[test]
    fn q_21_the_answer_is_told_as_it_is() {
        let headers = "x-b: 1\r\nX-A: two\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n";
        let server = Server::saying(answer("404 Not Found", headers, "nö\n"));
        let url = server.url("/missing");
        assert_eq!(
            output(get(&local(), &url)),
            json!({
                "status": 404,
                "url": url,
                "redirects": [],
                "headers": {
                    "connection": "close",
                    "content-length": "4",
                    "set-cookie": ["a=1", "b=2"],
                    "x-a": "two",
                    "x-b": "1",
                },
                "body": "nö\n",
                "cut": false,
            })
        );
        let server = Server::saying(answer("500 No", "", "broken"));
        assert_eq!(output(get(&local(), &server.url("/")))["status"], 500);
        let server =
            Server::saying(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n\xff\x00\x01".to_vec());
        let said = output(get(&local(), &server.url("/")));
        assert_eq!((&said["body_base64"], &said["body"]), (&json!("/wAB"), &Json::Null));
    }

    #[test]
    fn wrong_input_is_told() {
        let server = Server::saying(answer("200 OK", "", ""));
        let tool = local();
        let url = server.url("/");
        for (input, told) in [
            (json!({}), "missing field `url`"),
            (json!({ "url": "" }), "`url`: relative URL without a base"),
            (json!({ "url": "example.com" }), "`url`: relative URL without a base"),
            (json!({ "url": "http://" }), "`url`: empty host"),
            (json!({ "url": "http://127.0.0.1%2f/" }), "`url`: invalid"),
            (json!({ "url": "http://a:99999/" }), "`url`: invalid port number"),
            (json!({ "url": url, "method": "BREW" }), "unknown variant `BREW`"),
            (
                json!({ "url": url, "headers": { "x": "a\r\nhost: evil" } }),
                "header `x` has an invalid value",
            ),
            (
                json!({ "url": url, "headers": { "x\r\ny": "a" } }),
                "header `x\\r\\ny` is not a valid header name",
            ),
            (json!({ "url": url, "headers": { "": "a" } }), "is not a valid header name"),
            (json!({ "url": url, "headers": { "Host": "evil" } }), "header `Host` cannot be set"),
            (json!({ "url": url, "headers": { "Transfer-Encoding": "chunked" } }), "cannot be set"),
            (json!({ "url": url, "headers": { "content-length": "0" } }), "cannot be set"),
            (json!({ "url": url, "headers": { "Connection": "upgrade" } }), "cannot be set"),
            (json!({ "url": url, "headers": { "x": 1 } }), "invalid type"),
            (json!({ "url": url, "query": { "x": {} } }), "`query.x` must be a string"),
            (json!({ "url": url, "query": { "x": [null] } }), "`query.x` must be a string"),
            (json!({ "url": url, "timeout": 0 }), "`timeout` must be more than 0 and at most 10 s"),
            (json!({ "url": url, "timeout": -1 }), "`timeout`"),
            (json!({ "url": url, "timeout": 10.5 }), "`timeout`"),
            (json!({ "url": url, "timeout": "1s" }), "invalid type"),
            (json!({ "url": url, "follow": true }), "unknown field `follow`"),
        ] {
            let outcome = call(&tool, input.clone());
            assert_eq!(outcome.status, OutcomeStatus::Invalid, "{input}: {outcome:?}");
            assert!(outcome.message.as_ref().unwrap().contains(told), "{input}: {outcome:?}");
        }
        assert_eq!(server.connections(), 0);
    }

    #[test]
    fn nothing_is_kept_from_one_request_to_the_next() {
        let said = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nset-cookie: id=1\r\n\r\n";
        let server = Server::saying(said);
        let tool = local();
        for _ in 0..3 {
            output(get(&tool, &server.url("/")));
        }
        assert_eq!((server.connections(), server.asked().len()), (3, 3));
        assert!(server.asked().iter().all(|it| it.header("cookie").is_none()));
    }

    #[test]
    fn a_certificate_has_to_be_trusted() {
        let server =
            Server::secure(|_, client| client.write_all(answer("200 OK", "", "safe").as_bytes()));
        let url = |host: &str| format!("https://{host}:{}/", server.port());
        let hosts = ["secure.test", "other.test"];
        let names = Names::new(&[&["127.0.0.1"]]);
        let unknown = tool(hosts).with_resolver(names.clone());
        let outcome = get(&unknown, &url("secure.test"));
        assert_eq!(outcome.status, OutcomeStatus::Failed);
        assert!(outcome.message.unwrap().contains("certificate"));
        assert_eq!(server.asked().len(), 0);
        let authority = include_bytes!("../../../../fixtures/tls/ca.pem");
        let trusting =
            || tool(hosts).with_resolver(names.clone()).with_certificates(authority).unwrap();
        assert_eq!(output(get(&trusting(), &url("secure.test")))["body"], "safe");
        let outcome = get(&trusting(), &url("other.test"));
        assert!(outcome.message.unwrap().contains("certificate"));
        assert_eq!(server.asked().len(), 1);
        assert!(public().with_certificates(b"-----BEGIN CERTIFICATE-----\nx\n").is_err());
    }
}

mod only_hosts_that_may_be_asked_are {
    use super::*;

    #[test]
    fn private_addresses_are_refused_before_anything_is_connected_to() {
        let server = Server::saying(answer("200 OK", "", "inside"));
        let port = server.port();
        let tool = public();
        for host in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f.1",
            "0x7f000001",
            "0177.0.0.1",
            "127.0.0.1.",
            "①②⑦.⓪.⓪.①",
            "１２７.0.0.1",
            "127。0。0。1",
            "0.0.0.0",
            "0",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "169.254.169.254",
            "198.18.0.1",
            "192.0.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::127.0.0.1]",
            "[64:ff9b::a9fe:a9fe]",
            "[64:ff9b:1::1]",
            "[2002:7f00:1::]",
            "[2001:0:1::1]",
            "[::5efe:10.0.0.1]",
            "[fe80::1]",
            "[fc00::1]",
            "[fec0::1]",
            "[fd00:ec2::254]",
            "[ff02::1]",
        ] {
            let input = json!({ "url": format!("http://{host}:{port}/") });
            refused(&call(&tool, input.clone()), "are not allowed");
            assert!(
                tool.action(&input).is_err_and(|it| it.status == OutcomeStatus::Refused),
                "{host}"
            );
        }
        // `localhost` is resolved by the system.
        let outcome = get(&tool, &format!("http://localhost:{port}/"));
        refused(&outcome, "resolves to this machine");
        let hint = outcome.hint.unwrap();
        assert!(hint.contains("`policy.hosts`") && hint.contains("only the listed hosts"));
        assert_eq!(server.connections(), 0);
    }

    #[test]
    fn a_name_that_leads_to_a_private_address_is_refused() {
        let server = Server::saying(answer("200 OK", "", "inside"));
        let url = |host: &str| format!("http://{host}:{}/", server.port());
        for addresses in [
            &["127.0.0.1"][..],
            &["93.184.216.34", "127.0.0.1"],
            &["127.0.0.1", "93.184.216.34"],
            &["::ffff:127.0.0.1"],
            &["fd00::1"],
            &["169.254.169.254"],
            &["0.0.0.0"],
        ] {
            let names = Names::new(&[addresses]);
            let tool = public().with_resolver(names.clone());
            refused(&get(&tool, &url("inside.test")), "`inside.test` resolves to");
            assert_eq!(names.asked(), ["inside.test"]);
        }
        let names = Names::new(&[&["93.184.216.34"]]);
        let tool = public().with_resolver(names.clone());
        for host in ["metadata.google.internal", "METADATA", "metadata.", "instance-data"] {
            refused(&get(&tool, &format!("http://{host}/latest/meta-data/")), "not allowed");
        }
        assert_eq!(names.asked(), [""; 0]);
        assert_eq!(server.connections(), 0);
        let nothing = public().with_resolver(Names::new(&[]));
        let outcome = get(&nothing, "http://nowhere.test/");
        assert_eq!(outcome.status, OutcomeStatus::Failed);
        assert!(outcome.message.unwrap().starts_with("cannot resolve `nowhere.test`"));
    }

    #[test]
    fn a_name_is_looked_up_once_and_connected_to_as_it_was_checked() {
        // The first address is unused: its network was returned.
        let inside = Server::saying(answer("200 OK", "", "inside"));
        let names = Names::new(&[&["3ffe::1"], &["127.0.0.1"]]);
        let tool = public().with_resolver(names.clone());
        let url = format!("http://rebind.test:{}/", inside.port());
        let outcome = call(&tool, json!({ "url": url, "timeout": 1 }));
        assert!(
            matches!(outcome.status, OutcomeStatus::Failed | OutcomeStatus::TimedOut),
            "{outcome:?}"
        );
        assert_eq!((inside.connections(), names.asked().len()), (0, 1));
        // Of two servers at the same port, the one with the first address is used.
        let first = Server::saying(answer("200 OK", "", "first"));
        let at = (std::net::Ipv4Addr::new(127, 0, 0, 2), first.port());
        let second =
            Server::at(at, |_, client| client.write_all(answer("200 OK", "", "second").as_bytes()))
                .unwrap();
        let names = Names::new(&[&["127.0.0.2"], &["127.0.0.1"]]);
        let tool = super::tool(["rebind.test"]).with_resolver(names.clone());
        let url = format!("http://rebind.test:{}/", first.port());
        assert_eq!(output(get(&tool, &url))["body"], "second");
        assert_eq!((first.connections(), second.connections(), names.asked().len()), (0, 1, 1));
        // A redirect to the same name is another connection: resolved and checked again.
        let to_itself = Server::saying(redirect(302, "/again"));
        let names = Names::new(&[&["127.0.0.1"], &["169.254.169.254"]]);
        let tool = super::tool(["rebind.test"]).with_resolver(names.clone());
        let url = format!("http://rebind.test:{}/", to_itself.port());
        refused(&get(&tool, &url), "resolves to a cloud metadata service");
        assert_eq!(to_itself.connections(), 1);
    }

    #[test]
    fn listed_hosts_are_asked_and_no_others() {
        let server = Server::saying(answer("200 OK", "", "fine"));
        let port = server.port();
        let asked = |hosts: &[&str], host: &str, address: &str| {
            let names = Names::new(&[&[address]]);
            let tool = tool(hosts).with_resolver(names.clone());
            let outcome = get(&tool, &format!("http://{host}:{port}/"));
            if outcome.status == OutcomeStatus::Refused
                && !outcome.message.unwrap().contains("resolves to")
            {
                assert_eq!(names.asked(), [""; 0], "{host} was looked up");
            }
            outcome.status == OutcomeStatus::Ok
        };
        for host in ["example.com", "EXAMPLE.com", "example.com.", "ｅxample.com"] {
            assert!(asked(&["example.com"], host, "127.0.0.1"), "{host}");
        }
        for host in [
            "evilexample.com",
            "example.com.evil.test",
            "sub.example.com",
            "xn--xample-9uf.com",
            "еxample.com",
            "127.0.0.1",
        ] {
            assert!(!asked(&["example.com"], host, "127.0.0.1"), "{host}");
        }
        assert!(asked(&["*.example.com"], "a.b.example.com", "127.0.0.1"));
        assert!(!asked(&["*.example.com"], "example.com", "127.0.0.1"));
        assert!(!asked(&["*.example.com"], "evilexample.com", "127.0.0.1"));
        assert!(asked(&["MÜNCHEN.example"], "münchen.example", "127.0.0.1"));
        assert!(asked(&["münchen.example"], "xn--mnchen-3ya.example", "127.0.0.1"));
        assert!(asked(&[&format!("example.com:{port}")], "example.com", "127.0.0.1"));
        assert!(!asked(&["example.com:1234"], "example.com", "127.0.0.1"));
        assert!(asked(&["127.0.0.1"], "0x7f.1", "127.0.0.1"));
        assert!(asked(&["127.0.0.0/8"], "127.0.0.1", "127.0.0.1"));
        assert!(asked(&["2130706433"], "127.0.0.1", "127.0.0.1"));
        assert!(!asked(&["127.0.0.2/32"], "127.0.0.1", "127.0.0.1"));
        assert!(!asked(&["127.0.0.1"], "example.com", "127.0.0.1"));
        assert!(asked(&["*", &format!("127.0.0.1:{port}")], "127.0.0.1", "127.0.0.1"));
        assert!(!asked(&["*"], "127.0.0.1", "127.0.0.1"));
        assert!(!asked(&["*"], "example.com", "127.0.0.1"));
        assert!(!asked(&["example.com"], "example.com", "169.254.169.254"));
        assert!(!asked(&["*.internal"], "metadata.google.internal", "127.0.0.1"));
        assert!(asked(&["metadata.google.internal"], "metadata.google.internal", "127.0.0.1"));
        for pattern in [
            "",
            "http://example.com",
            "example.com/path",
            "a b",
            "*.",
            "*.1.2.3.4",
            "10.0.0.0/33",
            "a:b",
            "a:99999",
            "[::1",
        ] {
            assert_eq!(Hosts::new([pattern]).unwrap_err().pattern, pattern);
        }
        for pattern in ["::1", "[::1]", "[::1]:80", "fe80::/10", "localhost:8080", "*:8443"] {
            assert!(Hosts::new([pattern]).is_ok(), "{pattern}");
        }
    }

    #[test]
    fn only_http_is_spoken_and_names_in_the_url_are_not_mistaken() {
        let server = Server::saying(answer("200 OK", "", ""));
        let port = server.port();
        let names = Names::new(&[&["3ffe::1"]]);
        let tool = public().with_resolver(names.clone());
        for url in [
            "file:///etc/passwd",
            "ftp://example.com/",
            "gopher://127.0.0.1:6379/_x",
            "data:text/plain,hello",
            "ws://example.com/",
            "unix:/run/docker.sock",
            "jar:http://example.com!/",
            "javascript:alert(1)",
            "FILE:///etc/passwd",
        ] {
            refused(&get(&tool, url), "unsupported scheme");
        }
        for url in [
            format!("http://allowed.com@127.0.0.1:{port}/"),
            format!("http://user:hunter2@127.0.0.1:{port}/"),
            "https://user:hunter2@example.com/".to_owned(),
            "https://:hunter2@example.com/".to_owned(),
        ] {
            let outcome = get(&tool, &url);
            refused(&outcome, "contains a user name or password");
            assert!(!format!("{outcome:?}").contains("hunter2"));
            assert!(!format!("{:?}", tool.action(&json!({ "url": url }))).contains("hunter2"));
        }
        refused(&get(&tool, &format!("http://127.0.0.1:{port}\\@allowed.com/")), "this machine");
        refused(&get(&tool, &format!("http:127.0.0.1:{port}/")), "this machine");
        refused(&get(&tool, "http://example.com:22/"), "port 22 is not for HTTP");
        let broken = get(&tool, "http://user:hunter2@exa mple/");
        assert_eq!(broken.status, OutcomeStatus::Invalid);
        assert!(!format!("{broken:?}").contains("hunter2"));
        assert_eq!(names.asked(), [""; 0]);
        let Ok(Action::Fetch { url, .. }) =
            tool.action(&json!({ "url": "http://allowed.com#@127.0.0.1/" }))
        else {
            panic!("the host is allowed.com")
        };
        assert_eq!(url, "http://allowed.com/");
        assert_eq!(server.connections(), 0);
    }

    #[test]
    fn public_hosts_work_however_they_are_written() {
        for url in [
            "http://[2606:4700:4700::1111]/",
            "https://1.1.1.1:8443/x",
            "https://bücher.example/",
            "https://example.com:8443/",
            "http://example.com./",
        ] {
            assert!(public().action(&json!({ "url": url })).is_ok(), "{url}");
        }
        let server = Server::saying(answer("200 OK", "", "fine"));
        let names = Names::new(&[&["127.0.0.1"]]);
        let tool = tool(["bücher.example"]).with_resolver(names.clone());
        let url = format!("http://Bücher.example:{}/", server.port());
        assert_eq!(output(get(&tool, &url))["body"], "fine");
        assert_eq!(names.asked(), ["xn--bcher-kva.example"]);
        // Not every machine has IPv6.
        let at = (std::net::Ipv6Addr::LOCALHOST, 0);
        let say = |_: &_, client: &mut dyn Write| {
            client.write_all(answer("200 OK", "", "six").as_bytes())
        };
        if let Ok(server) = Server::at(at, say) {
            let listed = super::tool([format!("[::1]:{}", server.port())]);
            assert_eq!(output(get(&listed, &server.url("/")))["body"], "six");
        }
    }

    #[test]
    fn a_port_of_another_service_is_asked_only_where_it_is_named() {
        for (port, service) in [
            (22, "SSH"),
            (2375, "Docker"),
            (3306, "MySQL"),
            (5432, "PostgreSQL"),
            (6379, "Redis"),
            (9200, "Elasticsearch"),
            (11211, "memcached"),
            (27018, "MongoDB"),
        ] {
            for host in ["127.0.0.1", "example.com"] {
                let outcome = get(&tool(["127.0.0.0/8", "*"]), &format!("http://{host}:{port}/"));
                refused(
                    &outcome,
                    &format!("port {port} is not for HTTP: it is the port of {service}"),
                );
                assert!(outcome.hint.unwrap().contains(&format!("`{host}:{port}`")));
            }
        }
        refused(&get(&public(), "http://example.com:9200/"), "Elasticsearch");
        // It is connected to, whether a server is there or not.
        let named = get(&tool(["127.0.0.1:9300"]), "http://127.0.0.1:9300/");
        assert_ne!(named.status, OutcomeStatus::Refused, "{named:?}");
        refused(
            &get(&tool(["127.0.0.1:9300", "127.0.0.1"]), "http://127.0.0.1:9200/"),
            "port 9200",
        );
    }

    #[test]
    fn a_known_secret_is_not_sent() {
        const KEY: &str = "sk-proj-aB3dE6gH9kL2";
        let server = Server::saying(answer("200 OK", "", "fine"));
        let url = |rest: &str| server.url(rest);
        let secret =
            |name: &str, value: &str| KnownSecret { name: name.into(), value: value.into() };
        let tool = local().with_secrets(vec![secret("MY_KEY", KEY), secret("OTHER", "ollama")]);
        let all: String = KEY.bytes().map(|it| format!("%{it:02X}")).collect();
        for (input, part) in [
            (json!({"url": url(&format!("/?q={KEY}"))}), "the URL"),
            (json!({"url": url(&format!("/{all}"))}), "the URL"),
            (json!({"url": url("/"), "query": {"q": KEY}}), "the URL"),
            (json!({"url": url("/c2stcHJvai1hQjNkRTZnSDlrTDI=")}), "the URL"),
            (json!({"url": url("/"), "headers": {"x-note": format!("a {KEY} b")}}), "a header"),
            (json!({"url": url("/"), "method": "POST", "body": {"a": [KEY]}}), "the body"),
            (
                json!({"url": url("/"), "method": "POST", "body": "s k - p r o j - aB3d E6gH 9kL2"}),
                "the body",
            ),
        ] {
            let outcome = call(&tool, input.clone());
            refused(
                &outcome,
                &format!("{part} contains the value of `MY_KEY`, so nothing was sent"),
            );
            assert!(tool.action(&input).is_err(), "nobody is asked about it");
            assert!(!format!("{outcome:?}").contains(KEY));
        }
        assert_eq!(server.connections(), 0);
        output(get(&tool, &url("/?model=ollama&key=sk-proj")));
    }
}

mod redirects_are_followed_with_care {
    use super::*;

    /// Creates a server that redirects from `/from` to `/to`, and returns the request there.
    fn redirecting(status: u16) -> Server {
        Server::new(move |asked, client| {
            let said = match &*asked.line {
                line if line.ends_with("/from") => redirect(status, "/to"),
                _ => answer("200 OK", "", &format!("{} {}", asked.line, asked.body)),
            };
            client.write_all(said.as_bytes())
        })
    }

    #[test]
    fn a_redirect_is_followed_and_told() {
        for (status, method, said) in [
            (301, "GET", "GET /to "),
            (301, "POST", "GET /to "),
            (302, "POST", "GET /to "),
            (302, "PUT", "PUT /to body"),
            (303, "PUT", "GET /to "),
            (307, "POST", "POST /to body"),
            (308, "DELETE", "DELETE /to body"),
        ] {
            let server = redirecting(status);
            let body = (method != "GET").then_some("body");
            let input = json!({
                "url": server.url("/from"),
                "method": method,
                "body": body,
                "headers": { "authorization": "Bearer x" },
            });
            let output = output(call(&local(), input));
            assert_eq!(output["body"], said, "{status} {method}");
            assert_eq!(output["url"], server.url("/to"));
            assert_eq!(output["redirects"], json!([server.url("/to")]));
            let last = server.last();
            assert_eq!(last.header("authorization"), Some("bearer x"));
            assert_eq!(last.header("content-type").is_some(), said.ends_with("body"));
        }
        let count = |at: usize| {
            let server = Server::new(move |asked, client| {
                let number: usize = asked.line.trim_start_matches("GET /").parse().unwrap();
                let said = if number == at {
                    answer("200 OK", "", "there")
                } else {
                    redirect(302, &format!("/{}", number + 1))
                };
                client.write_all(said.as_bytes())
            });
            let outcome = get(&local(), &server.url("/0"));
            (outcome, server.connections())
        };
        let (outcome, connections) = count(5);
        assert_eq!((output(outcome)["redirects"].as_array().unwrap().len(), connections), (5, 6));
        let (outcome, connections) = count(6);
        assert_eq!((outcome.status, connections), (OutcomeStatus::Failed, 6));
        let circle = Server::saying(redirect(302, "/"));
        assert!(get(&local(), &circle.url("/")).message.unwrap().contains("more than 5 times"));
        // Without a location it is an answer like any other.
        let nowhere = Server::saying(answer("302 Found", "", "where?"));
        assert_eq!(output(get(&local(), &nowhere.url("/")))["status"], 302);
    }

    #[test]
    fn a_redirect_to_what_may_not_be_asked_is_refused() {
        let inside = Server::saying(answer("200 OK", "", "secret"));
        let port = inside.port();
        for (status, to, told) in [
            (302, format!("http://127.0.0.1:{port}/"), "not allowed"),
            (307, format!("http://127.0.0.1:{port}/"), "not allowed"),
            (308, format!("//127.0.0.1:{port}/"), "not allowed"),
            (301, format!("http://2130706433:{port}/"), "not allowed"),
            (302, format!("//user@127.0.0.1:{port}/"), "user name or password"),
            (302, "file:///etc/passwd".to_owned(), "unsupported scheme"),
            (302, "gopher://127.0.0.1/".to_owned(), "unsupported scheme"),
            (302, "http://169.254.169.254/".to_owned(), "not allowed"),
        ] {
            let server = Server::saying(redirect(status, &to));
            let tool = tool([server.address.to_string()]);
            refused(&get(&tool, &server.url("/")), told);
            assert_eq!(server.connections(), 1);
        }
        for to in ["http://[", "http://a b/", "http://:80/"] {
            let server = Server::saying(redirect(302, to));
            assert_eq!(get(&local(), &server.url("/")).status, OutcomeStatus::Failed, "{to}");
        }
        assert_eq!(inside.connections(), 0);
    }

    #[test]
    fn another_origin_learns_no_secret() {
        let other = Server::saying(answer("200 OK", "", "other"));
        let to = other.url("/");
        let server = Server::saying(redirect(302, &to));
        let headers = json!({
            "Authorization": "Bearer s3cret",
            "Cookie": "id=s3cret",
            "X-Api-Key": "s3cret",
            "Accept": "text/html",
        });
        for method in ["GET", "POST"] {
            let body = (method == "POST").then_some("s3cret");
            let input = json!({ "url": server.url("/"), "method": method, "headers": headers, "body": body });
            assert_eq!(output(call(&local(), input))["body"], "other");
            let (asked, first) = (other.last(), server.last());
            assert_eq!(first.header("x-api-key"), Some("s3cret"));
            assert_eq!((&*asked.line, asked.header("accept")), ("GET /", Some("text/html")));
            assert!(!format!("{asked:?}").contains("s3cret"), "{asked:?}");
            assert_eq!(asked.header("referer"), None);
        }
        let before = other.connections();
        let server = Server::saying(redirect(307, &to));
        let input = json!({ "url": server.url("/"), "method": "POST", "body": "s3cret" });
        refused(&call(&local(), input), "which would receive the body");
        let secure = Server::secure({
            let to = to.clone();
            move |_, client| client.write_all(redirect(302, &to).as_bytes())
        });
        let tool = tool(["secure.test", "127.0.0.1"])
            .with_resolver(Names::new(&[&["127.0.0.1"]]))
            .with_certificates(include_bytes!("../../../../fixtures/tls/ca.pem"))
            .unwrap();
        let url = format!("https://secure.test:{}/", secure.port());
        refused(&get(&tool, &url), "redirects from `https:` to `http:`");
        assert_eq!(other.connections(), before);
        // A redirect to a secure scheme is allowed.
        let plain =
            Server::saying(redirect(301, &format!("https://secure.test:{}/x", secure.port())));
        refused(&get(&tool, &plain.url("/")), "redirects from `https:` to `http:`");
        assert_eq!(secure.last().line, "GET /x");
    }
}

mod no_answer_is_too_long_and_none_takes_too_long {
    use super::*;

    const KIB: usize = 1024;

    /// Writes an endless stream that decompresses to 150 times as many zeros: after one zero in a
    /// fixed block, "258 bytes like the previous one", in 13 bits each, so that eight of them are
    /// 13 bytes.
    fn zeros(client: &mut dyn Write, head: &[u8]) -> std::io::Result<()> {
        let mut bits = vec![false, true, false];
        bits.extend([false, false, true, true, false, false, false, false]);
        let copy =
            [true, true, false, false, false, true, false, true, false, false, false, false, false];
        for _ in 0..8 * 5000 {
            bits.extend(copy);
        }
        let bytes: Vec<u8> = bits
            .chunks(8)
            .map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit)))
            .collect();
        client.write_all(head)?;
        client.write_all(&bytes)
    }

    #[test]
    fn a_long_answer_is_cut() {
        let endless = Server::new(|_, client| {
            client.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")?;
            for_ever(client, "4\r\n€x\r\n".repeat(1000).as_bytes(), Duration::ZERO)
        });
        let said = output(get(&local(), &endless.url("/")));
        assert_eq!(said["cut"], true);
        let body = said["body"].as_str().unwrap();
        assert_eq!(body, "€x".repeat(KIB * 16));
        let whole = Server::saying(answer("200 OK", "", &"a".repeat(64 * KIB)));
        let said = output(get(&local(), &whole.url("/")));
        assert_eq!((&said["cut"], said["body"].as_str().unwrap().len()), (&json!(false), 64 * KIB));
        let packed = |encoding: &'static str, head: &'static [u8]| {
            Server::new(move |asked, client| {
                assert!(asked.header("accept-encoding").unwrap().contains(encoding));
                write!(client, "HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\n\r\n")?;
                zeros(client, head)
            })
        };
        for (encoding, head) in
            [("gzip", &b"\x1f\x8b\x08\0\0\0\0\0\0\xff"[..]), ("deflate", &b"\x78\x9c"[..])]
        {
            let said = output(get(&local(), &packed(encoding, head).url("/")));
            assert_eq!(said["cut"], true, "{encoding}");
            let body = said["body_base64"].as_str().unwrap();
            assert_eq!(body.len(), (64 * KIB).div_ceil(3) * 4);
            assert!(body.trim_end_matches('=').bytes().all(|it| it == b'A'));
        }
        // 64 MiB of zeros, compressed by brotli.
        let brotli = "cbffff3ff82700e2b14020f7fe8fffff7ff04f00c4611180eefd1fffffffe09f0088c30200ddfb3ffeffffc13f\
                      0110870500baf77ffcffff837f02200e0b0074effff8ffff07ff04401c1600e8defff1ffff0ffe0980382c00d0bd\
                      ffe3ffff1ffc1300715800a07bff37";
        let bytes: Vec<u8> = (0..brotli.len() / 2)
            .map(|at| u8::from_str_radix(&brotli[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: {}\r\n\r\n",
            bytes.len()
        );
        let packed = Server::saying([head.as_bytes(), &bytes].concat());
        let said = output(get(&local(), &packed.url("/")));
        assert_eq!(
            (&said["cut"], said["body_base64"].as_str().unwrap().len()),
            (&json!(true), 87_384)
        );
        let headers: String =
            (0..20).map(|it| format!("x-{it}: {}\r\n", "h".repeat(4000))).collect();
        let headed = Server::saying(answer("200 OK", &headers, ""));
        let said = output(get(&local(), &headed.url("/")));
        assert_eq!(said["cut"], true);
        assert!(said["headers"].to_string().len() < 33 * KIB);
        let many = Server::new(|_, client| {
            client.write_all(b"HTTP/1.1 200 OK\r\n")?;
            for_ever(client, "x: y\r\n".repeat(1000).as_bytes(), Duration::ZERO)
        });
        assert_eq!(get(&local(), &many.url("/")).status, OutcomeStatus::Failed);
    }

    #[test]
    fn a_slow_answer_ends_in_time() {
        let quick = |server: Server| {
            let start = Instant::now();
            let outcome = call(&local(), json!({ "url": server.url("/"), "timeout": 0.3 }));
            assert_eq!(outcome.status, OutcomeStatus::TimedOut, "{outcome:?}");
            assert_eq!(outcome.message.unwrap(), "request to `127.0.0.1` timed out after 0.3 s");
            assert!(start.elapsed() > Duration::from_millis(290), "{:?}", start.elapsed());
        };
        let pause = Duration::from_millis(20);
        quick(Server::new(|_, _| {
            std::thread::sleep(LONG);
            Ok(())
        }));
        quick(Server::new(move |_, client| for_ever(client, b"H", pause)));
        quick(Server::new(move |_, client| {
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
            for_ever(client, b"a", pause)
        }));
        quick(Server::new(move |_, client| {
            for_ever(client, b"HTTP/1.1 103 Early Hints\r\n\r\n", pause)
        }));
        quick(Server::new(move |_, client| {
            std::thread::sleep(Duration::from_millis(80));
            client.write_all(redirect(302, "/again").as_bytes())
        }));
        // The idle timeout can be shorter.
        let idle = Some(Duration::from_secs(2));
        let limits = RunLimits { timeout: TIMEOUT, idle, ..RunLimits::default() };
        let tool = HttpRequest::new(Hosts::new(["127.0.0.1"]).unwrap(), limits);
        let server = Server::new(|_, client| {
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\nbegin")?;
            client.flush()?;
            std::thread::sleep(LONG);
            Ok(())
        });
        let outcome = get(&tool, &server.url("/"));
        assert_eq!(outcome.message.unwrap(), "request to `127.0.0.1` timed out after 2 s");
        let server = Server::new(|_, client| {
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
            for _ in 0..8 {
                client.write_all(b".")?;
                client.flush()?;
                std::thread::sleep(Duration::from_millis(300));
            }
            Ok(())
        });
        assert_eq!(output(get(&tool, &server.url("/")))["body"], "........");
    }

    #[test]
    fn an_answer_that_is_none_is_told_as_such() {
        for said in [
            "",
            "<html>HTTP/0.9</html>",
            "HTTP/1.1 9999 Over\r\n\r\n",
            "HTTP/1.1 0 Zero\r\n\r\n",
            "HTTP/1.1 abc\r\n\r\n",
            "HTTP/1.1 200 OK\r\nno header\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
            "HTTP/2 200\r\n\r\n",
            "SSH-2.0-OpenSSH_9.2\r\n",
        ] {
            let server = Server::new(move |_, client| {
                client.write_all(said.as_bytes())?;
                Ok(())
            });
            let outcome = get(&local(), &server.url("/"));
            assert_eq!(outcome.status, OutcomeStatus::Failed, "{said:?}: {outcome:?}");
            let told = "`127.0.0.1` did not answer with HTTP: ";
            assert!(outcome.message.as_ref().unwrap().starts_with(told), "{said:?}: {outcome:?}");
        }
        let promising = Server::new(|_, client| {
            let hints = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(2000);
            for_ever(client, hints.as_bytes(), Duration::ZERO)
        });
        let outcome = get(&local(), &promising.url("/"));
        assert_eq!(outcome.status, OutcomeStatus::Failed);
        assert!(outcome.message.unwrap().ends_with(": too many bytes before the response"));
        let whole = answer("200 OK", "", &"0123456789".repeat(10));
        for tenth in 1..10 {
            let part = whole[..whole.len() * tenth / 10].to_owned();
            let outcome = get(&local(), &Server::saying(part).url("/"));
            assert_eq!((outcome.status, outcome.output), (OutcomeStatus::Failed, None), "{tenth}");
        }
        let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n";
        for part in ["", "3\r\nab", "zz\r\n", "-1\r\n", "ffffffffffffffff0\r\n"] {
            let outcome = get(&local(), &Server::saying(format!("{chunked}{part}")).url("/"));
            assert_eq!(outcome.status, OutcomeStatus::Failed, "{part:?}: {outcome:?}");
            let told = "the response of `127.0.0.1` could not be read completely: ";
            assert!(outcome.message.unwrap().starts_with(told), "{part:?}");
        }
        for encoding in ["gzip", "deflate", "br"] {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\n");
            let broken = Server::saying(format!("{head}content-length: 4\r\n\r\nnope"));
            assert_eq!(get(&local(), &broken.url("/")).status, OutcomeStatus::Failed, "{encoding}");
            let empty = Server::saying(format!("{head}content-length: 0\r\n\r\n"));
            assert_eq!(output(get(&local(), &empty.url("/")))["body"], "", "{encoding}");
        }
        let outcome = get(&local(), &format!("http://{}/", nowhere()));
        assert_eq!(outcome.status, OutcomeStatus::Failed);
        assert!(outcome.message.unwrap().starts_with("cannot connect to `127.0.0.1`: "));
    }
}
