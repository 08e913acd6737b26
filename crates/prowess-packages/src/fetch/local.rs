//! Takes folders and files of this machine into the cache.

use std::{fs::File, io::Read as _, io::Seek as _, path::Path};

use prowess_http::Url;

use crate::{
    archive::{UnpackOptions, copy_folder},
    cache::FetchedTree,
    digest::FileDigest,
    fetch::{
        PackageFetcher, TreeFacts, blocking,
        error::{FetchPackageError, size},
        packed::{DraftFiles, left_out},
        web::SavedBody,
    },
    source::SkillSource,
};

impl PackageFetcher {
    pub(super) async fn fetch_folder(
        &self,
        source: &SkillSource,
        path: &Path,
    ) -> Result<FetchedTree, FetchPackageError> {
        let draft = self.draft().await?;
        let (from, limits) = (path.to_owned(), self.limits);
        let progress = self.progress.clone();
        let copied = blocking(move || {
            let metadata = std::fs::metadata(&from);
            if metadata.as_ref().is_err_and(|it| it.kind() == std::io::ErrorKind::NotFound) {
                return Err(FetchPackageError::NotFound { url: from.display().to_string() });
            }
            let copied = copy_folder(&from, &limits, draft.path())?;
            progress.add_files(copied.files.len() as u64);
            let notes = left_out(&copied.left_out).collect();
            Ok(DraftFiles { draft, files: copied.files, comment: None, notes })
        })
        .await?;
        self.keep(source, path.display().to_string(), copied).await
    }

    pub(super) async fn fetch_file(
        &self,
        source: &SkillSource,
        path: &Path,
    ) -> Result<FetchedTree, FetchPackageError> {
        let scratch = self.draft().await?;
        let (from, most) = (path.to_owned(), self.limits.packed);
        let body = blocking(move || {
            let shown = from.display().to_string();
            let cannot =
                |source| FetchPackageError::Io { action: "read", path: from.clone(), source };
            let mut file = File::open(&from).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => FetchPackageError::NotFound { url: shown.clone() },
                _ => cannot(error),
            })?;
            let metadata = file.metadata().map_err(cannot)?;
            if !metadata.is_file() {
                return Err(FetchPackageError::NotAnArchive { url: shown, found: "not a file" });
            }
            if metadata.len() > most {
                let limit = size(most);
                return Err(FetchPackageError::TooLarge { url: shown, limit });
            }
            let mut beginning = Vec::new();
            (&mut file).take(1024).read_to_end(&mut beginning).map_err(cannot)?;
            file.rewind().map_err(cannot)?;
            let (digest, sha512) = (FileDigest([0; 32]), [0; 64]);
            // Only for messages.
            let absolute = std::path::absolute(&from).map_err(cannot)?;
            let url = Url::from_file_path(absolute);
            let url = url.map_err(|()| FetchPackageError::NotFound { url: shown })?;
            Ok(SavedBody { url, file, digest, sha512, beginning, _scratch: scratch })
        })
        .await?;
        let options =
            UnpackOptions { limits: self.limits, strip_wrapper: true, ..UnpackOptions::default() };
        let files = self.unpack_body(body, options).await?;
        self.keep(source, path.display().to_string(), files).await
    }

    /// Puts files without a version into the cache.
    pub(super) async fn keep(
        &self,
        source: &SkillSource,
        url: String,
        files: DraftFiles,
    ) -> Result<FetchedTree, FetchPackageError> {
        let facts = TreeFacts { url, notes: files.notes, ..TreeFacts::new(source) };
        self.insert(files.draft, files.files, facts).await
    }
}
