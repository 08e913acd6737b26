//! The model to use, its address and its API key, from the command line, the environment and
//! settings.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use prowess::{Call, Message, Role, name_hint};
use prowess_agent::{
    ApiKey, ChatResponse, Model, ModelConnection, ModelProvider, ScriptedModel, StopReason, model,
};
use prowess_cli::settings::{Config, ModelSettings};
use prowess_http::Timeouts;
use prowess_runtime::secret::KnownSecrets;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::{
    cli_error::CliError,
    completion,
    context::shell_quote,
    host::{self, parse_time},
    key_file::read_key_file,
    printer::Printer,
    secrets::variable,
};

/// The options that choose a model.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// Name of the model [default: the provider's default model]
    #[arg(long, value_name = "NAME", add = completion::models())]
    pub(crate) model: Option<String>,
    #[arg(long, value_name = "NAME", help = provider_help(), add = completion::providers())]
    provider: Option<String>,
    #[arg(long, value_name = "URL", help = base_url_help())]
    base_url: Option<String>,
    #[arg(long, value_name = "FILE", help = key_file_help())]
    pub(crate) key_file: Option<PathBuf>,
    /// Time to wait for the next token [default: 2m]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    model_timeout: Option<Duration>,
    /// Wait for the whole reply, and print only the answer
    #[arg(long)]
    pub(crate) no_stream: bool,
}

/// The protocol of a model, real or scripted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    With(ModelProvider),
    Scripted,
}

impl ModelArgs {
    /// Returns the model to use.
    pub(crate) fn model(
        &self,
        command: &str,
        config: &Config,
        printer: &mut Printer,
    ) -> Result<Arc<dyn Model>, CliError> {
        let set = &config.model;
        let Some(protocol) = self.protocol(set)? else { return Err(no_model_error(command)) };
        let Protocol::With(provider) = protocol else { return self.scripted_model() };
        let base_url = self.base_url(provider, set);
        let key = self.key(provider, set)?;
        if key.is_none() && base_url.is_none() {
            let variable = provider.row().key_variables[0];
            let message = format!("there is no key for `{}`", provider.as_str());
            return Err(
                CliError::new(message).hint(format!("set `{variable}`, or use `--key-file FILE`"))
            );
        }
        if key.is_some() && base_url.as_deref().is_some_and(is_sent_in_clear) {
            printer.warning("the key is sent unencrypted; use `https://`");
        }
        let Some(name) = self.name(provider, base_url.as_deref(), set) else {
            let hint = "use `--model NAME`; most servers list their models under `/models`";
            return Err(CliError::new("no model was given").hint(hint));
        };
        let key = key.as_deref().map(ApiKey::new);
        let proxies = host::proxies()?;
        let connection =
            ModelConnection { base_url, key, proxies, ..self.connection(provider, name, set) };
        model(connection).map_err(|it| CliError::new(it.to_string()))
    }

    /// Like [`model`](Self::model) without its key, to show what it would be sent; `None` if none
    /// is configured.
    pub(crate) fn model_without_key(
        &self,
        config: &Config,
    ) -> Result<Option<Arc<dyn Model>>, CliError> {
        let set = &config.model;
        let provider = match self.protocol(set)? {
            None => return Ok(None),
            Some(Protocol::Scripted) => return self.scripted_model().map(Some),
            Some(Protocol::With(provider)) => provider,
        };
        let base_url = self.base_url(provider, set);
        let name = self.name(provider, base_url.as_deref(), set);
        let Some(name) = name else { return Ok(None) };
        let connection = ModelConnection { base_url, ..self.connection(provider, name, set) };
        model(connection).map(Some).map_err(|it| CliError::new(it.to_string()))
    }

    /// Returns the options of the model as they were typed, for a suggested command.
    pub(crate) fn flags(&self) -> String {
        let key_file = self.key_file.as_ref().map(|it| it.to_string_lossy().into_owned());
        let flags = [
            ("--provider", &self.provider),
            ("--base-url", &self.base_url),
            ("--model", &self.model),
            ("--key-file", &key_file),
        ];
        let typed = flags.iter().filter_map(|(flag, it)| Some((flag, it.as_deref()?)));
        typed.map(|(flag, it)| format!(" {flag} {}", shell_quote(it))).collect()
    }

    /// Returns the secrets to redact: the key, if there is one.
    pub(crate) fn secrets(&self, config: &Config) -> KnownSecrets {
        let set = &config.model;
        let Ok(Some(Protocol::With(provider))) = self.protocol(set) else {
            return KnownSecrets::default();
        };
        KnownSecrets::new(self.key(provider, set).ok().flatten())
    }

    fn connection(
        &self,
        provider: ModelProvider,
        name: String,
        set: &ModelSettings,
    ) -> ModelConnection {
        let mut timeouts = Timeouts::default();
        if let Some(timeout) = self.model_timeout.or(set.timeout.value) {
            timeouts.idle = timeout;
            timeouts.connect = timeouts.connect.min(timeout);
            if self.no_stream {
                timeouts.total = timeout;
            }
        }
        ModelConnection {
            stream: !self.no_stream,
            timeouts,
            ..ModelConnection::new(provider, name)
        }
    }

