//! The package registries of this user: from settings, otherwise those of the package managers.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use prowess_cli::settings::Config;
use prowess_runtime::preparation::Registries;

/// Returns the package registries that environments are prepared from.
pub(crate) fn registries(config: &Config) -> Registries {
    let settings = &config.prepare;
    let home = env::home_dir();
    let default = Registries::default();
    let python = settings.python_index.value.as_ref().map(|it| it.as_str().to_owned());
    let python =
        python.or_else(|| variable(&["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"]));
    let python = python.or_else(|| {
        let own = [".config/pip/pip.conf", ".pip/pip.conf"];
        let mut files: Vec<PathBuf> =
            home.iter().flat_map(|it| own.map(|own| it.join(own))).collect();
        files.push("/etc/pip.conf".into());
        files.iter().find_map(|it| address_in_file(it, "index-url"))
    });
    let npm = settings.npm_registry.value.as_ref().map(|it| it.as_str().to_owned());
    let npm = npm.or_else(|| variable(&["npm_config_registry", "NPM_CONFIG_REGISTRY"]));
    let npm = npm.or_else(|| address_in_file(&home?.join(".npmrc"), "registry"));
    Registries {
        python: python.unwrap_or(default.python),
        npm: npm.unwrap_or(default.npm),
        jsr: default.jsr,
        hosts: settings.hosts.value.clone(),
    }
}

/// Returns the first of these variables that is an address.
fn variable(names: &[&str]) -> Option<String> {
    names.iter().find_map(|it| env::var(it).ok().filter(|it| is_address(it)))
}

/// Returns an address from a file of lines such as `index-url = https://…`.
fn address_in_file(file: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        let value = value.trim().trim_matches('"');
        (key.trim() == name && is_address(value)).then(|| value.to_owned())
    })
}

fn is_address(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}
