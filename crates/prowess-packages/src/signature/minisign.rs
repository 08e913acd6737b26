//! Signatures of `minisign`.

use std::{
    fmt,
    io::{self, Read},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use blake2::{Blake2b, Digest as _, digest::consts::U32};
use minisign_verify::{PublicKey, Signature};
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use super::{SignatureError, Signer, decode, scrypt::scrypt};

const LEGACY: &[u8] = b"Ed";
const PREHASHED: &[u8] = b"ED";

/// A secret key of `minisign`, which can sign. Redacted in `Debug`.
pub struct MinisignKey {
    number: [u8; 8],
    pair: Ed25519KeyPair,
}

/// A text is not a secret key, or cannot be decrypted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretKeyError {
    /// It is not a secret key of `minisign`.
    #[error("it is not a secret key of minisign")]
    Malformed,
    /// It is protected by a password, and there is none.
    #[error("the secret key is protected by a password")]
    NoPassword,
    /// The password is not that of the key.
    #[error("wrong password for the secret key")]
    WrongPassword,
    /// Its password needs more memory or time than is given.
    #[error("the secret key needs more than 1 GiB of memory to be decrypted")]
    TooExpensive,
}

impl SecretKeyError {
    /// Returns what a user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Malformed => "`minisign -G` creates one, in `~/.minisign/minisign.key`",
            Self::NoPassword => "state its password, or create a key without one: `minisign -G -W`",
            Self::WrongPassword => "try again",
            Self::TooExpensive => "create another one with `minisign -G`",
        }
    }
}

impl fmt::Debug for MinisignKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MinisignKey").field("public", &self.public_key()).finish_non_exhaustive()
    }
}

impl MinisignKey {
    /// Reads a file that `minisign -G` wrote. The password is needed if the key has one; checking it
    /// takes a second and up to 1 GiB of memory.
    pub fn parse(text: &str, password: Option<&str>) -> Result<Self, SecretKeyError> {
        const ENCRYPTED: &[u8] = b"Sc";
        let line = text.lines().nth(1).ok_or(SecretKeyError::Malformed)?;
        let bytes = decode(line).filter(|it| it.len() == 158).ok_or(SecretKeyError::Malformed)?;
        let (algorithms, rest) = bytes.split_at(6);
        let (parameters, secret) = rest.split_at(48);
        if &algorithms[..2] != LEGACY || &algorithms[4..] != b"B2" {
            return Err(SecretKeyError::Malformed);
        }
        let mut secret = secret.to_vec();
        let is_encrypted = match &algorithms[2..4] {
            ENCRYPTED => true,
            [0, 0] => false,
            _ => return Err(SecretKeyError::Malformed),
        };
        if is_encrypted {
            let password = password.ok_or(SecretKeyError::NoPassword)?;
            let number = |at: usize| {
                let bytes = parameters[at..at + 8].iter().rev();
                bytes.fold(0, |sum: u64, it| sum << 8 | u64::from(*it))
            };
            let mut stream = vec![0; secret.len()];
            scrypt(password.as_bytes(), &parameters[..32], number(32), number(40), &mut stream)
                .ok_or(SecretKeyError::TooExpensive)?;
            secret.iter_mut().zip(stream).for_each(|(byte, key)| *byte ^= key);
        }
        let (key, checksum) = secret.split_at(72);
        // `minisign` leaves the checksum of a key without a password empty.
        if is_encrypted {
            let actual = Blake2b::<U32>::new().chain_update(LEGACY).chain_update(key).finalize();
            if actual.as_slice() != checksum {
                return Err(SecretKeyError::WrongPassword);
            }
        }
        let pair = Ed25519KeyPair::from_seed_and_public_key(&key[8..40], &key[40..72])
            .map_err(|_| SecretKeyError::Malformed)?;
        let number = key[..8].try_into().map_err(|_| SecretKeyError::Malformed)?;
        Ok(Self { number, pair })
    }

    /// Returns the public key in base64, which begins with `RW`.
    pub fn public_key(&self) -> String {
        let key = [LEGACY, &self.number, self.pair.public_key().as_ref()].concat();
        BASE64_STANDARD.encode(key)
    }

    /// Returns who signs with this key.
    pub fn signer(&self) -> Signer {
        Signer::Minisign { key: self.public_key() }
    }

    /// Signs, and returns the content of a `.minisig` file. The comment, of one line, is signed too;
    /// `minisign` shows it.
    pub fn sign(&self, mut content: impl Read, comment: &str) -> io::Result<String> {
        let comment: String =
            comment.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
        let mut hasher = blake2::Blake2b512::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match content.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => hasher.update(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let signature = self.pair.sign(&hasher.finalize());
        let global = self.pair.sign(&[signature.as_ref(), comment.as_bytes()].concat());
        let signature = [PREHASHED, &self.number, signature.as_ref()].concat();
        Ok(format!(
            "untrusted comment: signature from minisign secret key\n{}\ntrusted comment: {comment}\n{}\n",
            BASE64_STANDARD.encode(signature),
            BASE64_STANDARD.encode(global.as_ref()),
        ))
    }
}

/// Verifies a signature by the key of an allowed signer.
pub(super) fn verify(
    mut content: impl Read,
    signature: &str,
    allowed: &[Signer],
) -> Result<Signer, SignatureError> {
    let malformed = || SignatureError::Malformed("it is not a signature of minisign".to_owned());
    let decoded = Signature::decode(signature).map_err(|_| malformed())?;
    let bytes = signature.lines().nth(1).and_then(decode).ok_or_else(malformed)?;
    let (algorithm, number) =
        (bytes.get(..2).ok_or_else(malformed)?, bytes.get(2..10).ok_or_else(malformed)?);
    if algorithm != PREHASHED {
        return Err(SignatureError::Unsupported(
            "the signature has the old format of minisign, which does not hash first",
        ));
    }
    let keys = allowed.iter().filter_map(|it| match it {
        Signer::Minisign { key } => Some((it, key)),
        Signer::Sigstore { .. } => None,
    });
    let mut keys = keys.filter(|it| decode(it.1).is_some_and(|it| it.get(2..10) == Some(number)));
    let (signer, key) = keys.next().ok_or_else(|| SignatureError::NotAllowed {
        signer: format!("the minisign key {}", key_number(number)),
    })?;
    let key = PublicKey::from_base64(key).map_err(|_| malformed())?;
    let invalid = |error: minisign_verify::Error| SignatureError::Invalid(error.to_string());
    let mut verifier = key.verify_stream(&decoded).map_err(invalid)?;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match content.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => verifier.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(SignatureError::Read(error)),
        }
    }
    verifier.finalize().map_err(|_| {
        SignatureError::Invalid("the content or the comment has been changed".to_owned())
    })?;
    Ok(signer.clone())
}

/// Returns the number of a key as `minisign` writes it.
fn key_number(number: &[u8]) -> String {
    number.iter().rev().map(|it| format!("{it:02X}")).collect()
}
