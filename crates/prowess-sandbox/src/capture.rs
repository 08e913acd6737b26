//! Captures the beginning and the end of a stream.

use std::collections::VecDeque;

use crate::output::CapturedText;

/// Captures a stream; keeps half of the limit from its beginning, and half from its end.
#[derive(Debug)]
pub(crate) struct Capture {
    limit: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Capture {
    pub(crate) fn new(limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Self { limit, head: Vec::new(), tail: VecDeque::new(), total: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = (self.limit / 2).saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend(&bytes[..room]);
        let rest = &bytes[room..];
        let most = self.limit - self.limit / 2;
        self.tail.extend(&rest[rest.len().saturating_sub(most)..]);
        let over = self.tail.len().saturating_sub(most);
        self.tail.drain(..over);
    }

    /// Returns the total number of bytes received.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the captured part after the first `seen` bytes; a line says how much is missing.
    pub(crate) fn after(&self, seen: u64) -> Vec<u8> {
        let unseen = self.total.saturating_sub(seen);
        let kept = usize::try_from(unseen).unwrap_or(usize::MAX).min(self.tail.len());
        let tail = self.tail.range(self.tail.len() - kept..).copied();
        match unseen - kept as u64 {
            0 => tail.collect(),
            cut => marker(cut).into_bytes().into_iter().chain(tail).collect(),
        }
    }

    pub(crate) fn finish(self) -> CapturedText {
        let Self { head, tail, total, .. } = self;
        let tail = Vec::from(tail);
        let cut = total - (head.len() + tail.len()) as u64;
        if cut == 0 {
            let whole = [head, tail].concat();
            return CapturedText { text: String::from_utf8_lossy(&whole).into_owned(), cut };
        }
        // The cut must not split a character.
        let split = tail.iter().take(3).take_while(|it| **it & 0xC0 == 0x80).count();
        let whole = match std::str::from_utf8(&head) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => head.len(),
        };
        let cut = cut + (head.len() - whole + split) as u64;
        let [head, tail] = [&head[..whole], &tail[split..]].map(String::from_utf8_lossy);
        CapturedText { text: format!("{head}{}{tail}", marker(cut)), cut }
    }
}

/// Returns the line that replaces the missing part.
fn marker(cut: u64) -> String {
    format!("\n[… {cut} bytes were cut …]\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(limit: u64, pieces: &[&[u8]]) -> (String, u64) {
        let mut capture = Capture::new(limit);
        pieces.iter().for_each(|it| capture.push(it));
        let CapturedText { text, cut } = capture.finish();
        (text, cut)
    }

    #[test]
    fn what_fits_is_kept_as_it_is() {
        assert_eq!(captured(4, &[b"ab", b"cd"]), ("abcd".to_owned(), 0));
        assert_eq!(captured(0, &[]), (String::new(), 0));
        assert_eq!(
            captured(5, &["ä".as_bytes(), b"\xff\xfe"]),
            ("ä\u{FFFD}\u{FFFD}".to_owned(), 0)
        );
    }

    #[test]
    fn of_more_the_beginning_and_the_end_are_kept() {
        let cut = |head: &str, tail: &str, cut: u64| {
            (format!("{head}\n[… {cut} bytes were cut …]\n{tail}"), cut)
        };
        assert_eq!(captured(4, &[b"abcdefgh"]), cut("ab", "gh", 4));
        assert_eq!(captured(4, &[b"a", b"bcd", b"e", b"f", b"gh"]), cut("ab", "gh", 4));
        assert_eq!(captured(3, &[b"abcdefgh"]), cut("a", "gh", 5));
        assert_eq!(captured(0, &[b"abc"]), cut("", "", 3));
    }

    #[test]
    fn after_what_was_seen_comes_the_rest_as_far_as_it_is_kept() {
        let after = |seen: u64| {
            let mut capture = Capture::new(4);
            capture.push(b"abcdefgh");
            String::from_utf8(capture.after(seen)).expect("it was text")
        };
        assert_eq!([7, 8, 9].map(after), ["h", "", ""]);
        assert_eq!(after(6), "gh");
        assert_eq!(after(4), "\n[… 2 bytes were cut …]\ngh");
    }

    #[test]
    fn no_character_is_split_by_a_cut() {
        let (text, cut) = captured(6, &["äöüäöü".as_bytes()]);
        assert_eq!(text, "ä\n[… 8 bytes were cut …]\nü");
        assert_eq!(cut, 8);
    }
}
