//! Why a template could not be parsed or rendered.

/// A template could not be parsed or rendered; in Go's words where Go has some.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// It is no template.
    #[error("template: {name}:{line}: {message}")]
    Parse {
        /// Of the template.
        name: String,
        /// From 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// What it asks for cannot be done with this data.
    #[error(
        "template: {name}:{line}:{column}: executing {} at <{context}>: {message}",
        super::quote::quote(executing.as_bytes())
    )]
    Execute {
        /// Of the template.
        name: String,
        /// From 1.
        line: usize,
        /// How many bytes stand before it in its line.
        column: usize,
        /// The template or definition that was being executed.
        executing: String,
        /// What was being evaluated.
        context: String,
        /// What is wrong with it.
        message: String,
    },
    /// It is longer, or does more, than it may.
    #[error("template: {name}: more than {limit}")]
    Limit {
        /// Of the template.
        name: String,
        /// How much it may do, such as `1048576 bytes of output`.
        limit: String,
    },
}
