//! The scenarios of `specs/sources.md`.

mod a_source_is_written_as_in_other_package_managers {
    use prowess_packages::{SkillSource, SourceKind};

    #[test]
    fn an_owner_and_a_repository_are_on_github() {
        let source: SkillSource = "anthropics/skills@pdf".parse().unwrap();
        let SourceKind::Git(git) = source.kind else { panic!("{source:?}") };
        assert_eq!(git.url, "https://github.com/anthropics/skills");
        assert_eq!(source.skills, ["pdf"]);
    }
}
