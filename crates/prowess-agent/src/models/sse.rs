//! A parser of server-sent events.

/// Parses a stream of events from chunks of any size.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The incomplete last line.
    line: Vec<u8>,
    /// The data of the incomplete last event.
    data: Option<String>,
    /// Whether a line feed at the start belongs to the carriage return before it.
    after_return: bool,
    began: bool,
}

/// An event exceeds the size limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// The maximum size of an event in bytes.
pub(super) const MAX_EVENT: usize = 8 * 1024 * 1024;

impl Events {
    /// Returns the data of each event that these bytes complete.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut events = Vec::new();
        let mut rest = bytes;
        if std::mem::take(&mut self.after_return) && rest.first() == Some(&b'\n') {
            rest = &rest[1..];
        }
        while let Some(at) = rest.iter().position(|it| matches!(it, b'\n' | b'\r')) {
            self.add(&rest[..at])?;
            let is_return = rest[at] == b'\r';
            rest = &rest[at + 1..];
            if is_return {
                match rest.first() {
                    Some(b'\n') => rest = &rest[1..],
                    Some(_) => {}
                    None => self.after_return = true,
                }
            }
            events.extend(self.end_line());
        }
        self.add(rest)?;
        Ok(events)
    }

    /// Returns the last event, if only the empty line after it is missing.
    pub(super) fn finish(self) -> Option<String> {
        self.data.filter(|_| self.line.is_empty())
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        let before = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if before + bytes.len() > MAX_EVENT {
            return Err(TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let is_first = !std::mem::replace(&mut self.began, true);
        let line = line.strip_prefix('\u{feff}').filter(|_| is_first).unwrap_or(&line);
        if line.is_empty() {
            return self.data.take();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        // The llama.cpp server has a field of its own for errors.
        if matches!(field, "data" | "error") {
            match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let mut events = Events::default();
        let mut all: Vec<String> = pieces.iter().flat_map(|it| events.take(it).unwrap()).collect();
        all.extend(events.finish());
        all
    }

    #[test]
    fn a_stream_reads_the_same_wherever_it_is_cut() {
        let text = "\u{feff}data: {\"a\":\"ä😀\"}\r\n\r\n: ping\n\nevent: x\ndata: one\ndata:two\n\
                    id: 7\n\ndata\n\ndata:  three\r\rerror: no\n\ndata: last\n";
        let whole = events(&[text.as_bytes()]);
        assert_eq!(whole, ["{\"a\":\"ä😀\"}", "one\ntwo", "", " three", "no", "last"]);
        for at in 0..=text.len() {
            let (left, right) = text.as_bytes().split_at(at);
            assert_eq!(events(&[left, right]), whole, "cut at {at}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(events(&bytes), whole);
    }

    #[test]
    fn an_event_that_was_cut_off_is_none() {
        assert_eq!(events(&[b"data: a\n\ndata: {\"b"]), ["a"]);
        assert_eq!(events(&[b"data: a\nda"]), [""; 0]);
    }

    #[test]
    fn an_event_has_a_longest_length() {
        let mut events = Events::default();
        let piece = vec![b'x'; MAX_EVENT / 2];
        assert_eq!(events.take(&piece), Ok(vec![]));
        assert_eq!(events.take(&piece), Ok(vec![]));
        assert_eq!(events.take(b"x"), Err(TooLong));
        let mut events = Events::default();
        let line = [b"data: ", &piece[..], b"\n"].concat();
        assert_eq!(events.take(&line), Ok(vec![]));
        assert_eq!(events.take(&line), Err(TooLong));
    }
}
