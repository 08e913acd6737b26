//! The sandbox features that a machine supports.

use serde::Serialize;

use crate::level::SandboxLevel;

/// The sandbox features that a machine supports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SandboxSupport {
    /// The highest level that it supports; *none* if scripts run only on explicit request.
    pub level: SandboxLevel,
    /// The features that were checked.
    pub checks: Vec<FeatureCheck>,
}

/// Whether a machine supports one feature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FeatureCheck {
    /// The name of the feature.
    pub name: &'static str,
    /// Whether it is supported; `None` if that could not be determined.
    pub supported: Option<bool>,
    /// Details, in one line.
    pub detail: String,
    /// Advice if it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}