    /// Returns the protocol of the model: as typed or set, otherwise as its name or the available
    /// keys suggest.
    fn protocol(&self, set: &ModelSettings) -> Result<Option<Protocol>, CliError> {
        if let Some(word) = &self.provider {
            return find_protocol(word).map(Some);
        }
        if self.base_url.is_some() {
            return Ok(Some(Protocol::With(ModelProvider::OpenAi)));
        }
        if let Some(word) = &set.provider.value {
            return find_protocol(word).map(Some);
        }
        let name = self.model.as_ref().or(set.name.value.as_ref());
        let by_name = name.and_then(|it| {
            ModelProvider::ALL.into_iter().find(|provider: &ModelProvider| {
                provider.row().model_prefix.is_some_and(|prefix| it.starts_with(prefix))
            })
        });
        let by_setting = set.base_url.value.as_ref().map(|_| ModelProvider::OpenAi);
        let by_address = by_setting.or_else(|| {
            ModelProvider::ALL
                .into_iter()
                .find(|it: &ModelProvider| it.row().base_url_variable.and_then(variable).is_some())
        });
        let provider = by_address
            .or(by_name)
            .or_else(|| {
                ModelProvider::ALL.into_iter().find(|it: &ModelProvider| {
                    let row = it.row();
                    row.is_chosen_by_key
                        && row.key_variables.iter().any(|it| variable(it).is_some())
                })
            })
            .or_else(|| {
                let has_file = self.key_file.is_some() || set.key_file.value.is_some();
                has_file.then_some(ModelProvider::OpenAi)
            });
        Ok(provider.map(Protocol::With))
    }

    /// Returns the address of the model, if it is not its provider's. An address that is set for
    /// one provider is not used for another, and gets no key.
    fn base_url(&self, provider: ModelProvider, set: &ModelSettings) -> Option<String> {
        if self.base_url.is_some() {
            return self.base_url.clone();
        }
        let from_variable = provider.row().base_url_variable.and_then(variable);
        let setting = set.base_url.value.as_ref().filter(|_| is_for_provider(provider, set));
        from_variable.or_else(|| setting.map(|it| it.as_str().to_owned()))
    }

    fn key(
        &self,
        provider: ModelProvider,
        set: &ModelSettings,
    ) -> Result<Option<String>, CliError> {
        if let Some(file) = &self.key_file {
            return read_key(file).map(Some);
        }
        if let Some(text) = provider.row().key_variables.iter().find_map(|it| variable(it)) {
            return Ok(Some(text.trim().to_owned()));
        }
        let file = set.key_file.value.as_ref().filter(|_| is_for_provider(provider, set));
        file.map(|it| read_key(it)).transpose()
    }

    /// Returns the name of the model; without one, the provider's default at its own address.
    fn name(
        &self,
        provider: ModelProvider,
        base_url: Option<&str>,
        set: &ModelSettings,
    ) -> Option<String> {
        // Without `--provider`, the name has been used to choose the provider.
        let is_meant = self.provider.is_none() || is_for_provider(provider, set);
        let set = set.name.value.as_ref().filter(|_| is_meant);
        let named = self.model.as_ref().or(set).cloned();
        named.or_else(|| base_url.is_none().then(|| provider.row().default_model.to_owned()))
    }

    /// Returns a model that replays a file of one JSON object per line.
    fn scripted_model(&self) -> Result<Arc<dyn Model>, CliError> {
        let Some(path) = &self.model else {
            let hint = r#"each line of the file is one reply, such as `{"says": "Hello"}` or `{"calls": [{"name": "use_skill", "input": {"name": "debug"}}]}`"#;
            return Err(
                CliError::new("a scripted model replays a file, given by `--model`").hint(hint)
            );
        };
        let text = fs::read_to_string(path).map_err(|error| {
            let error = error.to_string();
            let why = error.split(" (os error").next().unwrap_or(&error);
            CliError::new(format!("cannot read `{path}`: {why}"))
        })?;
        let mut model = ScriptedModel::new();
        for (number, line) in text.lines().enumerate().filter(|it| !it.1.trim().is_empty()) {
            let line: Line = serde_json::from_str(line).map_err(|error| {
                CliError::new(format!(
                    "line {} of `{path}` is not a valid reply: {error}",
                    number + 1
                ))
            })?;
            model = model.replies(line.reply());
        }
        Ok(Arc::new(model))
    }
}

/// A reply in a script.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    says: String,
    #[serde(default)]
    calls: Vec<LineCall>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineCall {
    name: String,
    #[serde(default)]
    input: Json,
}

impl Line {
    fn reply(self) -> ChatResponse {
        let stop = if self.calls.is_empty() { StopReason::Done } else { StopReason::Calls };
        let calls = self
            .calls
            .into_iter()
            .map(|it: LineCall| Call {
                name: it.name,
                arguments: if it.input.is_null() { String::new() } else { it.input.to_string() },
                ..Call::default()
            })
            .collect();
        let message = Message { calls, ..Message::new(Role::Assistant, self.says) };
        ChatResponse { message, stop, ..ChatResponse::default() }
    }
}

