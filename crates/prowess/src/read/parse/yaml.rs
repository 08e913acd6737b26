//! The YAML library: reads what the small reader rejects, within limits.

use std::borrow::Cow;

use granit_parser::{Event, Options, Parser, ScalarStyle, Span, Tag};
use prowess_frontmatter::{Field, Scalar, Style, Value};

use super::Fault;

/// The maximum nesting depth of collections.
const MAX_DEPTH: usize = 16;
/// The maximum number of scalars and collections.
const MAX_NODES: usize = 4096;

/// Parses a frontmatter as YAML 1.2. Rejects aliases, tags, directives and merge keys.
pub(super) fn read(text: &str) -> Result<Vec<Field<'_>>, Fault> {
    let mut options = Options::default();
    options.disallow_directives = true;
    options.flow_nesting_limit = MAX_DEPTH;
    options.block_nesting_limit = MAX_DEPTH;
    let parser = Parser::new_from_str_with_options(text, options);
    let mut reader = Reader { parser, text, nodes: 0, anchor: None };
    loop {
        match reader.next()? {
            (Event::StreamStart | Event::DocumentStart(..), _) => {}
            (Event::StreamEnd | Event::DocumentEnd, _) => return Ok(Vec::new()),
            (event, span) => {
                let line = span.start.line();
                let (value, _) = reader.node(event, span, 0)?;
                reader.end()?;
                // An anchor without an alias is plain text.
                if let Some(line) = reader.anchor {
                    return Err(Fault::Invalid {
                        line,
                        what: "a value that begins with `&`".to_owned(),
                    });
                }
                return match value {
                    Value::Map(fields) => Ok(fields),
                    Value::Scalar(_) | Value::List(_) | Value::Empty => Err(Fault::NotMap { line }),
                };
            }
        }
    }
}

struct Reader<'t> {
    parser: Parser<'t, granit_parser::StrInput<'t>>,
    text: &'t str,
    nodes: usize,
    /// The line of the first anchor.
    anchor: Option<usize>,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Span), Fault> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(fault(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    /// Checks that nothing follows the one document.
    fn end(&mut self) -> Result<(), Fault> {
        match self.next()? {
            (Event::DocumentEnd, _) => self.end(),
            (Event::StreamEnd, _) => Ok(()),
            (_, span) => Err(Fault::Invalid {
                line: span.start.line(),
                what: "a second document".to_owned(),
            }),
        }
    }

    /// Returns the value that an event begins, and its byte range.
    fn node(
        &mut self,
        event: Event<'t>,
        span: Span,
        depth: usize,
    ) -> Result<(Value<'t>, Span), Fault> {
        let line = span.start.line();
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(Fault::Unsafe { line, what: "too many values" });
        }
        if depth > MAX_DEPTH {
            return Err(Fault::Unsafe { line, what: "values nested too deep" });
        }
        if event.anchor_id().is_some() {
            self.anchor.get_or_insert(line);
        }
        match event {
            Event::Alias(_) => Err(Fault::Unsafe { line, what: "an alias" }),
            Event::Scalar(text, style, _, tag) => {
                refuse_tag(tag, line)?;
                Ok((scalar(text, style, &span), span))
            }
            Event::SequenceStart(_, _, tag) => {
                refuse_tag(tag, line)?;
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, end) => {
                            return Ok((Value::List(items), join_spans(span, end)));
                        }
                        (event, span) => items.push(self.node(event, span, depth + 1)?.0),
                    }
                }
            }
            Event::MappingStart(_, _, tag) => {
                refuse_tag(tag, line)?;
                let mut fields = Vec::new();
                loop {
                    match self.next()? {
                        (Event::MappingEnd, end) => {
                            return Ok((Value::Map(fields), join_spans(span, end)));
                        }
                        (event, span) => fields.push(self.field(event, span, depth)?),
                    }
                }
            }
            _ => Err(Fault::Invalid { line, what: "an unexpected end".to_owned() }),
        }
    }

    fn field(
        &mut self,
        event: Event<'t>,
        key_span: Span,
        depth: usize,
    ) -> Result<Field<'t>, Fault> {
        let line = key_span.start.line();
        let Value::Scalar(key) = self.node(event, key_span, depth + 1)?.0 else {
            return Err(Fault::Invalid { line, what: "a collection as a key".to_owned() });
        };
        if key.text == "<<" && key.style == Style::Plain {
            return Err(Fault::Unsafe { line, what: "a merge key" });
        }
        let (event, span) = self.next()?;
        let (value, span) = self.node(event, span, depth + 1)?;
        let key_span = key_span.byte_range().unwrap_or(0..0);
        let span = span.byte_range().unwrap_or(0..0);
        let end = span.start + self.text.get(span.clone()).unwrap_or("").trim_end().len();
        Ok(Field { key: key.text, value, line, key_span, span: span.start..end })
    }
}

fn join_spans(start: Span, end: Span) -> Span {
    Span::new(start.start, end.end)
}

fn scalar<'t>(text: Cow<'t, str>, style: ScalarStyle, span: &Span) -> Value<'t> {
    let style = match style {
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
        ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
    };
    // The parser returns `~` for a value that was not written.
    if style == Style::Plain && span.is_empty() {
        return Value::Empty;
    }
    Value::Scalar(Scalar { text, style })
}

fn refuse_tag(tag: Option<Cow<'_, Tag>>, line: usize) -> Result<(), Fault> {
    match tag {
        None => Ok(()),
        // `! text` is plain text with an exclamation mark.
        Some(tag) if tag.original() == "!" => {
            Err(Fault::Invalid { line, what: "a value that begins with `!`".to_owned() })
        }
        Some(_) => Err(Fault::Unsafe { line, what: "a tag" }),
    }
}

fn fault(error: &granit_parser::ScanError) -> Fault {
    let line = error.marker().line().max(1);
    let what = error.info();
    if what.contains("nesting") || what.contains("recursion") {
        return Fault::Unsafe { line, what: "values nested too deep" };
    }
    if what.contains("directive") {
        return Fault::Unsafe { line, what: "a directive" };
    }
    Fault::Invalid { line, what }
}
