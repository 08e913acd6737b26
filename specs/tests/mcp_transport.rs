//! Clients of `prowess mcp`, well-behaved and not.

use serde_json::json;

use crate::{
    mcp_client::{McpClient, Revision, V2025},
    world::World,
};

mod a_client_speaks_with_the_program_over_its_standard_input_and_output {
    use super::*;

    #[test]
    fn both_kinds_of_client_are_answered() {
        let world = World::new().skill("one", "Does one thing. Use when one thing is to be done.");
        let mut told = Vec::new();
        for revision in [Revision::Handshake("2025-06-18"), V2025, Revision::Stateless] {
            let mut client = McpClient::with(&world, revision, &[]);
            assert_eq!(client.server["capabilities"]["tools"], json!({}));
            told.push(client.request("tools/list", json!({}))["tools"].take());
            let ended = client.leave();
            assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{revision:?}");
        }
        assert!(told[0].as_array().is_some_and(|it| !it.is_empty()));
        assert_eq!(told[0], told[1]);
        assert_eq!(told[0], told[2]);
    }
}
