//! Skills for agents: read them, check them, gather them into a library, match and disclose them.
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
mod name;
mod invisible;
mod finding;
mod skill;
mod definition;
mod parse;
mod render;
mod revise;
mod validate;
mod fix;
mod coded;
mod recall;
mod gather;
mod load;
mod library;
mod visits;
mod keeper;
mod news;
mod doctor;
mod matching;
mod tokens;
mod shorten;
mod marker;
mod invoke;
mod disclose;
mod describe;
mod catalog;
mod use_skill;
mod taken;
mod context;
mod lab;
#[doc(hidden)]
pub mod attempt;

#[doc(hidden)]
pub use crate::matching::fitting;
pub use crate::{
    bundled::bundled,
    catalog::{Catalog, Cataloging, Format, block, catalog},
    context::{
        Call, Change, Choice, Chosen, Counts, Extract, FitError, Fitted, HistoryError, Message,
        Offer, Placed, Priority, Prompt, Remedy, Role, Summarise, Usage, Window, choose, fit,
        fit_again, history, request,
    },
    definition::{Definition, DefinitionError, Step, definition, parameters},
    describe::Describer,
    disclose::{Disclosure, Level, Thresholds, ThresholdsError, disclose},
    discover::{Directory, HERE, PRESETS, Preset, preset},
    doctor::{
        CLIENTS, Checkup, Citation, Clash, Client, Crowded, Diagnosis, Examined, Fact, Form,
        Letters, Location, Misnamed, Note, Reader, Spot, Suggestion, Surroundings, Symptom,
        Trouble, VARIABLES, Verdict, client, common_spot, examine, installed, suggestions,
    },
    finding::{Finding, Severity},
    fix::{Fixed, fix, has_fix},
    invisible::{invisible, visible, without_invisible},
    invoke::{argument_names, invoke},
    keeper::{Keeper, Watching},
    lab::{
        Because, Confusion, Evaluation, Expected, Family, Lab, Member, Probe, Progress, Score,
        Standing, Studied, Study, Tested, Thief, Trial, Trials,
    },
    library::{Library, LoadError, Options},
    marker::Marker,
    matching::{
        Activate, Activation, Embedder, EmbedderError, Field, Match, Matching, Reason, Strategy,
        Tier, Unknown, activate, matches, matches_among, matches_by, nearest, why,
    },
    news::{News, news},
    parse::{FrontmatterError, Parsed, frontmatter_json, parse},
    render::{render, render_definition},
    revise::{ReviseError, revise, revise_status},
    rule::{Profile, RULES, Rule, rule},
    shorten::{brief_line, defused},
    skill::{AllowedTools, Dialect, Kind, Manifest, Origin, Resource, Scope, Skill, Status, Type},
    source::{
        Cache, DEEPEST, Found, Limits, Listing, Memory, ReadError, Search, Source, Stamp, Visit,
        What, skill_of,
    },
    taken::Taken,
    tokens::Vocabulary,
    use_skill::{UseSkill, UsedSkill, use_skill},
    validate::{
        CheckError, Checked, CheckedFile, CheckedScript, check, check_directories, check_sources,
        check_text, is_plain_name,
    },
};
pub use prowess_frontmatter as frontmatter;
