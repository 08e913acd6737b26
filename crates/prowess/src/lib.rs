//! Skills for agents: read them, check them, gather them into a library, and disclose them.
//!
//! The modules stand in the order a skill passes through them. Nothing here is async, prints, or
//! reads the environment; only `source` opens files; and a malformed skill is never an `Err`.
//!
//! ```
//! use prowess::{Library, Options};
//!
//! let options = Options { sources: vec![prowess::bundled()], ..Options::default() };
//! let library = Library::load(&options)?;
//! let skill = library.get("create-pr").expect("it is bundled");
//! println!("{}", skill.manifest.description);
//! # Ok::<(), prowess::LoadError>(())
//! ```
#![warn(missing_docs)]

mod discover;
mod source;
mod bundled;
mod rule;
mod finding;
mod skill;
mod definition;
mod parse;
mod render;
mod validate;
mod gather;
mod load;
mod library;
mod keeper;
mod matching;
mod tokens;
mod disclose;
mod use_skill;
mod context;

pub use crate::{
    bundled::bundled,
    context::{
        Call, Change, Choice, Chosen, Extract, FitError, Fitted, HistoryError, Message, Offer,
        Placed, Priority, Prompt, Remedy, Role, Summarise, Usage, Window, choose, fit, history,
        request,
    },
    definition::{Definition, DefinitionError, Step, definition, parameters},
    disclose::{Disclosure, Level, disclose},
    discover::{Directory, PRESETS, Preset, preset},
    finding::{Finding, Severity},
    keeper::Keeper,
    library::{Library, LoadError, Options},
    matching::{
        Activate, Activation, Field, Match, Matching, Reason, Strategy, Unknown, activate, matches,
    },
    parse::{Parsed, parse},
    render::{render, render_definition},
    rule::{Profile, RULES, Rule, rule},
    skill::{AllowedTools, Dialect, Kind, Manifest, Origin, Resource, Scope, Skill, Status, Type},
    source::{Found, Limits, Listing, Memory, ReadError, Source, Visit, What},
    tokens::{Vocabulary, estimate},
    use_skill::{UseSkill, UsedSkill, use_skill},
    validate::{CheckError, Checked, check, check_sources, check_text},
};
pub use prowess_frontmatter as frontmatter;