/// Returns the error that no model is configured, with ways to configure one for this command.
fn no_model_error(command: &str) -> CliError {
    let typed = if command == "ask" { "prowess ask …" } else { "prowess chat" };
    let key = |provider: ModelProvider| provider.row().key_variables[0];
    let (openai, anthropic) = (key(ModelProvider::OpenAi), key(ModelProvider::Anthropic));
    let fault = CliError::new("no model is configured")
        .hint(format!("with an OpenAI key: `{openai}=… {typed}`"))
        .hint(format!("with an Anthropic key: `{anthropic}=… {typed}`"))
        .hint(format!("with Ollama on this machine: `{typed} --base-url http://127.0.0.1:11434/v1 --model NAME`"));
    match command {
        "ask" => fault.hint("`--dry-run` shows what would be sent, without a model"),
        _ => fault,
    }
}

/// Returns the names of the protocols.
pub(crate) fn providers() -> impl Iterator<Item = &'static str> + Clone {
    ModelProvider::ALL.into_iter().map(ModelProvider::as_str).chain(["scripted"])
}

/// Returns the environment variables of the providers' keys.
pub(crate) fn key_variables() -> Vec<&'static str> {
    let rows = ModelProvider::ALL.into_iter().map(ModelProvider::row);
    without_repeats(rows.flat_map(|it| it.key_variables).copied())
}

/// Returns the environment variables of the providers' base URLs.
pub(crate) fn base_url_variables() -> Vec<&'static str> {
    let rows = ModelProvider::ALL.into_iter().map(ModelProvider::row);
    without_repeats(rows.filter_map(|it| it.base_url_variable))
}

/// Several providers may have the same variable.
fn without_repeats(names: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let mut all = Vec::new();
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

fn provider_help() -> String {
    let names: Vec<&str> = ModelProvider::ALL.into_iter().map(ModelProvider::as_str).collect();
    let names = names.join(", ");
    format!(
        "Protocol of the model: {names}, or scripted, which replays the file given by `--model`"
    )
}

fn base_url_help() -> String {
    let variables = base_url_variables().join("`, `");
    format!(
        "Base URL of the model's server, such as `http://localhost:11434/v1`; uses the OpenAI protocol unless \
         `--provider` is given [default: `{variables}`, or the provider's own]"
    )
}

fn key_file_help() -> String {
    let variables = key_variables().join("`, `");
    format!("File with the API key, instead of `{variables}`; must be readable only by you")
}

fn find_protocol(word: &str) -> Result<Protocol, CliError> {
    match (word, ModelProvider::from_word(word)) {
        ("scripted", _) => Ok(Protocol::Scripted),
        (_, Some(provider)) => Ok(Protocol::With(provider)),
        (_, None) => {
            let fault = CliError::new(format!("there is no provider `{word}`"));
            Err(fault.hint(name_hint(word, providers())))
        }
    }
}

/// Returns whether the model settings are meant for this provider; without one they are for OpenAI.
fn is_for_provider(provider: ModelProvider, set: &ModelSettings) -> bool {
    match set.provider.value.as_deref() {
        Some(word) => word == provider.as_str(),
        None => matches!(provider, ModelProvider::OpenAi | ModelProvider::Responses),
    }
}

/// Reads the key in a file.
fn read_key(path: &Path) -> Result<String, CliError> {
    read_key_file(path).map(|it| it.trim().to_owned()).map_err(|error| {
        let cause = std::error::Error::source(&error).map(|it| format!(": {it}"));
        let message = format!("`{}`: {error}{}", path.display(), cause.unwrap_or_default());
        let fault = CliError::new(message);
        match error.hint(path) {
            Some(hint) => fault.hint(hint),
            None => fault,
        }
    })
}

/// Returns the default models, each with its provider.
pub(crate) fn default_models() -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = ModelProvider::ALL.into_iter().map(ModelProvider::row);
    rows.filter(|it| it.is_chosen_by_key).map(|it| (it.default_model, it.name))
}

/// Returns whether traffic to an address can be read on its way.
fn is_sent_in_clear(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_loopback = name.parse().is_ok_and(|it: std::net::IpAddr| it.is_loopback());
    !(is_loopback || name == "localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_names_every_variable_of_a_key() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");
        let text = fs::read_to_string(path).unwrap();
        for name in key_variables() {
            assert!(text.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn only_http_to_another_machine_is_sent_in_clear() {
        for url in
            ["https://a.example", "http://localhost:1/v1", "http://127.0.0.1", "http://[::1]:9/"]
        {
            assert!(!is_sent_in_clear(url), "{url}");
        }
        for url in [
            "http://a.example/v1",
            "http://127.0.0.1.evil.example",
            "http://localhost@evil.example",
            "http://10.0.0.1:80",
        ] {
            assert!(is_sent_in_clear(url), "{url}");
        }
    }
}
