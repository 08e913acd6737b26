//! The scenarios of `specs/signatures.md`.

use std::{path::Path, process::Command};

use prowess_packages::{
    MinisignKey, SecretKeyError, SignatureError, Signer, verify_bundle, verify_signature,
};

/// Made by minisign 0.11 of Debian.
const CONTENT: &[u8] = b"what is signed\n";
const PUBLIC: &str = "RWTmzK0GgSEB/ir+Am19OhuxPxaDlrJS5jx41sEVADMMTdsdjCGOqlON";
const SECRET: &str = "untrusted comment: minisign encrypted secret key
RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA5sytBoEhAf5AQP9LpNYZM6NvcBVnvWs64m145bRP+hTSok39kDTehyr+Am19OhuxPxaDlrJS5jx41sEVADMMTdsdjCGOqlONAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
";
const SIGNATURE: &str = "untrusted comment: signature from minisign secret key
RUTmzK0GgSEB/jvWpoa1IfUuewX+dh/21PtGQ60DwIqFtE+R9j/Zp2A7BvJ1KXEYefV5ZCem/Zgc9UK8HgHFEDMQ1XXg5/iNHAc=
trusted comment: timestamp:1 file:content
c9JSekU0RUv2wII+fvfgqeoVJ3dEhau7vwnJJgmH+Fq+WFhsBSw3a643IFsh5Ey8pyc/KFW1FWFFA8gDnNmYBA==
";
const OLD_SIGNATURE: &str = "untrusted comment: signature from minisign secret key
RWTmzK0GgSEB/ig3biSuepvVURQdd07G2Y0a14sYXHB4mbiZ0dZ4yfRVF3uaCJSwdpa8kMyKlGcGYB4lUqKMXocJh0G9eXq1ogU=
trusted comment: old
Nv1fZ1u8hx2j/XpV9a87goakRFnZU1aMjHAHoekilH/N8wmq7x/tUPC7kDE53sGQA3oi5rlgsOJg4eEO6v0fCQ==
";
/// The same key with the password `pw`, encrypted with 4 MiB by `hashlib.scrypt` of Python.
const PROTECTED: &str = "untrusted comment: minisign encrypted secret key
RWRTY0IyAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8AAAIAAAAAAAAAAEAAAAAArer1ToqDTFy0nBljbsFJK4cAIS8sZPcmfOJ7tV60sZ+YTgi6ysUBXNy4YcfhdK6m+nySDRfVUJW1UjM4zyjFp15XngPFxhRTS6qB/B2/BNkGYnrOjUS8smWPjMVRkND9lWK4Q9WbhxQ=
";
/// A key that asks for more memory than there is.
const EXPENSIVE: &str = "untrusted comment: minisign encrypted secret key
RWRTY0IyAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8AAAAAAAAAEAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
";
const OTHER_PUBLIC: &str = "RWRPn7Ir+HB9sBrxXqIh6gxZIzOMI2nL0Cirf2gJM+HluhjwLhN5NJgN";

fn signer(key: &str) -> Signer {
    format!("minisign:{key}").parse().unwrap()
}

mod a_signer_is_a_text {
    use super::*;

