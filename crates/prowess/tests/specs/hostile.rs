//! Bad input: it ends in a finding, is printed safely and affects no other skill.

use crate::world::World;

/// A world with one good skill, for the bad ones to leave alone.
fn world() -> World {
    World::new().skill("good", "Stays when asked")
}

mod a_link_is_followed_only_inside {
    use super::*;

    #[test]
    fn a_resource_that_becomes_a_link_out_cannot_be_read() {
        let world = world().file("secret.txt", "secret").file("skills/good/notes.md", "n");
        let library = world.load();
        world.remove("skills/good/notes.md");
        let _world = world.link("skills/good/notes.md", "../../secret.txt");
        let error = library.get("good").unwrap().read("notes.md").unwrap_err();
        assert!(error.to_string().contains("leads out of its directory"), "{error}");
    }
}
