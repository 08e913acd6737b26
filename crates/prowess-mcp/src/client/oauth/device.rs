//! Login on another device (RFC 8628).

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};
use url::Url;

use super::{
    LoginError,
    challenge::sanitize,
    discovery::AuthorizationServer,
    registration::RegisteredClient,
    secret::Secret,
    token::{self, Tokens},
    web::{Web, denial, required_text, text},
};

pub(super) const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
const WHAT: &str = "a device code";
/// The default, minimum and maximum polling interval in seconds.
const INTERVAL: (u64, u64, u64) = (5, 1, 60);
/// The maximum waiting time in seconds, whatever the server says.
const LONGEST: u64 = 30 * 60;

/// A code that a person enters on another device.
#[derive(Debug)]
pub(super) struct Device {
    code: Secret,
    pub(super) user_code: String,
    pub(super) url: Url,
    /// The URL with the code in it.
    pub(super) complete: Option<Url>,
    seconds: u64,
    interval: u64,
}

impl Device {
    /// Requests a code.
    pub(super) async fn new(
        web: &Web,
        endpoint: &Url,
        client: &RegisteredClient,
        resource: &str,
        scope: &[String],
    ) -> Result<Self, LoginError> {
        let scope = scope.join(" ");
        let mut form = vec![("resource", resource)];
        form.extend(client.fields());
        // A client that authenticates in a header must send its ID as well.
        if !form.iter().any(|it| it.0 == "client_id") {
            form.push(("client_id", &client.id));
        }
        if !scope.is_empty() {
            form.push(("scope", &scope));
        }
        let (status, answer) = web.post_form(WHAT, endpoint, client.authorization(), &form).await?;
        if status != 200 || answer.contains_key("error") {
            return Err(denial(status, WHAT, &answer));
        }
        let [seconds, interval] =
            ["expires_in", "interval"].map(|it| answer.get(it).and_then(Value::as_u64));
        let page = "the page for device codes";
        let complete = text(WHAT, &answer, "verification_uri_complete")?;
        Ok(Self {
            code: Secret::new(required_text(WHAT, &answer, "device_code")?),
            user_code: sanitize(required_text(WHAT, &answer, "user_code")?),
            url: web.url(page, required_text(WHAT, &answer, "verification_uri")?)?,
            complete: complete.map(|it| web.url(page, it)).transpose()?,
            seconds: seconds.unwrap_or(LONGEST).min(LONGEST),
            interval: interval.unwrap_or(INTERVAL.0).clamp(INTERVAL.1, INTERVAL.2),
        })
    }

    /// Waits until the code was entered.
    pub(super) async fn wait(
        mut self,
        web: &Web,
        server: &AuthorizationServer,
        client: &RegisteredClient,
        resource: &str,
        scope: &[String],
    ) -> Result<Tokens, LoginError> {
        let end = Instant::now() + Duration::from_secs(self.seconds);
        let late = LoginError::TooLate { minutes: self.seconds.div_ceil(60) };
        loop {
            sleep(Duration::from_secs(self.interval)).await;
            if Instant::now() >= end {
                return Err(late);
            }
            let grant = [
                ("grant_type", GRANT),
                ("device_code", self.code.reveal()),
                ("resource", resource),
            ];
            match token::request(web, &server.token, client, &grant, scope).await {
                Err(LoginError::Denied { error, .. })
                    if has_code(&error, "authorization_pending") => {}
                Err(LoginError::Denied { error, .. }) if has_code(&error, "slow_down") => {
                    self.interval = (self.interval + 5).min(INTERVAL.2);
                }
                Err(LoginError::Denied { error, .. }) if has_code(&error, "expired_token") => {
                    return Err(late);
                }
                tokens => return tokens,
            }
        }
    }
}

/// Whether an error has this code.
fn has_code(error: &str, code: &str) -> bool {
    error.strip_prefix(code).is_some_and(|it| it.is_empty() || it.starts_with(':'))
}
