//! A change of the skills of a place: what is wanted afterwards, and what has to be done for it.

use std::collections::BTreeMap;

use anyhow::Result;
use prowess_packages::{
    FetchedTree, InstallAction, InstallError, InstallPlan, LocalEdits, Lock, LockedSkill, Manifest,
    PackagedSkill, TargetDirectory, TargetForm, WantedSkill, target_directories,
};
use serde_json::{Value, json};

use super::{PackageSession, chain};
use crate::{cli_error::CliError, printer::Printer};
