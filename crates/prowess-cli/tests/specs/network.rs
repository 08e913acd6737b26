//! Hosts that a script may connect to: at both sandbox levels, as the user of the tests and as an
//! unprivileged user.

use std::fs;

use serde_json::{Value as Json, json};

use crate::{
    server::{Server, answer},
    world::{Ran, SKILLS, World},
};

mod hosts_are_approved_with_a_script {
    use super::*;

    /// Returns a world with a script that requests the URLs of its arguments.
    fn world() -> World {
        let text = "for url in \"$@\"; do curl -sS \"$url\" || true; done\n";
        World::new().skill("net", "Asks servers").file("skills/net/scripts/get.sh", text)
    }

    fn run(world: &World, flags: &[&str], urls: &[&str]) -> Ran {
        let words = ["run", "net", "--script", "scripts/get.sh"];
        world.run(words.iter().chain(&SKILLS).chain(flags).chain(&["--"]).chain(urls))
    }

    fn outcome(ran: &Ran) -> Json {
        ran.json()["outcome"].take()
    }

    #[test]
    fn a_script_and_its_hosts_are_approved_together() {
        let server = Server::saying(answer("200 OK", "", "in\n"));
        let (host, url) = (server.address.to_string(), server.url("/"));
        let world = world();
        let net = ["--net", &*host];
        let refused = run(&world, &[&net[..], &["--json"]].concat(), &[&url]);
        let said = outcome(&refused);
        assert_eq!((refused.code, &said["status"]), (Some(1), &json!("refused")), "{said:#}");
        let message = said["message"].as_str().unwrap();
        assert!(message.contains(&format!("with a connection to `{host}`")), "{message}");
        let hint = said["hint"].as_str().unwrap();
        let typed = format!("--net {host} --json --yes -- {url}`, or answer");
        assert!(hint.starts_with("use `prowess run net ") && hint.contains(&typed), "{hint}");
        let line = format!("run net --script scripts/get.sh --dir skills --net {host} -- {url}");
        let no = world.run_at_terminal("n\n", &line);
        assert!(
            no.stdout().contains(&format!("with a connection to `{host}`?")),
            "{}",
            no.stdout()
        );
        assert_eq!(server.connections(), 0);
        assert_eq!(run(&world, &[&net[..], &["--yes"]].concat(), &[&url]).stdout(), "in\n");
        assert_eq!(run(&world, &net, &[&url]).stdout(), "in\n");
        // The same list, in another order and twice.
        let both = format!("other.test,{host}");
        assert_eq!(run(&world, &["--net", &both], &[&url]).code, Some(1));
        let again = run(&world, &["--net", &both, "--yes"], &[&url]);
        assert_eq!(again.stdout(), "in\n");
        let all = world.run(["approvals"]);
        let hosts = format!("connect to {host}, other.test (by --yes)");
        assert!(all.stdout().contains(&hosts), "{}", all.stdout());
        let turned = ["--net", &*host, "--net", "other.test", "--net", &*host];
        assert_eq!(run(&world, &turned, &[&url]).stdout(), "in\n");
        // Without hosts there is no question and no connection.
        let before = server.connections();
        let without = run(&world, &[], &[&url]);
        assert_eq!((without.code, without.stdout()), (Some(0), ""), "{}", without.stderr);
        assert_eq!(server.connections(), before);
        world.write("skills/net/scripts/get.sh", "curl -sS \"$1\"; echo more\n");
        let changed = run(&world, &turned, &[&url]);
        assert_eq!(changed.code, Some(1));
        assert!(changed.stderr.contains("changed since"), "{}", changed.stderr);
    }

