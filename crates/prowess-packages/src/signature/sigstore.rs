//! Bundles of Sigstore, with the cryptography of `ring`, which is there for TLS anyway.

use std::{cell::RefCell, io::Read, rc::Rc};

use ring::{
    digest,
    signature::{self, UnparsedPublicKey, VerificationAlgorithm},
};
use sigstore_verify::{
    VerificationPolicy,
    crypto::{
        CryptoProvider, Error, HashContext, SigningScheme, install_default_provider,
        try_default_provider,
    },
    trust_root::{SigstoreInstance, TrustedRoot},
    types::{Bundle, HashAlgorithm},
};

use super::{SignatureError, Signer};

/// The most bytes of what is signed, which is read at once.
const CONTENT: u64 = 256 << 20;

thread_local! {
    /// What is being verified: `ring` verifies no digests, and so needs what was hashed.
    static VERIFIED: RefCell<Rc<Vec<u8>>> = RefCell::default();
}

/// Verifies a bundle, and returns its signer.
pub(super) fn verify(content: impl Read, bundle: &str) -> Result<Signer, SignatureError> {
    // Another one that the host has installed is as good.
    if try_default_provider().is_none() {
        let _ = install_default_provider(&Ring);
    }
    let malformed = |error: &dyn std::fmt::Display| SignatureError::Malformed(error.to_string());
    let bundle = Bundle::from_json(bundle).map_err(|it| malformed(&it))?;
    let mut bytes = Vec::new();
    content.take(CONTENT + 1).read_to_end(&mut bytes).map_err(SignatureError::Read)?;
    if bytes.len() as u64 > CONTENT {
        return Err(SignatureError::Unsupported("what is signed is larger than 256 MiB"));
    }
    // GitHub has an instance without a public log for private repositories and releases.
    let is_logged = !bundle.verification_material.tlog_entries.is_empty();
    let (instance, policy) = match is_logged {
        true => (SigstoreInstance::PublicGood, VerificationPolicy::any_identity()),
        false => (
            SigstoreInstance::GitHub,
            VerificationPolicy::any_identity().skip_tlog_unsafe().skip_sct(),
        ),
    };
    let invalid = |error: &dyn std::fmt::Display| SignatureError::Invalid(error.to_string());
    let root = TrustedRoot::from_embedded(instance).map_err(|it| invalid(&it))?;
    let bytes = Rc::new(bytes);
    VERIFIED.set(bytes.clone());
    let result = sigstore_verify::verify(&bytes[..], &bundle, &policy, &root);
    VERIFIED.take();
    let result = result.map_err(|it| invalid(&it))?;
    let subject = result.identity().map(|it| it.as_str().to_owned());
    let issuer = result.issuer().map(str::to_owned);
    match (issuer, subject) {
        (Some(issuer), Some(subject)) if result.certificate_verified() => {
            let text = format!("sigstore:{issuer}#{subject}");
            let signer = text.parse::<Signer>().map_err(|it| invalid(&it))?;
            // A `#` in the issuer would make it another signer.
            let expected = Signer::Sigstore { issuer, subject };
            match signer == expected {
                true => Ok(expected),
                false => Err(invalid(&"its certificate has a strange issuer")),
            }
        }
        _ => Err(invalid(&"its certificate names nobody")),
    }
}

#[derive(Debug)]
struct Ring;

struct Hash(digest::Context);

impl HashContext for Hash {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn finalize(self: Box<Self>) -> Vec<u8> {
        self.0.finish().as_ref().to_vec()
    }
}

impl CryptoProvider for Ring {
    fn hash(&self, algorithm: HashAlgorithm) -> Result<Box<dyn HashContext>, Error> {
        let algorithm = match algorithm {
            HashAlgorithm::Sha2256 => &digest::SHA256,
            HashAlgorithm::Sha2384 => &digest::SHA384,
            HashAlgorithm::Sha2512 => &digest::SHA512,
            other => return Err(Error::UnsupportedAlgorithm(other.to_string())),
        };
        Ok(Box::new(Hash(digest::Context::new(algorithm))))
    }

    fn verify_raw(
        &self,
        scheme: SigningScheme,
        key: &[u8],
        data: &[u8],
        signature: &[u8],
    ) -> Result<(), Error> {
        let algorithm: &dyn VerificationAlgorithm = match scheme {
            SigningScheme::EcdsaP256Sha256 => &signature::ECDSA_P256_SHA256_ASN1,
            SigningScheme::EcdsaP256Sha384 => &signature::ECDSA_P256_SHA384_ASN1,
            SigningScheme::EcdsaP384Sha256 => &signature::ECDSA_P384_SHA256_ASN1,
            SigningScheme::EcdsaP384Sha384 => &signature::ECDSA_P384_SHA384_ASN1,
            SigningScheme::Ed25519 => &signature::ED25519,
            SigningScheme::RsaPssSha256 => &signature::RSA_PSS_2048_8192_SHA256,
            SigningScheme::RsaPssSha384 => &signature::RSA_PSS_2048_8192_SHA384,
            SigningScheme::RsaPssSha512 => &signature::RSA_PSS_2048_8192_SHA512,
            SigningScheme::RsaPkcs1Sha256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            SigningScheme::RsaPkcs1Sha384 => &signature::RSA_PKCS1_2048_8192_SHA384,
            SigningScheme::RsaPkcs1Sha512 => &signature::RSA_PKCS1_2048_8192_SHA512,
            other => return Err(Error::UnsupportedAlgorithm(other.name().to_owned())),
        };
        UnparsedPublicKey::new(algorithm, key)
            .verify(data, signature)
            .map_err(|_| Error::Verification(format!("{} signature invalid", scheme.name())))
    }

    /// `ring` hashes by itself: the digest must be that of what is being verified.
    fn verify_prehashed(
        &self,
        scheme: SigningScheme,
        key: &[u8],
        digest: &[u8],
        signature: &[u8],
    ) -> Result<(), Error> {
        let unsupported = || Error::UnsupportedAlgorithm(format!("{} of a digest", scheme.name()));
        let content = VERIFIED.with_borrow(Clone::clone);
        let mut hash = self.hash(scheme.hash_algorithm().ok_or_else(unsupported)?)?;
        hash.update(&content);
        match hash.finalize() == digest {
            true => self.verify_raw(scheme, key, &content, signature),
            false => Err(unsupported()),
        }
    }
}
