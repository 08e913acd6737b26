//! Errors of parsing and rendering.

/// A template could not be parsed or rendered. Messages are Go's where Go has one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The text is not a valid template.
    #[error("template: {name}:{line}: {message}")]
    Parse {
        /// The name of the template.
        name: String,
        /// The line, from 1.
        line: usize,
        /// The error, in Go's words.
        message: String,
    },
    /// The template cannot be executed with this data.
    #[error(
        "template: {name}:{line}:{column}: executing {} at <{context}>: {message}",
        crate::quote::quote(executing.as_bytes())
    )]
    Execute {
        /// The name of the template.
        name: String,
        /// The line, from 1.
        line: usize,
        /// The number of bytes before it in its line.
        column: usize,
        /// The template or definition that was being executed.
        executing: String,
        /// The expression that was being evaluated.
        context: String,
        /// The error, in Go's words.
        message: String,
    },
    /// A limit was exceeded.
    #[error("template: {name}: more than {limit}")]
    Limit {
        /// The name of the template.
        name: String,
        /// The limit, such as `1048576 bytes of output`.
        limit: String,
    },
}
