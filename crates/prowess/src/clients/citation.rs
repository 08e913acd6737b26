//! The source of a fact about a client.

/// A source about a client, and the date when it was checked.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Citation {
    /// The address of a page, or of a file of the client's repository.
    pub url: &'static str,
    /// The date.
    pub checked: &'static str,
}
