//! `specs/http.md`: the tool with the secrets that the program knows.

use serde_json::json;

use crate::{
    server::{Server, answer},
    world::World,
};

mod only_hosts_that_may_be_asked_are {
    use super::*;

    #[test]
    fn secrets_are_found_in_the_environment_by_their_names() {
        const KEY: &str = "sk-proj-aB3dE6gH9kL2";
        let server = Server::saying(answer("200 OK", "", "fine"));
        let world = World::new()
            .file("home/.config/prowess/prowess.toml", "[policy]\nhosts = ['127.0.0.1']\n");
        let input = json!({"url": server.url(&format!("/?q={KEY}"))}).to_string();
        for variable in ["OPENAI_API_KEY", "GITHUB_TOKEN", "db_password"] {
            let ran = world.run_with_env(&[(variable, KEY)], &["tool", "http_request", &input]);
            assert_eq!(ran.code, Some(1), "{}", ran.stderr);
            let told = format!("contains the value of `{variable}`");
            assert!(ran.stderr.contains(&told) && !ran.stderr.contains(KEY), "{}", ran.stderr);
        }
        assert_eq!(server.connections(), 0);
        let ran = world.run_with_env(&[("UNRELATED", KEY)], &["tool", "http_request", &input]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
}
