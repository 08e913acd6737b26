//! The frontmatter of a `SKILL.md`: split it off, read it, write it, edit it in place.
//!
//! The modules are in the order a text passes through them. Nothing here knows what a skill is,
//! nothing does I/O, and there is no dependency. [`read()`] accepts the commonly written part of
//! YAML (scalars of every style, block and flow collections, comments) and returns
//! [`UnsupportedYaml`] with a line for anything else, so that a caller can pass it to a YAML
//! library.
#![warn(missing_docs)]

mod split;
mod value;
mod scan;
mod read;
mod write;
mod edit;

/// A fingerprint of the code of this crate, for keys of caches of what it has read.
#[doc(hidden)]
pub const CODE: &str = env!("PROWESS_FRONTMATTER_CODE");

pub use crate::{
    edit::{
        EditError, delimit, nest, quote, remove, remove_repeats, remove_within, rename, set,
        set_within,
    },
    read::{UnsupportedYaml, read},
    split::{Block, Document, Quirk, split},
    value::{Field, Kind, Scalar, Style, Value},
    write::{scalar, write},
};
