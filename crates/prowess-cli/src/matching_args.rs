//! The options that choose skills for a request.

use prowess::{Matching, Strategy};
use prowess_cli::settings::{Config, Ratio};

use crate::arguments::{StrategyName, parse_ratio};

/// The options that choose skills for a request; the settings of `[matching]` are their defaults.
#[derive(Debug, clap::Args)]
pub(crate) struct MatchingArgs {
    /// How skills are chosen [default: semantic]
    #[arg(long, value_enum, value_name = "STRATEGY")]
    strategy: Option<StrategyName>,
    /// Maximum number of skills to activate [default: 3, or all with `--strategy always`]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Minimum confidence of a skill, from 0 to 1 [default: `matching.threshold`]
    #[arg(long, value_name = "C", value_parser = parse_ratio, allow_negative_numbers = true)]
    threshold: Option<Ratio>,
}

impl MatchingArgs {
    /// Returns how skills are chosen.
    pub(crate) fn matching(&self, config: &Config) -> Matching {
        let set = config.matching();
        let strategy = self.strategy.map_or(set.strategy, Into::into);
        let is_max_set = config.matching.max_active.explicit().is_some();
        let max_active = match self.top {
            Some(top) => top,
            None if strategy == Strategy::Always && !is_max_set => usize::MAX,
            None => set.max_active,
        };
        let threshold = self.threshold.map_or(set.threshold, Ratio::get);
        Matching { strategy, max_active, threshold, ..set }
    }
}
