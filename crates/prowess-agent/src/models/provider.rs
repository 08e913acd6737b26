//! The providers of models, one row each.

use super::{
    adapter::Protocol, anthropic::Anthropic, gemini::Gemini, openai::OpenAi, responses::Responses,
};

/// The properties of a provider, apart from its protocol.
#[derive(Debug)]
#[non_exhaustive]
pub struct ProviderRow {
    /// Its name, as in `--provider`.
    pub name: &'static str,
    /// The environment variables of its key, the first one that is set wins.
    pub key_variables: &'static [&'static str],
    /// Its own address.
    pub base_url: &'static str,
    /// The environment variable of another address.
    pub base_url_variable: Option<&'static str>,
    /// The beginning of its models' names, if no other provider's begin so.
    pub model_prefix: Option<&'static str>,
    /// Its everyday model, by its documentation of November 2026.
    pub default_model: &'static str,
    /// Whether it is chosen when only its key is set.
    pub is_chosen_by_key: bool,
    /// Its name in the conventions of OpenTelemetry.
    pub telemetry_name: &'static str,
    protocol: fn(&str) -> Box<dyn Protocol>,
}

/// Makes [`ModelProvider`] from one row for each provider.
macro_rules! providers {
    ($($(#[doc = $doc:literal])+ $provider:ident: $row:expr,)+) => {
        /// The API a model is asked with.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum ModelProvider {
            $($(#[doc = $doc])+ $provider,)+
        }

        impl ModelProvider {
            /// Every provider.
            pub const ALL: [Self; [$(Self::$provider),+].len()] = [$(Self::$provider),+];

            /// Returns its row in the table of providers.
            pub fn row(self) -> &'static ProviderRow {
                match self {
                    $(Self::$provider => {
                        static ROW: ProviderRow = $row;
                        &ROW
                    })+
                }
            }
        }
    };
}

providers! {
    /// Chat completions: OpenAI, Ollama, vLLM, llama.cpp, OpenRouter and many more.
    OpenAi: ProviderRow {
        name: "openai",
        key_variables: &["OPENAI_API_KEY"],
        base_url: "https://api.openai.com/v1",
        base_url_variable: Some("OPENAI_BASE_URL"),
        model_prefix: None,
        default_model: "gpt-6.1-terra",
        is_chosen_by_key: true,
        telemetry_name: "openai",
        protocol: |base| Box::new(OpenAi::new(base)),
    },
    /// Responses, the newer API of OpenAI.
    Responses: ProviderRow {
        name: "responses",
        key_variables: &["OPENAI_API_KEY"],
        base_url: "https://api.openai.com/v1",
        base_url_variable: Some("OPENAI_BASE_URL"),
        model_prefix: None,
        default_model: "gpt-6.1-terra",
        is_chosen_by_key: false,
        telemetry_name: "openai",
        protocol: |_| Box::new(Responses),
    },
    /// Messages, the API of Anthropic.
    Anthropic: ProviderRow {
        name: "anthropic",
        key_variables: &["ANTHROPIC_API_KEY"],
        base_url: "https://api.anthropic.com/v1",
        base_url_variable: None,
        model_prefix: Some("claude-"),
        default_model: "claude-sonnet-5-5",
        is_chosen_by_key: true,
        telemetry_name: "anthropic",
        protocol: |_| Box::new(Anthropic),
    },
    /// The API of Gemini.
    Gemini: ProviderRow {
        name: "gemini",
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        base_url_variable: None,
        model_prefix: Some("gemini-"),
        default_model: "gemini-3.8-flash",
        is_chosen_by_key: true,
        telemetry_name: "gcp.gemini",
        protocol: |_| Box::new(Gemini),
    },
}

impl ModelProvider {
    /// Returns the provider of a word, as in `--provider`.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }

    /// Returns its name, as in `--provider`.
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    /// Returns its protocol, for models at this address.
    pub(super) fn protocol(self, base_url: &str) -> Box<dyn Protocol> {
        (self.row().protocol)(base_url)
    }
}
