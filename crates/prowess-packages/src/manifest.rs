//! Reads and edits the skills that a project asks for.
