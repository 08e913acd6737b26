//! Formats values for the verbs of Go's `fmt`.

use crate::{
    float,
    quote::{Charset, can_backquote, quote_char, quote_with},
    unicode::{first_runes, is_print, rune_count, to_lossy},
    value::{Content, Text, sort_items},
};

/// Writes values one after the other, up to a maximum number of bytes.
#[derive(Debug)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
    room: usize,
    /// Whether something was left out.
    pub(crate) overflowed: bool,
}

/// The flags of a verb.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Flags {
    pub(crate) minus: bool,
    pub(crate) plus: bool,
    pub(crate) sharp: bool,
    pub(crate) space: bool,
    pub(crate) zero: bool,
    /// For the verb `v`: as Go source.
    pub(crate) source: bool,
    pub(crate) width: Option<usize>,
    pub(crate) precision: Option<usize>,
}

/// Returns a value as shown in errors.
pub(crate) fn format_for_error(value: &Content<'_>, verb: char) -> String {
    /// The maximum size in an error, in bytes.
    const ROOM: usize = 4096;
    let mut writer = Writer::new(ROOM);
    writer.argument(value, verb, Flags::default());
    to_lossy(&writer.into_bytes())
}

/// Returns a character as Go shows it in its errors, such as `U+002B '+'`.
pub(crate) fn unicode(c: char) -> String {
    let flags = Flags { sharp: true, ..Flags::default() };
    flags.unicode(u64::from(u32::from(c)))
}

impl Writer {
    pub(crate) fn new(room: usize) -> Self {
        Self { bytes: Vec::new(), room, overflowed: false }
    }

