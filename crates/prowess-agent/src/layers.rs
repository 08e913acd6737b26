//! The layers that ship, each of use without the others.

mod calling;
mod servers;

pub use self::{calling::Calling, servers::Servers};
