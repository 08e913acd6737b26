//! The settings for the login to a server: the table `oauth` of `[servers.LABEL]`.

use std::fmt;

use serde_json::{Map, Value};

/// Settings for the login to a server, if its authorization server needs them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OauthSettings {
    /// The ID of a manually registered client; may be the URL of a client ID metadata document.
    pub client_id: Option<String>,
    /// Its secret; may refer to variables. Omitted in `Debug`.
    pub client_secret: Option<String>,
    /// The only authorization server to use.
    pub issuer: Option<String>,
    /// The redirect URI of the registered client.
    pub redirect_uri: Option<String>,
    /// The scopes to request, instead of those that the server names.
    pub scopes: Vec<String>,
}

const KNOWN: &[&str] = &["client_id", "client_secret", "issuer", "redirect_uri", "scopes"];

impl OauthSettings {
    /// Parses the table of a server; empty settings if it is missing.
    pub fn read(server: &Map<String, Value>) -> Result<Self, String> {
        let Some(value) = server.get("oauth") else { return Ok(Self::default()) };
        let table = value.as_object().ok_or("`oauth` is not a table")?;
        if let Some(key) = table.keys().find(|it| !KNOWN.contains(&it.as_str())) {
            return Err(format!("`oauth` has no key `{key}`"));
        }
        let text = |key: &str| match table.get(key) {
            None => Ok(None),
            Some(Value::String(text)) if is_word(text) => Ok(Some(text.clone())),
            Some(_) => Err(format!("`oauth.{key}` is not a text without spaces")),
        };
        let scopes = match table.get("scopes") {
            None => Vec::new(),
            Some(Value::Array(scopes)) => scopes
                .iter()
                .map(|it| it.as_str().filter(|it| is_word(it)).map(str::to_owned))
                .collect::<Option<_>>()
                .ok_or("`oauth.scopes` is not a list of scopes")?,
            Some(_) => return Err("`oauth.scopes` is not a list of scopes".to_owned()),
        };
        let read = Self {
            client_id: text("client_id")?,
            client_secret: text("client_secret")?,
            issuer: text("issuer")?,
            redirect_uri: text("redirect_uri")?,
            scopes,
        };
        match &read {
            Self { client_secret: Some(_), client_id: None, .. } => {
                Err("`oauth.client_secret` needs a `client_id`".to_owned())
            }
            // Otherwise the server could name any authorization server, which would receive the
            // secret.
            Self { client_secret: Some(_), issuer: None, .. } => {
                Err("`oauth.client_secret` needs the `issuer` that it may be sent to".to_owned())
            }
            _ => Ok(read),
        }
    }

    /// Returns the settings as text for a question.
    pub fn line(&self) -> String {
        let pairs = [
            ("client_id", &self.client_id),
            ("client_secret", &self.client_secret),
            ("issuer", &self.issuer),
            ("redirect_uri", &self.redirect_uri),
        ];
        let lines = pairs.iter().filter_map(|(key, it)| Some((key, it.as_ref()?)));
        let mut lines: String = lines.map(|(key, it)| format!("oauth.{key}: {it}\n")).collect();
        if !self.scopes.is_empty() {
            lines += &format!("oauth.scopes: {}\n", self.scopes.join(" "));
        }
        lines
    }
}

impl fmt::Debug for OauthSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client_id, issuer, redirect_uri, scopes, .. } = self;
        f.debug_struct("OauthSettings")
            .field("client_id", client_id)
            .field("issuer", issuer)
            .field("redirect_uri", redirect_uri)
            .field("scopes", scopes)
            .finish_non_exhaustive()
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_left_out_of_debug() {
        let server = serde_json::json!({"oauth": {
            "client_id": "me", "client_secret": "hush", "issuer": "https://x.test",
        }});
        let settings = OauthSettings::read(server.as_object().unwrap()).unwrap();
        assert_eq!(settings.client_secret.as_deref(), Some("hush"));
        assert!(!format!("{settings:?}").contains("hush"));
    }
}