    pub(crate) fn room(&self) -> usize {
        self.room
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn push(&mut self, text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        let fits = text.len().min(self.room - self.bytes.len());
        self.bytes.extend_from_slice(&text[..fits]);
        self.overflowed |= fits < text.len();
    }

    fn fill(&mut self, byte: u8, count: usize) {
        let fits = count.min(self.room - self.bytes.len());
        self.bytes.resize(self.bytes.len() + fits, byte);
        self.overflowed |= fits < count;
    }

    /// Writes a top-level value.
    pub(crate) fn argument(&mut self, value: &Content<'_>, verb: char, flags: Flags) {
        match (value, verb) {
            (Content::Nil, 'v' | 'T') => self.pad("<nil>", flags),
            (_, 'T') => self.truncated(value.type_name().as_bytes(), flags),
            (Content::List(_) | Content::Map(_), 'w' | 'p') => self.bad_verb(value, verb, flags),
            _ => self.value(value, verb, flags, 0),
        }
    }

    /// Writes a value that may be nested in another.
    fn value(&mut self, value: &Content<'_>, verb: char, flags: Flags, depth: usize) {
        match value {
            Content::Nil if depth == 0 => self.bad_verb(value, verb, flags),
            Content::Nil if flags.source => self.push("interface {}(nil)"),
            Content::Nil => self.push("<nil>"),
            Content::Bool(truth) => match verb {
                'v' | 't' => self.pad(truth.to_string(), flags),
                _ => self.bad_verb(value, verb, flags),
            },
            Content::Int(number) => self.integer(value, number.unsigned_abs(), verb, flags),
            Content::Uint(number) => self.integer(value, *number, verb, flags),
            Content::Byte(number) => self.integer(value, u64::from(*number), verb, flags),
            Content::Float(number) => self.float(value, *number, verb, flags),
            Content::Complex(real, imaginary) => match verb {
                'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E' => {
                    self.push("(");
                    self.float(value, *real, verb, flags);
                    self.float(value, *imaginary, verb, Flags { plus: true, ..flags });
                    self.push("i)");
                }
                _ => self.bad_verb(value, verb, flags),
            },
            Content::Text(text) => self.text(text, verb, flags),
            Content::List(list) => {
                self.open(value, "[", flags);
                for (index, item) in list.items().iter().enumerate() {
                    self.separate(index, flags);
                    self.value(&Content::of(item), verb, flags, depth + 1);
                }
                self.push(if flags.source { "}" } else { "]" });
            }
            Content::Map(map) => {
                self.open(value, "map[", flags);
                for (index, (key, item)) in sort_items(map).into_iter().enumerate() {
                    self.separate(index, flags);
                    self.text(&Text::Given(key.as_bytes()), verb, flags);
                    self.push(":");
                    self.value(&Content::of(item), verb, flags, depth + 1);
                }
                self.push(if flags.source { "}" } else { "]" });
            }
        }
    }

    fn open(&mut self, value: &Content<'_>, plain: &str, flags: Flags) {
        if flags.source {
            self.push(value.type_name());
            self.push("{");
        } else {
            self.push(plain);
        }
    }

    fn separate(&mut self, index: usize, flags: Flags) {
        if index > 0 {
            self.push(if flags.source { ", " } else { " " });
        }
    }

    /// Writes Go's error that a verb does not fit a value.
    fn bad_verb(&mut self, value: &Content<'_>, verb: char, flags: Flags) {
        self.push(format!("%!{verb}("));
        if value.is_nil() {
            self.push("<nil>");
        } else {
            self.push(format!("{}=", value.type_name()));
            self.value(value, 'v', flags, 0);
        }
        self.push(")");
    }

    fn text(&mut self, text: &Text<'_>, verb: char, flags: Flags) {
        match verb {
            'v' if flags.source => self.quoted(text, flags),
            'v' | 's' => self.truncated(text, flags),
            'q' => self.quoted(text, flags),
            'x' | 'X' => self.hexadecimal(text, verb, flags),
            _ => self.bad_verb(&Content::Text(text.clone()), verb, flags),
        }
    }

    fn truncated(&mut self, text: &[u8], flags: Flags) {
        self.pad(flags.truncate(text), flags);
    }

    fn quoted(&mut self, text: &[u8], flags: Flags) {
        let text = flags.truncate(text);
        if flags.sharp && can_backquote(text) {
            return self.pad([b"`", text, b"`"].concat(), flags);
        }
        self.pad(quote_with(text, flags.charset()), flags);
    }

    fn hexadecimal(&mut self, text: &[u8], verb: char, flags: Flags) {
        let text = &text[..flags.precision.unwrap_or(usize::MAX).min(text.len())];
        let prefix = match (flags.sharp, verb) {
            (true, 'X') => "0X",
            (true, _) => "0x",
            _ => "",
        };
        let mut written = String::new();
        for (index, byte) in text.iter().enumerate() {
            written.push_str(if index > 0 && flags.space { " " } else { "" });
            written.push_str(if index == 0 || flags.space { prefix } else { "" });
            written.push_str(&match verb {
                'X' => format!("{byte:02X}"),
                _ => format!("{byte:02x}"),
            });
        }
        self.pad(written, flags);
    }

    fn integer(&mut self, value: &Content<'_>, magnitude: u64, verb: char, flags: Flags) {
        let negative = matches!(value, Content::Int(number) if *number < 0);
        let is_unsigned = matches!(value, Content::Byte(_) | Content::Uint(_));
        let code = if negative { u64::MAX } else { magnitude };
        let c = u32::try_from(code).ok().and_then(char::from_u32);
        let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
        let (prefix, digits) = match verb {
            'v' if is_unsigned && flags.source => ("0x", format!("{magnitude:x}")),
            'v' | 'd' => ("", magnitude.to_string()),
            'b' => (if flags.sharp { "0b" } else { "" }, format!("{magnitude:b}")),
            'o' => ("", format!("{magnitude:o}")),
            'O' => ("0o", format!("{magnitude:o}")),
            'x' => (if flags.sharp { "0x" } else { "" }, format!("{magnitude:x}")),
            'X' => (if flags.sharp { "0X" } else { "" }, format!("{magnitude:X}")),
            'c' => return self.pad(c.encode_utf8(&mut [0; 4]), flags),
            'q' => return self.pad(quote_char(c, flags.charset()), flags),
            'U' => {
                let code = if negative { magnitude.wrapping_neg() } else { magnitude };
                return self.pad(flags.unicode(code), Flags { zero: false, ..flags });
            }
            _ => return self.bad_verb(value, verb, flags),
        };
        let spaces = Flags { zero: false, ..flags };
        if flags.precision == Some(0) && magnitude == 0 {
            return self.pad("", spaces);
        }
        let sign = match (negative, flags.plus, flags.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        let zeros_to = match (flags.precision, flags.width) {
            (Some(precision), _) => precision,
            (None, Some(width)) if flags.zero && !flags.minus => width - sign.len().min(width),
            _ => 0,
        };
        let octal = matches!(verb, 'o' | 'O') && flags.sharp;
        let zeros = zeros_to.saturating_sub(digits.len());
        let leading = if octal && zeros == 0 && !digits.starts_with('0') { "0" } else { "" };
        let before = format!("{sign}{prefix}{leading}");
        let length = before.len() + zeros + digits.len();
        self.around(length, spaces, |writer| {
            writer.push(before);
            writer.fill(b'0', zeros);
            writer.push(digits);
        });
    }

    fn float(&mut self, value: &Content<'_>, number: f64, verb: char, flags: Flags) {
        let (format, usual) = match verb {
            'v' => ('g', None),
            'b' | 'g' | 'G' | 'x' | 'X' => (verb, None),
            'f' | 'e' | 'E' => (verb, Some(6)),
            'F' => ('f', Some(6)),
            _ => return self.bad_verb(value, verb, flags),
        };
        let precision = flags.precision.or(usual);
        let written = float::write(number, format, precision);
        let (sign, mut digits) = match written.strip_prefix(['-', '+']) {
            Some(digits) if written.starts_with('-') => ("-", digits.to_owned()),
            Some(digits) => ("+", digits.to_owned()),
            None => ("", written),
        };
        if flags.sharp && format != 'b' && number.is_finite() {
            digits = with_point(&digits, format, precision);
        }
        let sign = match (sign, flags.plus, flags.space) {
            ("-", ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            (sign, ..) => sign,
        };
        let flags = Flags { zero: flags.zero && number.is_finite(), ..flags };
        let length = sign.len() + digits.len();
        let zeros = flags.width.filter(|_| flags.zero && !flags.minus && !sign.is_empty());
        match zeros.filter(|it| *it > length) {
            // The sign comes before the zeros.
            Some(width) => {
                self.push(sign);
                self.fill(b'0', width - length);
                self.push(digits);
            }
            None => self.pad(format!("{sign}{digits}"), flags),
        }
    }

    fn pad(&mut self, text: impl AsRef<[u8]>, flags: Flags) {
        // Counting is only needed for a width.
        let count = flags.width.map_or(0, |_| rune_count(text.as_ref()));
        self.around(count, flags, |writer| writer.push(text));
    }

    /// Writes something of `length` characters, and pads it to its width.
    fn around(&mut self, length: usize, flags: Flags, write: impl FnOnce(&mut Self)) {
        let missing = flags.width.unwrap_or(0).saturating_sub(length);
        if flags.minus {
            write(self);
            self.fill(b' ', missing);
        } else {
            self.fill(if flags.zero { b'0' } else { b' ' }, missing);
            write(self);
        }
    }
}

impl Flags {
    fn charset(self) -> Charset {
        if self.plus { Charset::Ascii } else { Charset::Any }
    }

    fn truncate(self, text: &[u8]) -> &[u8] {
        self.precision.map_or(text, |it| first_runes(text, it))
    }

    fn unicode(self, code: u64) -> String {
        let digits = self.precision.unwrap_or(0).max(4);
        let hexadecimal = format!("{code:X}");
        let zeros = "0".repeat(digits.saturating_sub(hexadecimal.len()));
        let c = u32::try_from(code).ok().and_then(char::from_u32);
        match c.filter(|it| self.sharp && is_print(*it)) {
            Some(c) => format!("U+{zeros}{hexadecimal} '{c}'"),
            None => format!("U+{zeros}{hexadecimal}"),
        }
    }
}

/// Adds the point and trailing zeros that the flag `#` asks for.
fn with_point(digits: &str, format: char, precision: Option<usize>) -> String {
    let significant = match format {
        'g' | 'G' | 'x' => precision.unwrap_or(6),
        _ => 0,
    };
    let hexadecimal = matches!(format, 'x' | 'X');
    let exponent = if hexadecimal { ['p', 'P'] } else { ['e', 'E'] };
    let (number, tail) = digits.split_at(digits.find(exponent).unwrap_or(digits.len()));
    let after_zeros = number.trim_start_matches(['0', '.']);
    let mut written = after_zeros.chars().filter(|it| *it != '.').count();
    let mut number = number.to_owned();
    if !number.contains('.') {
        written += usize::from(number == "0");
        number.push('.');
    }
    let zeros = "0".repeat(significant.saturating_sub(written));
    format!("{number}{zeros}{tail}")
}
