//! Go's `text/template`, on JSON values, within limits.
//!
//! ```
//! use prowess_template::Template;
//!
//! let template = Template::parse("{{range .items}}- {{.}}\n{{end}}")?;
//! let data = serde_json::json!({"items": ["one", "two"]});
//! assert_eq!(template.render(&data)?, "- one\n- two\n");
//! # Ok::<(), prowess_template::TemplateError>(())
//! ```
//!
//! A text is lexed, parsed to flat lists of operations, and executed on a stack of its own, so that
//! neither a template nor its data can exhaust the stack, the memory or the time of a host. The output
//! is that of Go for the same values: objects are `map[string]any`, arrays are `[]any`, whole numbers
//! that fit are `int`, others `float64`, null is `nil`.
//!
//! Functions of the host, template files and `html/template` are not in this crate.
#![warn(missing_docs)]

mod unicode;
mod quote;
mod error;
mod float;
mod literal;
mod value;
mod format;
mod lex;
mod printf;
mod escape;
mod shell;
mod compare;
mod functions;
mod tree;
mod draft;
mod parse;
mod pipe;
mod range;
mod exec;
mod eval;

use serde_json::Value;

pub use crate::error::TemplateError;
use crate::tree::Trees;

/// A parsed template.
#[derive(Debug, Clone)]
pub struct Template(Trees);

/// Limits on rendering a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemplateLimits {
    /// The maximum size of the output, and of every intermediate text, in bytes.
    pub output: usize,
    /// The maximum number of steps: one for every action, argument, value, and written byte.
    pub steps: u64,
}

impl Default for TemplateLimits {
    fn default() -> Self {
        Self { output: 1 << 20, steps: 1 << 23 }
    }
}

impl Template {
    /// Parses a template. Its name in errors is `template`.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        Self::named("template", text)
    }

    /// Parses a template with a name, which it can also use to invoke itself.
    pub fn named(name: &str, text: &str) -> Result<Self, TemplateError> {
        parse::parse(name, text).map(Self)
    }

    /// Renders it with `data` as its dot, within the default limits.
    pub fn render(&self, data: &Value) -> Result<String, TemplateError> {
        self.render_within(TemplateLimits::default(), data)
    }

    /// Renders it within other limits. Each byte that is not valid UTF-8 becomes U+FFFD.
    pub fn render_within(
        &self,
        limits: TemplateLimits,
        data: &Value,
    ) -> Result<String, TemplateError> {
        exec::execute(&self.0, limits, data, false).map(text)
    }

    /// Renders a shell command: each printed value is quoted for its place, so that a shell reads it as
    /// text and never as a command. Fails where a value cannot be quoted, such as inside `` `…` ``.
    ///
    /// ```
    /// let template = prowess_template::Template::parse("grep {{.word}} notes.txt")?;
    /// let command = template.render_command(&serde_json::json!({"word": "a; rm -rf ~"}))?;
    /// assert_eq!(command, "grep 'a; rm -rf ~' notes.txt");
    /// # Ok::<(), prowess_template::TemplateError>(())
    /// ```
    pub fn render_command(&self, data: &Value) -> Result<String, TemplateError> {
        exec::execute(&self.0, TemplateLimits::default(), data, true).map(text)
    }
}

/// Returns the rendered bytes as text.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|it| unicode::to_lossy(it.as_bytes()))
}

/// Parses `template` and renders it with `data` as its dot.
pub fn render(template: &str, data: &Value) -> Result<String, TemplateError> {
    Template::parse(template)?.render(data)
}
