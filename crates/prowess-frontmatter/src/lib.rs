//! The frontmatter of a `SKILL.md`: split it off, read it, write it, edit it in place.
//!
//! ```
//! use prowess_frontmatter::{quote, read, split};
//!
//! let text = "---\nname: pdf\ndescription: Fills in forms\n---\n# PDF\n";
//! let document = split(text);
//! let fields = read(document.frontmatter.as_ref().expect("there are two delimiters").text)?;
//! assert_eq!(fields[1].value.as_text(), Some("Fills in forms"));
//! assert_eq!(document.body.text, "# PDF\n");
//!
//! // An edit changes one value; every other byte stays as it is.
//! let quoted = quote(text, &["description"])?;
//! assert_eq!(quoted, text.replace("Fills in forms", "\"Fills in forms\""));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
