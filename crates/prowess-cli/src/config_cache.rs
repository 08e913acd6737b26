//! The settings that a command has read.

use std::sync::{Arc, Mutex};

use prowess::lock;
use prowess_cli::settings::{Config, ConfigError, Places};

/// The settings that this command has read, by their places. A command reads them once, so that
/// they stay consistent if a file changes meanwhile. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfigCache(Arc<Mutex<Vec<(Places, Config)>>>);

impl ConfigCache {
    /// Returns the settings of these places, and reads them on the first call.
    pub(crate) fn load(&self, places: Places) -> Result<Config, ConfigError> {
        let mut read = lock(&self.0);
        if let Some((_, config)) = read.iter().find(|it| it.0 == places) {
            return Ok(config.clone());
        }
        let config = Config::load(&places)?;
        read.push((places, config.clone()));
        Ok(config)
    }

    /// Forgets all of them, after this command has written a file of settings.
    pub(crate) fn clear(&self) {
        lock(&self.0).clear();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_read_once_until_the_cache_is_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("prowess.toml");
        let cache = ConfigCache::default();
        let top = |cache: &ConfigCache| {
            let places = Places { only: Some(file.clone()), ..Places::default() };
            cache.load(places).unwrap().matching.max_active.value
        };
        fs::write(&file, "[matching]\nmax_active = 7\n").unwrap();
        assert_eq!(top(&cache), 7);
        fs::write(&file, "[matching]\nmax_active = 8\n").unwrap();
        assert_eq!(top(&cache.clone()), 7);
        cache.clear();
        assert_eq!(top(&cache), 8);
    }

    #[test]
    fn settings_that_cannot_be_read_are_not_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("prowess.toml");
        let cache = ConfigCache::default();
        let places = Places { only: Some(file.clone()), ..Places::default() };
        assert!(cache.load(places.clone()).is_err());
        fs::write(&file, "").unwrap();
        assert!(cache.load(places).is_ok());
    }
}
