//! `specs/models.md`: the costs of a model in the program.

use serde_json::json;

use crate::{
    model_server::{Answer, KEY, ModelServer},
    server::answer,
    world::World,
};

mod a_reply_is_heard_as_it_comes {
    use super::*;

    #[test]
    fn what_is_estimated_counts_against_a_limit() {
        let call = json!({"choices": [{"finish_reason": "tool_calls", "message": {"tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "read_file", "arguments": "{}"}},
        ]}}]});
        let call = answer("200 OK", "content-type: application/json\r\n", &call.to_string());
        let server = ModelServer::answering(move |_| Answer::bytes(call.clone()));
        let (world, url) = (World::new(), server.url());
        let run = |more: &[&str]| {
            let arguments = ["ask", "hello", "--base-url", &url, "--model", "m"];
            let arguments: Vec<&str> = arguments.iter().chain(more).copied().collect();
            world.run_with_env(&[("OPENAI_API_KEY", KEY)], &arguments)
        };
        let ran = run(&["--max-tokens", "5", "-v"]);
        assert!(ran.code != Some(0) && server.requests().len() == 1, "{}", ran.stderr);
        assert!(ran.stderr.contains("tokens unknown, about "), "{}", ran.stderr);
        assert!(ran.stderr.contains("5 tokens"), "{}", ran.stderr);
        let told = run(&["--max-tokens", "5", "--json"]).json();
        assert_eq!(told["usage"]["estimated"], true, "{told}");
    }
}
