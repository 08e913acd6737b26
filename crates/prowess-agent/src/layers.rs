//! The layers that ship, each of use without the others.

mod calling;

pub use self::calling::Calling;
