//! Login to configured servers, and logout.

use prowess_runtime::Outcome;

use super::{
    expand::PlaceholderValues,
    launcher::McpLauncher,
    oauth::{Bearer, LoginError, LoginJob, LoginRequest, LoginState, Logins},
    refusal::refuse_unknown_variable,
    remote::Remote,
};
use crate::config::{McpServerConfig, ServerAddress, ServerSetting, Transport};

impl McpLauncher {
    /// Sends the tokens of these logins to their servers.
    #[must_use]
    pub fn with_logins(self, logins: Logins) -> Self {
        Self { logins: Some(logins), ..self }
    }

    /// Logs in to a configured server, and saves the tokens. One that a project file configures is
    /// authorized first.
    pub async fn login(
        &self,
        set: &ServerSetting,
        request: LoginRequest<'_>,
    ) -> Result<LoginState, Box<Outcome>> {
        let ServerSetting { description, .. } = set;
        let Transport::Http(address) = &description.transport else {
            return Err(LoginError::Program.outcome(&description.name));
        };
        self.authorize(set).await?;
        let remote = self.remote(description, address)?;
        let bearer = self.bearer(description, address, &remote);
        let bearer = bearer.map_err(|it| it.outcome(&description.name))?;
        let known = PlaceholderValues { folder: None, variables: &self.environment };
        let mut settings = address.oauth.clone();
        if let Some(secret) = &mut settings.client_secret {
            *secret =
                known.expand(secret).map_err(|name| refuse_unknown_variable(description, &name))?;
        }
        let job = LoginJob { bearer, settings, headers: remote.headers().to_vec() };
        job.run(request).await.map_err(|it| it.outcome(&description.name))
    }

    /// Removes the login to a configured server; returns whether there was one.
    pub async fn logout(&self, set: &ServerSetting) -> Result<bool, Box<Outcome>> {
        let bearer = self.bearer_of(set)?.map_err(|it| it.outcome(&set.description.name))?;
        bearer.log_out().await.map_err(|it| it.outcome(&set.description.name))
    }

    /// Returns the state of the login to a server; `None` if there is no login.
    pub fn login_state(&self, set: &ServerSetting) -> Option<LoginState> {
        self.bearer_of(set).ok()?.ok()?.state().ok()?
    }

    fn bearer_of(&self, set: &ServerSetting) -> Result<Result<Bearer, LoginError>, Box<Outcome>> {
        let ServerSetting { description, .. } = set;
        let Transport::Http(address) = &description.transport else {
            return Ok(Err(LoginError::Program));
        };
        let remote = self.remote(description, address)?;
        Ok(self.bearer(description, address, &remote))
    }

    /// Returns the login to a server, if a token may be sent there at all.
    pub(super) fn bearer(
        &self,
        description: &McpServerConfig,
        address: &ServerAddress,
        remote: &Remote,
    ) -> Result<Bearer, LoginError> {
        let logins = self.logins.clone().ok_or(LoginError::Homeless)?;
        if remote.headers().iter().any(|it| it.0.eq_ignore_ascii_case("authorization")) {
            return Err(LoginError::Header);
        }
        let issuer = address.oauth.issuer.clone();
        Bearer::new(&description.name, remote.url(), issuer, logins, remote.hosts.clone())
    }
}
