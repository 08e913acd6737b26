//! Go's `print`, `println` and `printf`.

use crate::{
    format::{Flags, Writer},
    value::Content,
};

/// The maximum width or precision.
const LARGEST: i64 = 1_000_000;

/// Writes values, with a space between two that are not texts.
pub(crate) fn print(writer: &mut Writer, values: &[&Content<'_>]) {
    let mut spaced = false;
    for (index, value) in values.iter().enumerate() {
        let apart = !matches!(value, Content::Text(_));
        if index > 0 && apart && spaced {
            writer.push(" ");
        }
        writer.argument(value, 'v', Flags::default());
        spaced = apart;
    }
}

/// Writes values with a space between them, and a line end.
pub(crate) fn println(writer: &mut Writer, values: &[&Content<'_>]) {
    for (index, value) in values.iter().enumerate() {
        writer.push(if index > 0 { " " } else { "" });
        writer.argument(value, 'v', Flags::default());
    }
    writer.push("\n");
}

/// Writes values by a format.
pub(crate) fn printf(writer: &mut Writer, format: &[u8], values: &[&Content<'_>]) {
    let mut format = Format { rest: format, values, next: 0, reordered: false, well: true };
    while let Some(percent) = format.rest.iter().position(|it| *it == b'%') {
        writer.push(&format.rest[..percent]);
        format.rest = &format.rest[percent + 1..];
        format.verb(writer);
        if writer.overflowed {
            return;
        }
    }
    writer.push(format.rest);
    let extra = values.get(format.next..).unwrap_or_default();
    if format.reordered || extra.is_empty() {
        return;
    }
    writer.push("%!(EXTRA ");
    for (index, value) in extra.iter().enumerate() {
        writer.push(if index > 0 { ", " } else { "" });
        if !value.is_nil() {
            writer.push(format!("{}=", value.type_name()));
        }
        writer.argument(value, 'v', Flags::default());
    }
    writer.push(")");
}

/// A format that is being parsed.
struct Format<'f> {
    rest: &'f [u8],
    values: &'f [&'f Content<'f>],
    /// The index of the value for the next verb.
    next: usize,
    /// Whether any verb named its value.
    reordered: bool,
    /// Whether the values that the verb names exist.
    well: bool,
}

impl Format<'_> {
    /// Parses a verb after its `%`, and writes its value.
    fn verb(&mut self, writer: &mut Writer) {
        self.well = true;
        let mut flags = self.flags();
        let mut indexed = self.index();
        if self.accept(b'*') {
            let width = self.star();
            if width.is_none() {
                writer.push("%!(BADWIDTH)");
            }
            if width.is_some_and(|it| it < 0) {
                (flags.minus, flags.zero) = (true, false);
            }
            flags.width = width.map(|it| it.unsigned_abs() as usize);
            indexed = false;
        } else {
            flags.width = self.number();
            self.well &= !(indexed && flags.width.is_some());
        }
        if self.rest.len() > 1 && self.accept(b'.') {
            self.well &= !indexed;
            indexed = self.index();
            if self.accept(b'*') {
                flags.precision = self.star().and_then(|it| usize::try_from(it).ok());
                if flags.precision.is_none() {
                    writer.push("%!(BADPREC)");
                }
                indexed = false;
            } else {
                flags.precision = Some(self.number().unwrap_or(0));
            }
        }
        if !indexed {
            self.index();
        }
        let Some(rune) = crate::unicode::runes(self.rest).next() else {
            writer.push("%!(NOVERB)");
            return;
        };
        self.rest = &self.rest[rune.width()..];
        let verb = rune.char();
        match self.values.get(self.next) {
            _ if verb == '%' => writer.push("%"),
            _ if !self.well => writer.push(format!("%!{verb}(BADINDEX)")),
            None => writer.push(format!("%!{verb}(MISSING)")),
            Some(value) => {
                if matches!(verb, 'v' | 'w') {
                    flags.source = flags.sharp;
                    (flags.sharp, flags.plus) = (false, false);
                }
                writer.argument(value, verb, flags);
                self.next += 1;
            }
        }
    }

    fn flags(&mut self) -> Flags {
        let mut flags = Flags::default();
        while let Some(byte) = self.rest.first() {
            match byte {
                b'#' => flags.sharp = true,
                b'0' => flags.zero = true,
                b'+' => flags.plus = true,
                b'-' => flags.minus = true,
                b' ' => flags.space = true,
                _ => break,
            }
            self.rest = &self.rest[1..];
        }
        flags
    }

    fn accept(&mut self, byte: u8) -> bool {
        let accepted = self.rest.first() == Some(&byte);
        self.rest = &self.rest[usize::from(accepted)..];
        accepted
    }

    /// Parses a number, if there is one. One that is too large consumes the rest of the format.
    fn number(&mut self) -> Option<usize> {
        let count = self.rest.iter().take_while(|it| it.is_ascii_digit()).count();
        let mut number = None;
        for digit in &self.rest[..count] {
            let before = number.unwrap_or(0);
            if before > LARGEST {
                self.rest = &[];
                return None;
            }
            number = Some(before * 10 + i64::from(digit - b'0'));
        }
        self.rest = &self.rest[count..];
        number.and_then(|it| usize::try_from(it).ok())
    }

    /// Uses a value as a width or precision.
    fn star(&mut self) -> Option<i64> {
        let value = self.values.get(self.next)?;
        self.next += 1;
        let number = i64::try_from(value.whole()?).ok()?;
        (-LARGEST..=LARGEST).contains(&number).then_some(number)
    }

    /// Parses the index of a value, such as `[2]`, if the format has one.
    fn index(&mut self) -> bool {
        if self.rest.first() != Some(&b'[') {
            return false;
        }
        self.reordered = true;
        let Some(close) = self.rest.iter().position(|it| *it == b']').filter(|it| *it > 1) else {
            self.well = false;
            // Without a number between them, both brackets are skipped.
            let both = self.rest.len() > 2 && self.rest[1] == b']';
            self.rest = &self.rest[if both { 2 } else { 1 }..];
            return false;
        };
        let digits = std::str::from_utf8(&self.rest[1..close]).unwrap_or_default();
        let number = digits.parse::<usize>().ok().filter(|_| !digits.starts_with('+'));
        self.rest = &self.rest[close + 1..];
        match number.and_then(|it| it.checked_sub(1)).filter(|it| *it < self.values.len()) {
            Some(index) => self.next = index,
            None => self.well = false,
        }
        number.is_some()
    }
}
