//! Whatever the skills and the request are, an answer keeps its guarantees.

use std::sync::Arc;

use proptest::prelude::*;
use prowess::{Library, Matching, Memory, Options, Scope, activate, matches, why};

/// Returns a library of skills with these descriptions and bodies.
fn library(skills: &[(String, String)]) -> Library {
    let files = skills.iter().enumerate().map(|(number, (description, body))| {
        let description = serde_json::Value::from(&**description);
        let text = format!("---\nname: skill-{number}\ndescription: {description}\n---\n{body}\n");
        (format!("skill-{number}/SKILL.md"), text.into_bytes())
    });
    let source = Arc::new(Memory::new(Scope::Project, "memory", files));
    Library::load(&Options { sources: vec![source], ..Options::default() }).unwrap()
}

/// Generates words that recur, among arbitrary text.
fn text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => "(deploy|Deploys|stag[ei]ng|front-end|GitHub|c\\+\\+|k8s|den|部署|テスト|배포|código|тест|skill-1)",
        1 => "@?\\PC{0,12}",
        1 => any::<String>(),
    ];
    prop::collection::vec(word, 0..12).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_answer_is_ordered_bounded_and_the_same_again(
        skills in prop::collection::vec((text(), text()), 0..6),
        request in text(),
    ) {
        let library = library(&skills);
        let found = matches(&library, &request, 10);
        let mut before = 1.0;
        for it in &found {
            prop_assert!((0.0..=before).contains(&it.confidence), "{} after {before}", it.confidence);
            prop_assert!(it.score.is_finite());
            before = it.confidence;
            let shares: f64 = why(&library, &request, it.skill).iter().map(|it| it.share).sum();
            prop_assert!((0.0..1.001).contains(&shares), "{shares}");
        }
        let names = |library: &Library| -> Vec<String> {
            matches(library, &request, 10).iter().map(|it| it.skill.manifest.name.to_string()).collect()
        };
        prop_assert_eq!(names(&library), names(&library.reload().unwrap()));
        for strategy in prowess::Strategy::ALL {
            let how = Matching { strategy, max_active: 2, ..Matching::default() };
            let active = activate(&library, &request, &how).active;
            prop_assert!(active.len() <= 2);
        }
    }
}
