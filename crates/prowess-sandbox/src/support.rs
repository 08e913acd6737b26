//! The sandbox features that a machine supports.

use serde::Serialize;

use crate::level::SandboxLevel;

/// The sandbox features that a machine supports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SandboxSupport {
    /// The best level that it reaches; *none* where no script is run without being told to.
    pub level: SandboxLevel,
    /// The features that were checked.
    pub checks: Vec<FeatureCheck>,
}

/// Whether a machine supports one feature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FeatureCheck {
    /// The name of the feature.
    pub name: &'static str,
    /// Whether it is supported; nothing where that could not be found out.
    pub given: Option<bool>,
    /// Details, in one line.
    pub detail: String,
    /// Advice where it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}
