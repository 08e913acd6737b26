//! The escaping functions.

use crate::{
    format::Writer,
    printf::print,
    unicode::{Rune, is_print, runes},
    value::{Content, Text},
};

pub(crate) fn html(writer: &mut Writer, values: &[&Content<'_>]) {
    escape(writer, values, |writer, rune| match rune {
        Rune::Char('\0') => writer.push("\u{fffd}"),
        Rune::Char('"') => writer.push("&#34;"),
        Rune::Char('\'') => writer.push("&#39;"),
        Rune::Char('&') => writer.push("&amp;"),
        Rune::Char('<') => writer.push("&lt;"),
        Rune::Char('>') => writer.push("&gt;"),
        rune => writer.push(rune.bytes(&mut [0; 4])),
    });
}

pub(crate) fn js(writer: &mut Writer, values: &[&Content<'_>]) {
    escape(writer, values, |writer, rune| match rune {
        Rune::Char(c @ ('\\' | '\'' | '"')) => writer.push(format!("\\{c}")),
        Rune::Char(c @ ('<' | '>' | '&' | '=')) => writer.push(format!("\\u{:04X}", c as u32)),
        Rune::Char(c) if c != '\x7f' && !is_print(c) => {
            writer.push(format!("\\u{:04X}", c as u32));
        }
        rune => writer.push(rune.bytes(&mut [0; 4])),
    });
}

pub(crate) fn urlquery(writer: &mut Writer, values: &[&Content<'_>]) {
    escape(writer, values, |writer, rune| match rune {
        Rune::Char(' ') => writer.push("+"),
        Rune::Char(c) if c.is_ascii_alphanumeric() || "-_.~".contains(c) => {
            writer.push([c as u8]);
        }
        rune => {
            for byte in rune.bytes(&mut [0; 4]) {
                writer.push(format!("%{byte:02X}"));
            }
        }
    });
}

/// Formats values as an action would, and rewrites the text character by character.
fn escape(writer: &mut Writer, values: &[&Content<'_>], write: fn(&mut Writer, Rune)) {
    let missing = Content::Text(Text::Given(b"<no value>"));
    let values: Vec<&Content<'_>> =
        values.iter().map(|it| if it.is_nil() { &missing } else { *it }).collect();
    let mut plain = Writer::new(writer.room());
    print(&mut plain, &values);
    writer.overflowed |= plain.overflowed;
    for rune in runes(&plain.into_bytes()) {
        if writer.overflowed {
            return;
        }
        write(writer, rune);
    }
}
