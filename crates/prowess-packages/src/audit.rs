//! Finds what a skill could do to its user.