    #[test]
    fn signers_are_written_as_they_are_read() {
        for text in [
            &format!("minisign:{PUBLIC}"),
            "sigstore:https://accounts.google.com#someone@example.com",
            "sigstore:https://token.actions.githubusercontent.com#https://github.com/o/r/.github/workflows/x.yml@*",
        ] {
            let signer: Signer = text.parse().unwrap();
            assert_eq!(&signer.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_signer_is_an_error() {
        let flipped = PUBLIC.replace("RWTm", "AAAA");
        for text in [
            "",
            PUBLIC,
            "minisign:",
            "minisign:RWT",
            &format!("minisign:{flipped}"),
            "sigstore:https://example.com",
            "sigstore:#someone",
            "sigstore:issuer#some\none",
        ] {
            let error = text.parse::<Signer>().unwrap_err();
            assert_eq!(error.text, text);
        }
    }

    #[test]
    fn a_star_allows_every_tag_of_a_workflow() {
        let signer = |it: &str| format!("sigstore:{it}").parse::<Signer>().unwrap();
        let policy = signer("https://i#https://github.com/o/r/.github/workflows/x.yml@*");
        let at = |tag: &str| {
            signer(&format!("https://i#https://github.com/o/r/.github/workflows/x.yml@{tag}"))
        };
        assert!(policy.allows(&at("refs/tags/v1")));
        assert!(at("refs/tags/v1").allows(&at("refs/tags/v1")));
        assert!(!at("refs/tags/v1").allows(&at("refs/tags/v2")));
        assert!(
            !policy.allows(&signer("https://i#https://github.com/o/r2/.github/workflows/x.yml@x"))
        );
        assert!(
            !policy.allows(&signer("https://j#https://github.com/o/r/.github/workflows/x.yml@x"))
        );
        assert!(!policy.allows(&super::signer(PUBLIC)));
    }
}

mod a_signature_of_minisign_is_verified {
    use super::*;

    #[test]
    fn a_signature_by_an_allowed_key_names_its_signer() {
        let allowed = [signer(OTHER_PUBLIC), signer(PUBLIC)];
        assert_eq!(verify_signature(CONTENT, SIGNATURE, &allowed).unwrap(), signer(PUBLIC));
        let windows = SIGNATURE.replace('\n', "\r\n");
        assert_eq!(verify_signature(CONTENT, &windows, &allowed).unwrap(), signer(PUBLIC));
    }

    #[test]
    fn a_changed_content_or_comment_does_not_match() {
        let allowed = [signer(PUBLIC)];
        let comment = SIGNATURE.replace("file:content", "file:another");
        for (content, signature) in [(&b"what is signed"[..], SIGNATURE), (CONTENT, &comment)] {
            let error = verify_signature(content, signature, &allowed).unwrap_err();
            assert!(matches!(error, SignatureError::Invalid(_)), "{error:?}");
        }
    }

    #[test]
    fn a_key_that_is_not_allowed_is_named() {
        let error = verify_signature(CONTENT, SIGNATURE, &[signer(OTHER_PUBLIC)]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "it is signed by `the minisign key FE01218106ADCCE6`, who is not allowed"
        );
        assert!(verify_signature(CONTENT, SIGNATURE, &[]).is_err());
    }

    #[test]
    fn a_key_with_the_number_of_another_does_not_help() {
        let other = MinisignKey::parse(SECRET, None).unwrap();
        let signed = other.sign(CONTENT, "").unwrap();
        // The number of an allowed key in front of a signature by another one.
        let bytes = base64_of(OTHER_PUBLIC);
        let mut lines: Vec<String> = signed.lines().map(str::to_owned).collect();
        let mut signature = base64_of(&lines[1]);
        signature[2..10].copy_from_slice(&bytes[2..10]);
        lines[1] = to_base64(&signature);
        let error =
            verify_signature(CONTENT, &lines.join("\n"), &[signer(OTHER_PUBLIC)]).unwrap_err();
        assert!(matches!(error, SignatureError::Invalid(_)), "{error:?}");
    }

    #[test]
    fn the_old_format_is_refused_and_says_so() {
        let error = verify_signature(CONTENT, OLD_SIGNATURE, &[signer(PUBLIC)]).unwrap_err();
        assert!(matches!(error, SignatureError::Unsupported(_)), "{error:?}");
        assert!(error.to_string().contains("old format"), "{error}");
    }

    #[test]
    fn what_is_no_signature_is_malformed() {
        let long = "x".repeat(2 << 20);
        for text in ["", "untrusted comment: x", &SIGNATURE[..80], &SIGNATURE[..200], &long] {
            let error = verify_signature(CONTENT, text, &[signer(PUBLIC)]).unwrap_err();
            assert!(matches!(error, SignatureError::Malformed(_)), "{error:?}");
        }
    }

    #[test]
    fn no_changed_byte_of_a_signature_is_accepted_as_another_content() {
        for at in 0..SIGNATURE.len() {
            let mut bytes = SIGNATURE.as_bytes().to_vec();
            bytes[at] ^= 1;
            let Ok(text) = String::from_utf8(bytes) else { continue };
            let result = verify_signature(&b"another content"[..], &text, &[signer(PUBLIC)]);
            assert!(result.is_err(), "byte {at}");
        }
    }

    fn base64_of(text: &str) -> Vec<u8> {
        use base64::Engine as _;
        base64::prelude::BASE64_STANDARD.decode(text).unwrap()
    }

    fn to_base64(bytes: &[u8]) -> String {
        use base64::Engine as _;
        base64::prelude::BASE64_STANDARD.encode(bytes)
    }
}

mod packages_are_signed_with_keys_of_minisign {
    use super::*;
    use prowess_testing::world::World;
    use std::process::{Command, Stdio};

    #[test]
    fn what_is_signed_here_is_verified_here() {
        let key = MinisignKey::parse(SECRET, None).unwrap();
        assert_eq!(key.public_key(), PUBLIC);
        let signature = key.sign(CONTENT, "timestamp:1 file:content").unwrap();
        // It is the same in every byte, because the algorithm has no random part.
        assert_eq!(signature, SIGNATURE);
        assert_eq!(verify_signature(CONTENT, &signature, &[key.signer()]).unwrap(), key.signer());
    }

    #[test]
    fn a_comment_stays_in_its_line() {
        let key = MinisignKey::parse(SECRET, None).unwrap();
        let signature = key.sign(CONTENT, "a\nuntrusted comment: b\r\n").unwrap();
        assert_eq!(signature.lines().count(), 4);
        verify_signature(CONTENT, &signature, &[key.signer()]).unwrap();
    }

    #[test]
    fn a_key_shows_no_secret() {
        let key = MinisignKey::parse(SECRET, None).unwrap();
        let shown = format!("{key:?}");
        assert!(shown.contains(PUBLIC));
        assert!(shown.len() < PUBLIC.len() + 50, "{shown}");
    }

    #[test]
    fn a_key_that_cannot_be_read_says_why() {
        let parse = |text: &str| MinisignKey::parse(text, None).unwrap_err();
        assert_eq!(parse(PROTECTED), SecretKeyError::NoPassword);
        for text in ["", "one line", &SECRET[..100], &SECRET.replace("RWQAAEIy", "RWQBAEIy")] {
            assert_eq!(parse(text), SecretKeyError::Malformed);
        }
        // A public key that is not that of the secret one would give the secret one away.
        let other = SECRET.replace("hyr+Am19", "hyr+Am18");
        assert_eq!(parse(&other), SecretKeyError::Malformed);
        // What a password needs is bounded.
        let error = MinisignKey::parse(EXPENSIVE, Some("pw")).unwrap_err();
        assert_eq!(error, SecretKeyError::TooExpensive);
    }

    #[test]
    fn a_key_with_a_password_is_decrypted() {
        let key = MinisignKey::parse(PROTECTED, Some("pw")).unwrap();
        assert_eq!(key.public_key(), PUBLIC);
        let error = MinisignKey::parse(PROTECTED, Some("PW")).unwrap_err();
        assert_eq!(error, SecretKeyError::WrongPassword);
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs minisign")]
    fn the_program_minisign_accepts_what_is_signed_here() {
        let world = World::new().file("content", CONTENT);
        let run = |arguments: &[&str]| {
            let mut command = Command::new("minisign");
            command.args(arguments).current_dir(world.path(".")).stdin(Stdio::null());
            command.output().unwrap()
        };
        assert!(run(&["-G", "-W", "-p", "key.pub", "-s", "key"]).status.success());
        let secret = std::fs::read_to_string(world.path("key")).unwrap();
        let key = MinisignKey::parse(&secret, None).unwrap();
        world.write("content.minisig", key.sign(CONTENT, "by us").unwrap());
        let verified = run(&["-V", "-p", "key.pub", "-m", "content"]);
        let text = String::from_utf8_lossy(&verified.stdout);
        assert!(text.contains("Trusted comment: by us"), "{verified:?}");
        world.write("content", "something else");
        assert!(!run(&["-V", "-p", "key.pub", "-m", "content"]).status.success());
    }
}

/// Without the feature, each of them says that it cannot be verified.
mod a_bundle_of_sigstore_is_verified_without_a_network {
    use super::*;

    const BLOB: &[u8] = b"test content for cosign\n";
    const BLOB_BUNDLE: &str = "cosign-v3-blob.sigstore.json";
    /// A statement about a package, by a workflow on GitHub.
    const PACKAGE: &str = "signed-package-2.1.0-hb0f4dca_0.conda";
    const PACKAGE_BUNDLE: &str = "conda-attestation.sigstore.json";
    const ISSUER: &str = "https://token.actions.githubusercontent.com";
    const WORKFLOW: &str =
        "https://github.com/prefix-dev/sigstore-example/.github/workflows/action.yaml@";

    /// Reads a file that `sigstore-verify` has for its own tests: real signatures, which nobody else can make.
    fn data(name: &str) -> Vec<u8> {
        let versions = Command::new("rustc").arg("-vV").output().unwrap().stdout;
        let versions = String::from_utf8(versions).unwrap();
        let host = versions.lines().find_map(|it| it.strip_prefix("host: ")).unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["metadata", "--format-version=1", "--locked", "--offline"]);
        // Packages of other systems may not be there.
        cargo.args(["--filter-platform", host, "--features", "sigstore"]);
        let metadata = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap().stdout;
        let metadata: serde_json::Value = serde_json::from_slice(&metadata).unwrap();
        let mut packages = metadata["packages"].as_array().unwrap().iter();
        let package = packages.find(|it| it["name"] == "sigstore-verify").unwrap();
        let folder = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
        std::fs::read(folder.join("test_data/bundles").join(name)).unwrap()
    }

    fn text(name: &str) -> String {
        String::from_utf8(data(name)).unwrap()
    }

    #[test]
    #[cfg_attr(not(feature = "sigstore"), ignore = "needs the feature `sigstore`")]
    fn a_bundle_names_the_issuer_and_the_subject() {
        let signer = verify_bundle(&data(PACKAGE)[..], &text(PACKAGE_BUNDLE)).unwrap();
        assert_eq!(signer.to_string(), format!("sigstore:{ISSUER}#{WORKFLOW}refs/heads/main"));
        let signer = verify_bundle(BLOB, &text(BLOB_BUNDLE)).unwrap();
        assert!(matches!(signer, Signer::Sigstore { .. }), "{signer:?}");
    }

    #[test]
    #[cfg_attr(not(feature = "sigstore"), ignore = "needs the feature `sigstore`")]
    fn only_an_allowed_identity_is_accepted() {
        let (package, bundle) = (data(PACKAGE), text(PACKAGE_BUNDLE));
        let verify =
            |allowed: &str| verify_signature(&package[..], &bundle, &[allowed.parse().unwrap()]);
        assert!(verify(&format!("sigstore:{ISSUER}#{WORKFLOW}*")).is_ok());
        for other in [
            format!("sigstore:{ISSUER}#{WORKFLOW}refs/tags/v1"),
            format!("sigstore:https://accounts.google.com#{WORKFLOW}*"),
            format!("minisign:{PUBLIC}"),
        ] {
            let error = verify(&other).unwrap_err();
            assert!(matches!(error, SignatureError::NotAllowed { .. }), "{error:?}");
        }
    }

    #[test]
    #[cfg_attr(not(feature = "sigstore"), ignore = "needs the feature `sigstore`")]
    fn a_changed_content_or_bundle_is_refused() {
        let (package, [blob_bundle, package_bundle]) =
            (data(PACKAGE), [BLOB_BUNDLE, PACKAGE_BUNDLE].map(text));
        for (content, bundle, other) in [
            (&package[..], &*package_bundle, &*blob_bundle),
            (BLOB, &*blob_bundle, &*package_bundle),
        ] {
            let mut changed = content.to_vec();
            changed[3] ^= 1;
            let error = verify_bundle(&changed[..], bundle).unwrap_err();
            assert!(matches!(error, SignatureError::Invalid(_)), "{error:?}");
            // A bundle of something else.
            assert!(verify_bundle(content, other).is_err());
            // Each value of the bundle in turn.
            let document: serde_json::Value = serde_json::from_str(bundle).unwrap();
            let mut pointers = Vec::new();
            texts(&document, String::new(), &mut pointers);
            assert!(pointers.len() > 10, "{pointers:?}");
            let mut refused = 0;
            for pointer in &pointers {
                let mut changed = document.clone();
                let value = changed.pointer_mut(pointer).unwrap();
                let text = value.as_str().unwrap();
                let middle = text.len() / 2;
                let letter = if &text[middle..=middle] == "A" { "B" } else { "A" };
                let new = format!("{}{letter}{}", &text[..middle], &text[middle + 1..]);
                *value = new.into();
                let result = verify_bundle(content, &changed.to_string());
                refused += usize::from(result.is_err());
            }
            assert!(refused + 4 >= pointers.len(), "{refused} of {pointers:?}");
        }
    }

    /// The places of all texts in a document that are long enough to mean something.
    fn texts(value: &serde_json::Value, place: String, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(map) => {
                map.iter().for_each(|(key, it)| texts(it, format!("{place}/{key}"), found));
            }
            serde_json::Value::Array(list) => {
                list.iter()
                    .enumerate()
                    .for_each(|(at, it)| texts(it, format!("{place}/{at}"), found));
            }
            serde_json::Value::String(text) if text.len() > 12 && text.is_ascii() => {
                found.push(place);
            }
            _ => {}
        }
    }

    #[test]
    fn what_is_no_bundle_is_an_error() {
        for text in ["{", "{}", "{\"mediaType\":1}", "[]", "null"] {
            assert!(verify_bundle(BLOB, text).is_err(), "{text}");
        }
    }
}
