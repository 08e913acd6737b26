//! Downloads an archive or a `SKILL.md` from a URL.

use prowess_http::Url;

use crate::{
    archive::UnpackOptions,
    cache::FetchedTree,
    fetch::{
        PackageFetcher,
        error::FetchPackageError,
        git_program::shown,
        web::{WebRequest, check_encrypted},
    },
    source::SkillSource,
};

impl PackageFetcher {
    pub(super) async fn fetch_download(
        &self,
        source: &SkillSource,
        url: &Url,
    ) -> Result<FetchedTree, FetchPackageError> {
        let key = format!("download\n{}", shown(url.as_str()));
        if self.offline {
            let recalled = self.recall(vec![key]).await;
            return recalled
                .ok_or_else(|| FetchPackageError::Offline { source_text: source.to_string() });
        }
        check_encrypted(url)?;
        let scratch = self.draft().await?;
        let response = self.web.send(WebRequest::new(url, self.limits.packed)).await?;
        let response = response.succeeded(&self.web).await?;
        let body = self.web.save(response, scratch).await?;
        // A redirect of a server that keeps its files elsewhere has a signature that expires.
        let place = shown(body.url.as_str());
        let place = place.split(['?', '#']).next().unwrap_or_default().to_owned();
        let options = UnpackOptions { limits: self.limits, strip_wrapper: true, leave_out: true };
        let files = self.unpack_body(body, options).await?;
        let tree = self.keep(source, place, files).await?;
        self.remember(vec![key], &tree).await?;
        Ok(tree)
    }
}
