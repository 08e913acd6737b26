//! The layers that ship, each of use without the others.

mod calling;
mod skills;

pub use self::{
    calling::Calling,
    skills::{Showing, Skills},
};
