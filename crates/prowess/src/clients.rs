//! The clients that load skills, as a table: where each one looks, and what it does with which skill.

pub(crate) mod verdict;
pub(crate) mod symptom;
pub(crate) mod client;
pub(crate) mod table;

pub use self::{
    client::{Citation, Clash, Client, Fact, Spot, VARIABLES},
    symptom::{Form, Letters, Symptom},
    table::CLIENTS,
    verdict::Verdict,
};

/// Finds a client by its name.
pub fn client(name: &str) -> Option<&'static Client> {
    CLIENTS.iter().find(|it| it.name == name)
}
