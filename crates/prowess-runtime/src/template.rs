//! Go's `text/template`, on JSON values, within limits.
//!
//! A text is lexed, parsed to flat lists of operations, and executed on a stack of its own, so that
//! neither a template nor its data can exhaust the stack, the memory or the time of a host. What comes
//! out is what Go gives for the same values: objects are `map[string]any`, arrays are `[]any`,
//! whole numbers that fit are `int`, others `float64`, null is `nil`.

mod error;
mod unicode;
mod quote;
mod float;
mod literal;
mod lex;
mod tree;
mod draft;
mod parse;
mod pipe;
mod value;
mod format;
mod printf;
mod escape;
mod shell;
mod compare;
mod functions;
mod eval;
mod range;
mod exec;

use serde_json::Value;

pub use self::error::TemplateError;
use self::tree::Trees;

/// A parsed template.
///
/// ```
/// use prowess_runtime::Template;
///
/// let template = Template::parse("{{range .items}}- {{.}}\n{{end}}")?;
/// let data = serde_json::json!({"items": ["one", "two"]});
/// assert_eq!(template.render(&data)?, "- one\n- two\n");
/// # Ok::<(), prowess_runtime::TemplateError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Template(Trees);

/// How much a template may do when it is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemplateLimits {
    /// Bytes of what comes out, and of every text that is made on the way.
    pub output: usize,
    /// Steps: one for every action, argument, value, and byte that is written.
    pub steps: u64,
}

impl Default for TemplateLimits {
    fn default() -> Self {
        Self { output: 1 << 20, steps: 1 << 23 }
    }
}

impl Template {
    /// Parses a template that errors call `template`.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        Self::named("template", text)
    }

    /// Parses a template with a name, by which it can also invoke itself.
    pub fn named(name: &str, text: &str) -> Result<Self, TemplateError> {
        parse::parse(name, text).map(Self)
    }

    /// Renders it with `data` as its dot, within the usual limits.
    pub fn render(&self, data: &Value) -> Result<String, TemplateError> {
        self.render_within(TemplateLimits::default(), data)
    }

    /// Renders it within other limits. Bytes that are no text become U+FFFD each.
    pub fn render_within(
        &self,
        limits: TemplateLimits,
        data: &Value,
    ) -> Result<String, TemplateError> {
        exec::execute(&self.0, limits, data, false).map(text)
    }

    /// Renders the text of a shell command: what actions print is quoted, so that a shell takes it as text.
    pub(crate) fn render_command(&self, data: &Value) -> Result<String, TemplateError> {
        exec::execute(&self.0, TemplateLimits::default(), data, true).map(text)
    }
}

/// What was rendered, as text.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|it| unicode::lossy(it.as_bytes()))
}

/// Parses `template` and renders it with `data` as its dot.
pub fn render(template: &str, data: &Value) -> Result<String, TemplateError> {
    Template::parse(template)?.render(data)
}
