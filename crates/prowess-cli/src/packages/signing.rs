//! Who must have signed a package, and who has.

use std::fs;

use prowess_packages::{
    ContentDigest, FetchedTree, PackageManifest, Signer, SkillSource, TreeFile, verify_signature,
};

use super::PackageSession;
use crate::cli_error::CliError;

/// The files of a signature in a package: it is for the text of the digest of all other files, none of which counts as
/// executable, because registries lose that.
pub(crate) const SIGNATURES: [&str; 2] = ["prowess.minisig", "prowess.sigstore.json"];

/// Returns who signed a package, if the settings say that somebody must have.
pub(crate) fn check(
    tree: &FetchedTree,
    session: &PackageSession,
) -> Result<Option<Signer>, CliError> {
    let mut signer = None;
    // What the user asks for and what a project asks for both apply.
    for is_of_project in [false, true] {
        let allowed = required(&tree.source, is_of_project, session)?;
        if !allowed.is_empty() {
            signer = Some(verify(tree, &allowed)?);
        }
    }
    Ok(signer)
}

/// Returns whether somebody must have signed what comes from a source, as far as the settings say.
pub(crate) fn is_required(
    source: &SkillSource,
    session: &PackageSession,
) -> Result<bool, CliError> {
    for is_of_project in [false, true] {
        if !required(source, is_of_project, session)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the signers of whom one must have signed a package; empty if nobody must.
fn required(
    source: &SkillSource,
    is_of_project: bool,
    session: &PackageSession,
) -> Result<Vec<Signer>, CliError> {
    let all = session.config.packages.signers.value.0.iter();
    let lines = all
        .filter(|it| it.is_of_project == is_of_project)
        .map(|it| format!("{} = {}\n", toml_text(&it.pattern), serde_json::json!(it.identities)));
    let text = format!("[packages.signers]\n{}", lines.collect::<String>());
    let manifest = PackageManifest::parse(&text)
        .map_err(|error| CliError::new(format!("`packages.signers` cannot be used: {error}")))?;
    let required = manifest.settings().required_signers(source).unwrap_or_default();
    required
        .iter()
        .map(|it| {
            it.parse::<Signer>().map_err(|error| {
                CliError::new(format!("`packages.signers` cannot be used: {error}"))
                    .hint(error.hint())
            })
        })
        .collect()
}

fn toml_text(text: &str) -> String {
    serde_json::json!(text).to_string()
}

fn verify(tree: &FetchedTree, allowed: &[Signer]) -> Result<Signer, CliError> {
    let source = tree.source.name();
    let signature = tree.files.iter().find(|it| SIGNATURES.contains(&&*it.path));
    let Some(signature) = signature else {
        let names: Vec<String> = allowed.iter().map(|it| format!("`{it}`")).collect();
        let message = format!("`{source}` is not signed, and must be by {}", names.join(" or "));
        return Err(CliError::invalid_input(message).hint(
            "`packages.signers` in the settings asks for it; see `prowess config packages.signers`",
        ));
    };
    let content = signed_text(&tree.files);
    let text = fs::read_to_string(tree.folder.join(&signature.path)).map_err(|_| {
        CliError::invalid_input(format!("the signature of `{source}` cannot be read"))
    })?;
    verify_signature(content.as_bytes(), &text, allowed).map_err(|error| {
        CliError::invalid_input(format!("`{source}` cannot be installed: {error}"))
            .hint(error.hint())
    })
}

/// Returns the text that a signature of files is for.
pub(crate) fn signed_text(files: &[TreeFile]) -> String {
    let signed = files.iter().filter(|it| !SIGNATURES.contains(&&*it.path));
    let signed = signed.map(|it| TreeFile::new(&*it.path, it.digest, it.size, false));
    ContentDigest::of(&signed.collect::<Vec<_>>()).to_string()
}
