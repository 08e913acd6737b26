//! Environments with the packages that scripts and servers need: installed once, after approval, in
//! a sandbox that can only connect to package registries; locked, shared, and read-only from then
//! on.
//!
//! A `Recipe` says what is installed, a `Preparer` installs it, and an `EnvironmentStore` knows the
//! approved environments that a script runs with.

#![cfg_attr(
    not(feature = "http"),
    expect(dead_code, reason = "nothing is installed without a network")
)]

mod limits;
mod recipe;
mod registries;
mod store;
mod installer;
#[cfg(feature = "http")]
mod build;

#[cfg(feature = "http")]
pub use self::build::{PrepareError, PrepareOptions, Preparer};
pub use self::{
    installer::PackageManager,
    limits::PrepareLimits,
    recipe::{Recipe, RecipeError},
    registries::Registries,
    store::{
        EnvironmentError, EnvironmentRecord, EnvironmentStore, LockedPackage, PreparedEnvironment,
        ScriptEnvironments, SkillRecipes,
    },
};
