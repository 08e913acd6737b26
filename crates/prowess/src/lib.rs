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
mod scan_cache;
mod gather;
mod load;
mod library;
mod scanner;
mod live_library;
mod library_changes;
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
mod activated;
mod context;
mod lab;
#[doc(hidden)]
pub mod attempt;

#[doc(hidden)]
pub use crate::matching::fitting;
pub use crate::{
    activated::ActivatedSkills,
    bundled::bundled,
    catalog::{Catalog, Cataloging, Format, block, catalog},
    context::{
        Call, Choice, ChosenSkill, ContextWindow, Counts, Extract, FitChange, FitError, FitStep,
        FittedPrompt, HistoryError, Message, Offer, PlacedSkill, Priority, Prompt, Role, Summarise,
        Usage, choose, fit, fit_again, history, request,
    },
    definition::{CompositeStep, Definition, DefinitionError, definition, parameters},
    describe::Describer,
    disclose::{Disclosure, Level, Thresholds, ThresholdsError, disclose},
    discover::{Directory, HERE, PRESETS, Preset, preset},
    doctor::{
        CLIENTS, Checkup, Citation, Clash, Client, CrowdedClient, Diagnosis, DirectoryReader,
        ExaminedSkill, Fact, Form, Letters, Location, NameToChange, SkillTrouble, Spot, Suggestion,
        Surroundings, Symptom, VARIABLES, Verdict, VerdictReason, client, common_spot, examine,
        installed, suggestions,
    },
    finding::{Finding, Severity},
    fix::{FixedText, fix, has_fix},
    invisible::{invisible, visible, without_invisible},
    invoke::{argument_names, invoke},
    lab::{
        Competitor, Confusion, Evaluation, ExpectedMatch, Lab, MissReason, NearDuplicate,
        NearDuplicates, Probe, ProbeStatus, Progress, Score, StudiedSkill, Study, TestedRequest,
        Trial, Trials,
    },
    library::{Library, LoadError, Options},
    library_changes::{LibraryChange, library_changes},
    live_library::{LiveLibrary, Watching},
    marker::Marker,
    matching::{
        Activate, Activation, Embedder, EmbedderError, Match, MatchedField, Matching, Reason,
        Strategy, Tier, Unknown, activate, matches, matches_among, matches_by, nearest, why,
    },
    parse::{FrontmatterError, ParsedSkill, frontmatter_json, parse},
    render::{render, render_definition},
    revise::{ReviseError, revise, revise_status},
    rule::{Profile, RULES, Rule, rule},
    shorten::{brief_line, defused},
    skill::{
        AllowedTools, Dialect, Manifest, Origin, Resource, ResourceKind, Scope, Skill, Status, Type,
    },
    source::{
        Cache, DEEPEST, DiscoveredSkill, Listing, Memory, ReadError, Search, SizeLimits, Source,
        Stamp, Visit, VisitResult, skill_of,
    },
    tokens::Tokenizer,
    use_skill::{UseSkillInput, UsedSkill, use_skill},
    validate::{
        CheckError, CheckResult, CheckedFile, CheckedScript, check, check_directories,
        check_sources, check_text, is_plain_name,
    },
};
pub use prowess_frontmatter as frontmatter;
