//! A table of the clients that load skills: where each one looks, and how it treats which skill.

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
