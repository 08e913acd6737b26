//! Verifies who signed a package, and signs packages.
//!
//! Two kinds of signatures are known: those of `minisign`, by a key pair, and bundles of Sigstore,
//! by an identity that a certificate authority has seen. Bundles need the feature `sigstore`; they
//! are verified without a network, by the roots that are built in.

use std::{
    fmt,
    io::{self, Read},
    str::FromStr,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};

mod scrypt;
mod minisign;
#[cfg(feature = "sigstore")]
mod sigstore;

pub use self::minisign::{MinisignKey, SecretKeyError};

/// The most bytes of a signature.
const SIGNATURE: usize = 1 << 20;

/// Who signed something, as it is written in settings and lock files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Signer {
    /// The owner of a key pair of `minisign`: `minisign:` and the public key, which begins with `RW`.
    Minisign {
        /// The public key in base64.
        key: String,
    },
    /// An identity of Sigstore: `sigstore:`, the issuer, `#` and the subject.
    Sigstore {
        /// Who confirmed the identity, such as `https://token.actions.githubusercontent.com`.
        issuer: String,
        /// The identity, such as a mail address or the URL of a workflow.
        subject: String,
    },
}

impl Signer {
    /// Whether this signer, as a policy, allows another. A subject that ends with `*` allows all that
    /// begin with what is before it: the workflow of a repository at any tag.
    pub fn allows(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Sigstore { issuer, subject },
                Self::Sigstore { issuer: other_issuer, subject: other_subject },
            ) => {
                let is_allowed = match subject.strip_suffix('*') {
                    Some(start) => other_subject.starts_with(start),
                    None => subject == other_subject,
                };
                issuer == other_issuer && is_allowed
            }
            _ => self == other,
        }
    }
}

impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minisign { key } => write!(f, "minisign:{key}"),
            Self::Sigstore { issuer, subject } => write!(f, "sigstore:{issuer}#{subject}"),
        }
    }
}

/// A text is not a signer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a signer: {why}")]
#[non_exhaustive]
pub struct SignerSyntaxError {
    /// The text.
    pub text: String,
    /// The reason.
    pub why: &'static str,
}

impl SignerSyntaxError {
    /// Returns what a user can do about it.
    pub fn hint(&self) -> &'static str {
        "write `minisign:RW…`, the second line of a `minisign.pub`, or `sigstore:ISSUER#SUBJECT`"
    }
}

impl FromStr for Signer {
    type Err = SignerSyntaxError;

    fn from_str(text: &str) -> Result<Self, SignerSyntaxError> {
        let wrong = |why| SignerSyntaxError { text: text.to_owned(), why };
        if text.contains(char::is_control) {
            return Err(wrong("it has a control character"));
        }
        if let Some(key) = text.strip_prefix("minisign:") {
            let key = key.trim();
            minisign_verify::PublicKey::from_base64(key)
                .map_err(|_| wrong("its key is not a public key of minisign"))?;
            return Ok(Self::Minisign { key: key.to_owned() });
        }
        let Some(identity) = text.strip_prefix("sigstore:") else {
            return Err(wrong("it begins neither with `minisign:` nor with `sigstore:`"));
        };
        match identity.split_once('#') {
            Some((issuer, subject)) if !issuer.is_empty() && !subject.is_empty() => {
                Ok(Self::Sigstore { issuer: issuer.to_owned(), subject: subject.to_owned() })
            }
            _ => Err(wrong("it has no issuer or no subject")),
        }
    }
}

/// A signature does not prove what it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// The signature is neither of `minisign` nor a bundle of Sigstore.
    #[error("the signature cannot be read: {0}")]
    Malformed(String),
    /// The content is not what was signed, or the signature is not genuine.
    #[error("the signature does not match: {0}")]
    Invalid(String),
    /// It is genuine, but of somebody else.
    #[error("it is signed by `{signer}`, who is not allowed")]
    NotAllowed {
        /// The signer, or the number of the key of one.
        signer: String,
    },
    /// This kind of signature is not known to this build, or not any more.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The content cannot be read.
    #[error("cannot read what is signed")]
    Read(#[source] io::Error),
}

impl SignatureError {
    /// Returns what a user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "download the signature again",
            Self::Invalid(_) => "do not use it; download it again and tell its author",
            Self::NotAllowed { .. } => {
                "add the signer to `packages.signers` if its author says that this is right"
            }
            Self::Unsupported(_) => "ask its author for a signature of `minisign`",
            Self::Read(_) => "check the file and its permissions",
        }
    }
}

/// Verifies a signature, and returns the signer. One of the allowed signers must be.
pub fn verify_signature(
    content: impl Read,
    signature: &str,
    allowed: &[Signer],
) -> Result<Signer, SignatureError> {
    if is_bundle(signature)? {
        let signer = verify_bundle(content, signature)?;
        return match allowed.iter().any(|it| it.allows(&signer)) {
            true => Ok(signer),
            false => Err(SignatureError::NotAllowed { signer: signer.to_string() }),
        };
    }
    minisign::verify(content, signature, allowed)
}

/// Verifies a bundle of Sigstore, and returns its signer, whoever that is: for the first use of a source.
pub fn verify_bundle(content: impl Read, bundle: &str) -> Result<Signer, SignatureError> {
    if !is_bundle(bundle)? {
        return Err(SignatureError::Malformed("it is not a bundle of Sigstore".to_owned()));
    }
    #[cfg(feature = "sigstore")]
    return sigstore::verify(content, bundle);
    #[cfg(not(feature = "sigstore"))]
    {
        drop(content);
        Err(SignatureError::Unsupported("this build cannot verify bundles of Sigstore"))
    }
}

fn is_bundle(signature: &str) -> Result<bool, SignatureError> {
    match signature.len() > SIGNATURE {
        true => Err(SignatureError::Malformed("it is too long".to_owned())),
        false => Ok(signature.trim_start().starts_with('{')),
    }
}

fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(text.trim()).ok()
}
