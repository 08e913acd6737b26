//! The scenarios of `specs/uploading.md`.

use std::fs;

use prowess_packages::{SkillUpload, SourceKind};

use crate::hosts::*;

/// Returns an upload of a skill with a script.
fn upload_of(place: &Place) -> SkillUpload {
    let folder = place.path("pdf");
    fs::create_dir_all(folder.join("scripts")).unwrap();
    fs::write(folder.join("SKILL.md"), skill("pdf")).unwrap();
    fs::write(folder.join("scripts/run.sh"), "#!/bin/sh\necho hello\n").unwrap();
    let tree = fetch(&place.plain_fetcher(), &source(SourceKind::Folder(folder.clone()))).unwrap();
    SkillUpload::new("pdf", "1.0.0", &folder, tree.files)
}

mod a_skill_is_published_to_a_registry {
    use std::fs;

    use prowess_packages::{PackageFetcher, SkillUpload, UploadError, UploadedSkill};
    use prowess_testing::server::{Asked, Server, answer};

    use crate::hosts::*;

    use super::upload_of;

    /// Starts a registry that answers uploads with this.
    fn registry(status: &'static str, body: &'static str) -> Server {
        Server::new(move |asked, client| {
            let target = asked.line.split(' ').nth(1).unwrap();
            let reply = match target.split('?').next().unwrap() {
                "/api/v1/whoami" if asked.header("authorization") == Some("bearer good") => {
                    answer("200 OK", "", "{\"user\":{\"handle\":\"ann\"}}")
                }
                "/api/v1/whoami" => answer("401 Unauthorized", "", "Unauthorized"),
                "/api/v1/skills" => answer(status, "", body),
                "/api/v1/skills/pdf/versions/0.9.0" => answer("200 OK", "", "{}"),
                _ => answer("404 Not Found", "", "nothing"),
            };
            client.write_all(reply.as_bytes())
        })
    }

    fn send(
        place: &Place,
        server: &Server,
        token: Option<&str>,
        upload: &SkillUpload,
    ) -> Result<UploadedSkill, UploadError> {
        let mut fetcher: PackageFetcher = place.plain_fetcher();
        if let Some(token) = token {
            fetcher = fetcher.with_token("127.0.0.1", token.to_owned());
        }
        wait(fetcher.upload(Some(&url(&server.url(""))), upload))
    }

    fn uploads(server: &Server) -> Vec<Asked> {
        let asked = server.asked().into_iter();
        asked.filter(|it| it.line.starts_with("POST")).collect()
    }

    #[test]
    fn its_files_are_sent_with_a_description() {
        let place = Place::new();
        let server = registry("200 OK", "{\"ok\":true,\"publicationStatus\":\"pending\"}");
        let done = send(&place, &server, Some("good"), &upload_of(&place)).unwrap();
        assert_eq!(
            (done.owner.as_deref(), &*done.slug, &*done.version),
            (Some("ann"), "pdf", "1.0.0")
        );
        assert!(done.is_pending);
        let sent = uploads(&server).pop().unwrap();
        assert_eq!(sent.header("authorization"), Some("bearer good"));
        let kind = sent.header("content-type").unwrap();
        let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
        let parts: Vec<&str> = sent.body.split(&format!("--{boundary}")).collect();
        assert_eq!((parts.len(), parts[4]), (5, "--\r\n"));
        assert!(
            parts[1].contains("name=\"payload\"") && parts[1].contains("\"version\":\"1.0.0\"")
        );
        assert!(parts[1].contains("\"acceptLicenseTerms\":true"));
        assert!(parts[2].contains("filename=\"SKILL.md\"") && parts[2].contains(&skill("pdf")));
        assert!(
            parts[3].contains("filename=\"scripts/run.sh\"") && parts[3].contains("echo hello")
        );
    }

    #[test]
    fn a_version_is_never_replaced() {
        let place = Place::new();
        let server = registry("400 Bad Request", "Version 1.0.0 already exists");
        let mut upload = upload_of(&place);
        let error = send(&place, &server, Some("good"), &upload).unwrap_err();
        assert_eq!(error.to_string(), "`ann/pdf` has a version `1.0.0` already");
        upload.version = "0.9.0".to_owned();
        let before = uploads(&server).len();
        let error = send(&place, &server, Some("good"), &upload).unwrap_err();
        assert_eq!(error.to_string(), "`ann/pdf` has a version `0.9.0` already");
        assert_eq!(uploads(&server).len(), before);
    }

