//! Secrets of OAuth, and the random values of a login.

use std::fmt;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::LoginError;

/// A token, code or client secret. Redacted in `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(in crate::client) struct Secret(String);

impl Secret {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Generates 256 random bits, as 43 URL-safe characters.
    pub(super) fn random() -> Result<Self, LoginError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| LoginError::Random(error.into()))?;
        Ok(Self(BASE64_URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Returns its value.
    pub(in crate::client) fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns its PKCE challenge (S256).
    pub(super) fn challenge(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&self.0))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_that_of_rfc_7636() {
        let verifier = Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(verifier.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert!(!format!("{verifier:?}").contains("dBjf"));
    }

    #[test]
    fn every_random_text_is_another_one() {
        let [one, other] = [Secret::random().unwrap(), Secret::random().unwrap()];
        assert_eq!(one.reveal().len(), 43);
        assert_ne!(one, other);
    }
}
