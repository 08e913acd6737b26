//! Reads skills from directories: finds the folders, reads the files, parses the frontmatter.
//!
//! Only `source` opens files. `scan_cache` caches the result for each folder.

pub(crate) mod manifest;
pub(crate) mod manifest_field;
pub(crate) mod source;
pub(crate) mod bundled;
pub(crate) mod gather;
pub(crate) mod name;
pub(crate) mod parse;
pub(crate) mod definition;
pub(crate) mod memo;
pub(crate) mod skill;
pub(crate) mod coded;
pub(crate) mod scan_cache;