    #[test]
    fn a_token_is_needed_before_anything_is_sent() {
        let place = Place::new();
        let server = registry("200 OK", "{\"ok\":true}");
        let error = send(&place, &server, None, &upload_of(&place)).unwrap_err();
        assert!(matches!(error, UploadError::NoToken { .. }), "{error}");
        assert!(error.hint().unwrap().contains("create a token"));
        let error = send(&place, &server, Some("stale"), &upload_of(&place)).unwrap_err();
        assert!(error.to_string().contains("does not accept the token"), "{error}");
        assert!(uploads(&server).is_empty());
    }

    #[test]
    fn what_the_registry_says_is_told() {
        let place = Place::new();
        let server = registry("400 Bad Request", "slug is reserved\u{7}");
        let error =
            send(&place, &server, Some("good"), &upload_of(&place)).unwrap_err().to_string();
        assert!(error.ends_with("does not accept the skill: slug is reserved "), "{error:?}");
        let mut upload = upload_of(&place);
        upload.slug = "../x".to_owned();
        let error = send(&place, &server, Some("good"), &upload).unwrap_err();
        assert!(matches!(error, UploadError::Name { .. }), "{error}");
    }

    #[test]
    fn a_file_that_changes_meanwhile_is_not_sent() {
        let place = Place::new();
        let server = registry("200 OK", "{\"ok\":true}");
        let upload = upload_of(&place);
        fs::write(place.path("pdf/scripts/run.sh"), "other").unwrap();
        let error = send(&place, &server, Some("good"), &upload).unwrap_err();
        assert!(matches!(error, UploadError::Read { .. }), "{error}");
        assert!(uploads(&server).is_empty());
    }
}

mod a_skill_is_published_in_the_folder_of_a_site {
    use std::{collections::BTreeMap, fs};

    use prowess_packages::{PackOptions, SourceKind, UploadError, pack, publish_to_site};

    use crate::hosts::*;

    use super::upload_of;

    #[test]
    fn what_is_written_can_be_fetched() {
        let place = Place::new();
        let upload = upload_of(&place);
        let packed = pack(&upload.folder, &PackOptions::default()).unwrap();
        let folder = place.path("site");
        publish_to_site(&folder, "pdf", "Reads PDFs", &packed).unwrap();
        let mut pages: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for entry in fs::read_dir(folder.join(".well-known/agent-skills")).unwrap() {
            let entry = entry.unwrap();
            let path = format!("/.well-known/agent-skills/{}", entry.file_name().display());
            pages.insert(path, fs::read(entry.path()).unwrap());
        }
        let server = site(pages.into_iter().map(|(path, body)| page(&path, body)).collect());
        let source = source(SourceKind::Site(url(&server.url("/"))));
        let tree = fetch(&place.plain_fetcher(), &source).unwrap();
        assert_eq!(paths(&tree), ["pdf/SKILL.md", "pdf/scripts/run.sh"]);
    }

    #[test]
    fn what_others_have_put_there_stays() {
        let place = Place::new();
        let upload = upload_of(&place);
        let packed = pack(&upload.folder, &PackOptions::default()).unwrap();
        let folder = place.path("site");
        publish_to_site(&folder, "one", "first", &packed).unwrap();
        let index = folder.join(".well-known/agent-skills/index.json");
        let text = fs::read_to_string(&index).unwrap().replacen('{', "{ \"extra\": 7, ", 1);
        fs::write(&index, text).unwrap();
        publish_to_site(&folder, "two", "second", &packed).unwrap();
        publish_to_site(&folder, "one", "third", &packed).unwrap();
        let text = fs::read_to_string(&index).unwrap();
        assert!(text.contains("\"extra\": 7") && text.contains("second") && text.contains("third"));
        assert!(!text.contains("first"), "{text}");
    }

    #[test]
    fn an_index_that_is_not_understood_is_not_touched() {
        let place = Place::new();
        let upload = upload_of(&place);
        let packed = pack(&upload.folder, &PackOptions::default()).unwrap();
        let folder = place.path("site");
        let index = folder.join(".well-known/agent-skills/index.json");
        fs::create_dir_all(index.parent().unwrap()).unwrap();
        for text in ["{", "[]", "{\"skills\":[]}"] {
            fs::write(&index, text).unwrap();
            let error = publish_to_site(&folder, "pdf", "d", &packed).unwrap_err();
            assert!(matches!(error, UploadError::Index { .. }), "{error}");
            assert_eq!(fs::read_to_string(&index).unwrap(), text);
        }
        let error = publish_to_site(&folder, "../x", "d", &packed).unwrap_err();
        assert!(matches!(error, UploadError::Name { .. }), "{error}");
    }
}
