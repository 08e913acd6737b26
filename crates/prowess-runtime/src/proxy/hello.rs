//! Parses the server name of a TLS `ClientHello`.

use std::fmt;

/// The meaning of the first bytes of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hello {
    /// Incomplete.
    Partial,
    /// TLS for a server with this name; without one, for any server at the address.
    Name(Option<String>),
    /// Anything that may not pass.
    Refused(Fault),
}

/// The reason why a hello may not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    NotTls,
    Malformed,
    Encrypted,
    TooLong,
}

/// The maximum size of a hello: a large one has keys of four kinds.
pub(super) const MAX_HELLO: usize = 32 * 1024;

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
/// `encrypted_client_hello`, and its predecessor, which only encrypted the name.
const ENCRYPTED: [u16; 2] = [0xfe0d, 0xffce];

impl Hello {
    /// Parses the bytes received so far.
    pub(super) fn read(bytes: &[u8]) -> Self {
        if bytes.len() > MAX_HELLO {
            return Self::Refused(Fault::TooLong);
        }
        match read_message(bytes) {
            Ok(Some(hello)) => match parse_name(&hello) {
                Some(Ok(name)) => Self::Name(name),
                Some(Err(fault)) => Self::Refused(fault),
                None => Self::Refused(Fault::Malformed),
            },
            Ok(None) => Self::Partial,
            Err(fault) => Self::Refused(fault),
        }
    }
}

/// Reassembles the first message from its records; `None` if it is incomplete.
fn read_message(bytes: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
    let mut reader = Reader(bytes);
    let mut message = Vec::new();
    loop {
        let Some(kind) = reader.number(1) else { return Ok(None) };
        if kind != u32::from(HANDSHAKE) {
            return Err(Fault::NotTls);
        }
        let Some(version) = reader.number(2) else { return Ok(None) };
        if version >> 8 != 3 {
            return Err(Fault::NotTls);
        }
        let Some(record) = reader.vector(2) else { return Ok(None) };
        if record.is_empty() {
            return Err(Fault::Malformed);
        }
        message.extend_from_slice(record);
        if message[0] != CLIENT_HELLO {
            return Err(Fault::NotTls);
        }
        let mut whole = Reader(&message[1..]);
        if let Some(hello) = whole.vector(3) {
            let is_alone = whole.0.is_empty();
            return if is_alone { Ok(Some(hello.to_vec())) } else { Err(Fault::Malformed) };
        }
    }
}

/// Returns the name in a hello; `None` if it is malformed.
fn parse_name(hello: &[u8]) -> Option<Result<Option<String>, Fault>> {
    let mut reader = Reader(hello);
    // Version and random, then session, ciphers and compression.
    reader.take(2 + 32)?;
    reader.vector(1)?;
    reader.vector(2)?;
    reader.vector(1)?;
    if reader.0.is_empty() {
        return Some(Ok(None));
    }
    let mut extensions = Reader(reader.vector(2)?);
    if !reader.0.is_empty() {
        return None;
    }
    let mut name = None;
    while !extensions.0.is_empty() {
        let kind = extensions.number(2)? as u16;
        let body = extensions.vector(2)?;
        if ENCRYPTED.contains(&kind) {
            return Some(Err(Fault::Encrypted));
        }
        // With two names, the server might use another one than we check.
        if kind == SERVER_NAME && name.replace(server_name(body)?).is_some() {
            return None;
        }
    }
    Some(Ok(name))
}

/// Returns the only name in an extension.
fn server_name(body: &[u8]) -> Option<String> {
    let mut outer = Reader(body);
    let mut list = Reader(outer.vector(2)?);
    let kind = list.number(1)?;
    let name = str::from_utf8(list.vector(2)?).ok()?;
    let is_alone = outer.0.is_empty() && list.0.is_empty();
    (kind == 0 && is_alone && !name.is_empty()).then(|| name.to_ascii_lowercase())
}

struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<u32> {
        Some(self.take(bytes)?.iter().fold(0, |number, it| number << 8 | u32::from(*it)))
    }

    /// Reads a vector that is prefixed by its length in so many bytes.
    fn vector(&mut self, bytes: usize) -> Option<&'b [u8]> {
        let length = self.number(bytes)?;
        self.take(length as usize)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotTls => "the data sent through `CONNECT` is not TLS",
            Self::Malformed => "the first message of TLS is malformed",
            Self::Encrypted => "the server name is encrypted",
            Self::TooLong => "the first message of TLS is too long",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::{ClientConfig, ClientConnection, RootCertStore, crypto::ring};

    use super::*;

    /// Returns the `ClientHello` of a real client.
    fn hello(server: &'static str) -> Vec<u8> {
        let config = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let server = server.try_into().unwrap();
        let mut client = ClientConnection::new(Arc::new(config), server).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    /// Builds a hello with only these extensions, split into records of so many bytes.
    fn client_hello(extensions: &[(u16, &[u8])], record: usize) -> Vec<u8> {
        let mut list = Vec::new();
        for (kind, body) in extensions {
            list.extend(kind.to_be_bytes());
            list.extend((body.len() as u16).to_be_bytes());
            list.extend(*body);
        }
        let mut body = vec![3; 2 + 32];
        body.extend([0, 0, 2, 19, 1, 1, 0]);
        body.extend((list.len() as u16).to_be_bytes());
        body.extend(list);
        let mut message = vec![CLIENT_HELLO, 0];
        message.extend((body.len() as u16).to_be_bytes());
        message.extend(body);
        let records = message.chunks(record).map(|it| {
            let length = (it.len() as u16).to_be_bytes();
            [&[HANDSHAKE, 3, 1][..], &length, it].concat()
        });
        records.flatten().collect()
    }

    fn server_name_extension(name: &str) -> Vec<u8> {
        let length = (name.len() as u16).to_be_bytes();
        let list = [&[0][..], &length, name.as_bytes()].concat();
        [&(list.len() as u16).to_be_bytes()[..], &list].concat()
    }

    fn name(name: &str) -> Hello {
        Hello::Name(Some(name.to_owned()))
    }

    #[test]
    fn the_name_is_read_from_what_a_client_says() {
        assert_eq!(Hello::read(&hello("api.example.com")), name("api.example.com"));
        assert_eq!(Hello::read(&hello("127.0.0.1")), Hello::Name(None));
        let all = hello("api.example.com");
        for count in 0..all.len() {
            assert_eq!(Hello::read(&all[..count]), Hello::Partial, "{count}");
        }
    }

    #[test]
    fn records_of_any_size_are_put_together() {
        for record in [1, 2, 7, 64, 1000] {
            assert_eq!(
                Hello::read(&client_hello(&[(0, &server_name_extension("A.test"))], record)),
                name("a.test")
            );
        }
    }

    #[test]
    fn what_hides_or_doubles_the_name_is_refused() {
        let refused = |bytes: &[u8]| match Hello::read(bytes) {
            Hello::Refused(fault) => fault,
            other => panic!("{other:?}"),
        };
        let (a, b) = (server_name_extension("a.test"), server_name_extension("b.test"));
        assert_eq!(refused(&client_hello(&[(0, &a), (0, &b)], 500)), Fault::Malformed);
        assert_eq!(refused(&client_hello(&[(0, &a), (0xfe0d, &[1])], 500)), Fault::Encrypted);
        assert_eq!(refused(&client_hello(&[(0, &[0, 1, 0])], 500)), Fault::Malformed);
        assert_eq!(
            refused(&client_hello(&[(0, &[a.clone(), vec![0]].concat())], 500)),
            Fault::Malformed
        );
        assert_eq!(refused(b"GET / HTTP/1.1\r\n"), Fault::NotTls);
        assert_eq!(refused(&[21, 3, 1]), Fault::NotTls);
        assert_eq!(refused(&[HANDSHAKE, 3, 1, 0, 0]), Fault::Malformed);
        assert_eq!(refused(&vec![HANDSHAKE; MAX_HELLO + 1]), Fault::TooLong);
    }

    #[test]
    fn no_bytes_break_it() {
        let good = client_hello(&[(0, &server_name_extension("a.test")), (10, &[0, 2, 0, 29])], 40);
        for at in 0..good.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bytes = good.clone();
                bytes[at] = value;
                let _ = Hello::read(&bytes);
            }
        }
    }
}