    #[test]
    fn every_connection_is_told_and_logged() {
        let server = Server::saying(answer("200 OK", "", "in\n"));
        let (host, url) = (server.address.to_string(), server.url("/"));
        let world = world();
        let urls = [&*url, "http://evil.test/"];
        let json = run(&world, &["--net", &host, "--yes", "--json"], &urls);
        let network = &outcome(&json)["network"];
        let (first, second) = (&network[0], &network[1]);
        assert_eq!((&first["host"], &first["port"]), (&json!("127.0.0.1"), &json!(server.port())));
        assert_eq!(first["refused"], Json::Null);
        assert!(
            first["bytes_sent"].as_u64() > Some(20) && first["bytes_received"].as_u64() > Some(20)
        );
        let why = "host `evil.test` is not allowed; run with `--net evil.test`";
        let wanted = json!({
            "host": "evil.test", "port": 80, "bytes_sent": 0, "bytes_received": 0, "refused": why
        });
        assert_eq!((second, &network[2]), (&wanted, &Json::Null));
        let plain = run(&world, &["--net", &host], &urls);
        assert!(
            plain.stderr.contains(&format!("no connection to evil.test:80: {why}")),
            "{}",
            plain.stderr
        );
        assert!(!plain.stderr.contains("connected to"), "{}", plain.stderr);
        let verbose = run(&world, &["--net", &host, "-v"], &urls);
        assert!(verbose.stderr.contains(&format!("connected to {host}: ")), "{}", verbose.stderr);
        let log = fs::read_to_string(world.path("home/.local/state/prowess/audit.jsonl")).unwrap();
        assert!(log.contains(&format!("connect to {host}, evil.test:80 (refused)")), "{log}");
        assert!(log.contains(&format!("with a connection to `{host}`")), "{log}");
    }

    #[test]
    fn settings_give_hosts_to_scripts_and_a_project_s_file_gives_none() {
        let server = Server::saying(answer("200 OK", "", "in\n"));
        let (host, url) = (server.address.to_string(), server.url("/"));
        let world = world();
        let settings = |hosts: &str| format!("[policy]\nscript_hosts = [{hosts}]\n");
        let input = json!({ "name": "net", "script": "scripts/get.sh", "arguments": [url] });
        let call = |flags: &[&str]| {
            let words = ["tool", "run_skill", &*input.to_string(), "--json"].map(str::to_owned);
            let words = words.iter().map(|it| &**it).chain(SKILLS).chain(flags.iter().copied());
            outcome(&world.run(words))
        };
        // A project's file alone allows nothing.
        world.write("prowess.toml", settings(&format!("\"{host}\"")));
        assert_eq!(call(&["--yes"])["stdout"], "");
        assert_eq!(server.connections(), 0);
        world.write(
            "home/.config/prowess/prowess.toml",
            settings(&format!("\"{host}\", \"*.a.test\"")),
        );
        assert_eq!(call(&[])["status"], "refused");
        assert_eq!(call(&["--yes"])["stdout"], "in\n");
        assert_eq!(call(&[])["stdout"], "in\n");
        // It can remove them.
        world.write("prowess.toml", settings("\"x.a.test\""));
        let less = call(&["--yes"]);
        assert_eq!(less["network"][0]["refused"].as_str().unwrap().split(';').next(), {
            Some("host `127.0.0.1` is not allowed")
        });
    }

    #[test]
    fn what_net_cannot_mean_is_told() {
        let world = world();
        for (flags, part) in [
            (&["--net", "a b"][..], "`a b` is not a host"),
            (&["--net", "https://example.com/"], "is not a host"),
            (&["--net", "example.com", "--unsandboxed"], "--unsandboxed"),
        ] {
            let ran = run(&world, flags, &[]);
            assert_eq!(ran.code, Some(2), "{}", ran.stderr);
            assert!(ran.stderr.contains(part), "{}", ran.stderr);
        }
        let told = world.run(["run", "net", "--net", "example.com"].iter().chain(&SKILLS));
        assert_eq!(told.code, Some(1));
        assert!(told.stderr.contains("`net` is not a script"), "{}", told.stderr);
    }
}
