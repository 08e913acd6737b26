//! Skills for agents: read them, check them, gather them into a library, match and disclose them.
//!
//! The modules are in the order a skill passes through them, and each uses only those before it.
//! Nothing here is async, prints, or reads the environment; only `read::source` opens files; and a
//! malformed skill is never an `Err`.
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

mod lock;
pub mod spec;
mod text;
mod progress;
mod finding;
mod clients;
mod read;
mod check;
mod index;
mod library;
mod matching;
mod disclosure;
mod context;
mod doctor;
mod lab;
#[doc(hidden)]
pub mod attempt;

pub use crate::{
    check::{
        fix::{FixedText, fix, has_fix},
        render::{render, render_definition},
        revise::{ReviseError, revise, revise_status},
        validate::{
            CheckError, CheckResult, CheckedFile, CheckedScript, check, check_directories,
            check_sources, check_text,
        },
    },
    clients::{
        CLIENTS, Citation, Clash, Client, Fact, Form, HERE, Letters, McpSettings, PRESETS, Preset,
        ServerShape, SettingsFormat, Spot, Symptom, VARIABLES, Verdict, client, mcp_clients,
        preset,
    },
    context::{
        Call, Choice, ChosenSkill, ContextWindow, Counts, Extract, FitChange, FitError, FitStep,
        FittedPrompt, HistoryError, Message, Offer, PlacedSkill, Priority, Prompt, Role, Summarise,
        Usage, choose, fit, fit_again, history, request,
    },
    disclosure::{
        activated::ActivatedSkills,
        catalog::{Catalog, Cataloging, Format, block, catalog},
        describe::Describer,
        disclose::{Disclosure, Level, Thresholds, ThresholdsError, disclose},
        invoke::{argument_names, invoke},
        marker::Marker,
        use_skill::{UseSkillInput, UsedSkill, use_skill},
    },
    doctor::{
        Checkup, CrowdedClient, Diagnosis, DirectoryReader, ExaminedSkill, Location, NameToChange,
        SkillTrouble, Suggestion, Surroundings, VerdictReason, common_spot, examine,
        installed_clients, suggestions,
    },
    finding::{
        Finding, Severity,
        rule::{Profile, RULES, Rule, rule},
    },
    index::{Embedder, EmbedderError, Tier, did_you_mean, name_hint, nearest},
    lab::{
        Competitor, Confusion, Evaluation, ExpectedMatch, Lab, MissReason, NearDuplicate,
        NearDuplicates, Probe, ProbeStatus, Progress, Score, StudiedSkill, Study, TestedRequest,
        Trial, Trials,
    },
    library::{
        Library, LoadError, Options,
        changes::{LibraryChange, library_changes},
        live_library::{LiveLibrary, Watching},
    },
    matching::{
        Activate, Activation, Match, MatchedField, Matching, Reason, Strategy, Unknown, activate,
        matches, matches_among, matches_by, why,
    },
    progress::WorkProgress,
    read::{
        bundled::bundled,
        definition::{CompositeStep, Definition, DefinitionError, definition, parameters},
        manifest::{AllowedTools, Dialect, Manifest, Status, Type},
        name::is_plain_name,
        parse::{FrontmatterError, ParsedSkill, frontmatter_json, parse},
        skill::{Origin, Skill},
        source::{
            Cache, DEEPEST, Directory, DiscoveredSkill, Listing, Memory, ReadError, Resource,
            ResourceKind, Scope, Search, SizeLimits, Source, Stamp, Visit, VisitResult, skill_of,
        },
    },
    text::{
        invisible::{invisible, visible, without_invisible},
        shorten::{beginning, brief_line, escape_tags, without_middle},
        tokens::Tokenizer,
    },
};
#[doc(hidden)]
pub use crate::{lock::lock, matching::fitting, read::source::real_path};
pub use prowess_frontmatter as frontmatter;
