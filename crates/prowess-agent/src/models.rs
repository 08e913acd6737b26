//! The models that ship, one file each.

mod scripted;

pub use self::scripted::Scripted;
