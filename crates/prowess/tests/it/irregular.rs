use prowess::{Finding, Limits, Profile, Severity, check, parse};
use std::path::{Path, PathBuf};

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/irregular");
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(root).unwrap().map(|it| it.unwrap().path()).collect();
    folders.sort();
    folders
}
fn shown(findings: &[Finding]) -> String {
    findings
        .iter()
        .map(|it| {
            let weight = match it.severity {
                Severity::Info => 'I',
                Severity::Warning => 'W',
                Severity::Error => 'E',
            };
            format!(
                "{weight}{} {}",
                it.line.map_or("-".to_owned(), |it| it.to_string()),
                it.rule.code
            )
        })
        .collect::<Vec<_>>()
        .join(", ")
}
#[test]
fn dump() {
    for folder in folders() {
        let file = std::fs::read_dir(&folder)
            .unwrap()
            .map(|it| it.unwrap().path())
            .find(|it| it.is_file())
            .unwrap();
        let bytes = std::fs::read(&file).unwrap();
        let slug = folder.file_name().unwrap().to_str().unwrap();
        let parsed = parse(&bytes, Some(slug), Profile::Lenient);
        let loads = parsed
            .manifest
            .map_or("-".to_owned(), |it| format!("{} | {}", it.name, it.description));
        eprintln!("== {slug}\n   {loads:?}");
        for profile in [Profile::Lenient, Profile::Spec, Profile::Reference] {
            match check(&[folder.clone()], profile, &Limits::default()) {
                Ok(checked) => {
                    eprintln!("   {profile:?}: {} ({})", shown(&checked.findings), checked.skills);
                    if profile == Profile::Spec {
                        for it in &checked.findings {
                            eprintln!(
                                "        {}: {} [{}] {:?}",
                                it.rule.code, it.message, it.hint, it.columns
                            );
                        }
                    }
                }
                Err(error) => eprintln!("   {profile:?}: {error}"),
            }
        }
    }
}
