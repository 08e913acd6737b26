//! `specs/agent.md`: the program's output about an agent's actions.

use crate::world::World;

mod the_model_is_shown_the_skills_that_a_request_needs {
    use super::*;

    #[test]
    fn the_program_shows_what_the_policy_leaves() {
        let world = World::new()
            .file(
                "skills/deploy/SKILL.md",
                "---\nname: deploy\ndescription: Deploy the app to a server\nrequires-approval: true\n---\n\n# Deploying\n",
            )
            .skill("invoice", "Write invoices to customers")
            .file("prowess.toml", "[[policy.rules]]\nskill = \"invoice\"\ndecision = \"deny\"\n");
        let ran = world.run(["prompt", "@deploy it, @invoice them", "--dir", "skills"]);
        let told = ran.stdout();
        assert!(told.contains("Deploy the app to a server"), "{told}");
        assert!(!told.contains("# Deploying") && !told.contains("Write invoices"), "{told}");
        assert!(ran.stderr.contains("`deploy` needs approval"), "{}", ran.stderr);
    }
}
