//! The secrets that the program knows: keys of models, and those in variables and settings.

use std::{env, path::Path};

#[cfg(feature = "http")]
use prowess_cli::settings::Config;
use prowess_runtime::secret::KnownSecrets;
#[cfg(feature = "http")]
use prowess_runtime::{
    secret::{KnownSecret, is_secret_value},
    text::percent_decoded,
};

#[cfg(feature = "agent")]
use crate::connection;
use crate::key_file::read_key_file;

/// Returns the known keys: those of the environment, and those of these files.
pub(crate) fn keys<'f>(files: impl IntoIterator<Item = &'f Path>) -> KnownSecrets {
    let variables = key_variables().into_iter().filter_map(|it| variable(&it));
    let of_files = files.into_iter().filter_map(|it| read_key_file(it).ok());
    KnownSecrets::new(variables.chain(of_files).map(|it| it.trim().to_owned()))
}

/// Returns the variables that contain keys of models.
#[cfg(feature = "agent")]
fn key_variables() -> Vec<String> {
    connection::key_variables().into_iter().map(str::to_owned).collect()
}

/// Returns the variables that contain keys: this build does not know the providers of models.
#[cfg(not(feature = "agent"))]
fn key_variables() -> Vec<String> {
    let names = env::vars_os().filter_map(|it| it.0.into_string().ok());
    names.filter(|it| it.ends_with("_API_KEY")).collect()
}

/// Returns a variable of the environment, unless it is empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|it| !it.trim().is_empty())
}

/// Endings of the names of variables whose values are secrets.
#[cfg(feature = "http")]
const SECRET_NAMES: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS"];

/// Returns the secrets that are never sent to a server: variables named like secrets, these key
/// files, and the password of the database.
#[cfg(feature = "http")]
pub(crate) fn known_secrets<'f>(
    config: &Config,
    files: impl Iterator<Item = &'f Path>,
) -> Vec<KnownSecret> {
    let variables = env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        let upper = name.to_ascii_uppercase();
        SECRET_NAMES.iter().any(|it| upper.ends_with(it)).then_some((name, value))
    });
    let files = files.filter_map(|it| Some((it.display().to_string(), read_key_file(it).ok()?)));
    let address = config.sql.url.value.as_ref();
    let password = address.and_then(|it| {
        let (_, behind) = it.as_str().split_once("://")?;
        let (user, _) = behind.rsplit_once('@')?;
        Some(("sql.url".to_owned(), percent_decoded(user.split_once(':')?.1).ok()?))
    });
    let all = variables.chain(files).chain(password);
    let secrets = all.map(|(name, value)| KnownSecret { name, value: value.trim().to_owned() });
    // A path to a file is not a secret itself.
    secrets.filter(|it| is_secret_value(&it.value) && !it.value.starts_with('/')).collect()
}
