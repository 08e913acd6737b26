//! The settings of the program `prowess`: `prowess.toml`, read and typed.
//!
//! The program itself is `main.rs`. This library exists so that its tests, and hosts that want the
//! same settings, can read them.
#![warn(missing_docs)]

pub mod settings;
