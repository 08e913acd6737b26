//! Error answers of providers, and their meaning.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prowess_runtime::secret::KnownSecrets;
use serde_json::Value as Json;

use crate::model::ModelError;

/// An error answer of a provider.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// The status of the answer; 0 if the error came in the middle of a stream.
    pub(super) status: u16,
    pub(super) message: String,
    /// Its error types, codes and reasons, in lower case.
    words: Vec<String>,
    /// The size of the context window in tokens.
    window: Option<usize>,
    /// The size of the prompt in tokens.
    prompt: Option<usize>,
    wait: Option<Duration>,
    /// Whether the answer is an HTML page.
    is_page: bool,
}

/// The server and model that were asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct AskedServer<'a> {
    /// The name of the provider, or the host if it is not the provider's own.
    pub(super) whom: &'a str,
    pub(super) host: &'a str,
    /// The URL of the request, without secrets.
    pub(super) url: &'a str,
    pub(super) model: &'a str,
    pub(super) key: &'a str,
    /// The environment variable that usually contains the key.
    pub(super) variable: &'static str,
}

/// The maximum length of a page's excerpt in characters.
const MAX_WORDS: usize = 120;
/// The maximum size of a provider's message in bytes.
const MAX_MESSAGE: usize = 2048;

/// Error codes for a prompt that is too long.
const LONG: &[&str] =
    &["context_length_exceeded", "exceed_context_size_error", "request_too_large"];
/// Phrases for it, from providers without a code.
const LONG_SAID: &[&str] = &[
    "maximum context length",
    "context length",
    "context window",
    "context size",
    "context limit",
    "prompt is too long",
    "input is too long",
    "maximum prompt length",
    "maximum number of tokens allowed",
    "request too large",
];
/// Error codes for an account without credit.
const UNPAID: &[&str] = &["insufficient_quota", "billing_error", "billing_hard_limit_reached"];
const UNPAID_SAID: &[&str] = &["credit balance is too low"];
/// Error codes for missing or insufficient credentials.
const UNKNOWN: &[&str] = &[
    "authentication_error",
    "permission_error",
    "permission_denied",
    "unauthenticated",
    "invalid_api_key",
    "api_key_invalid",
];
const UNKNOWN_SAID: &[&str] = &["api key not valid"];
/// Error codes for requests that a provider refuses to answer.
const REFUSED: &[&str] = &[
    "content_filter",
    "content_policy_violation",
    "invalid_prompt",
    "responsibleaipolicyviolation",
];
const REFUSED_SAID: &[&str] = &["flagged by", "requires moderation", "content management policy"];
const MISSING: &[&str] = &["model_not_found", "not_found_error", "not_found"];
const LIMITED: &[&str] =
    &["rate_limit_error", "rate_limit_exceeded", "resource_exhausted", "too_many_requests"];
const INVALID: &[&str] =
    &["invalid_request_error", "invalid_argument", "failed_precondition", "badrequesterror"];

impl Trouble {
    /// Parses an error answer.
    pub(super) fn read(status: u16, body: &[u8], wait: Option<Duration>) -> Self {
        let mut trouble = match serde_json::from_slice(body) {
            Ok(json) => Self::in_stream(&json),
            Err(_) => {
                let text = String::from_utf8_lossy(body);
                let is_page = is_page(&text);
                let message = if is_page { page(&text) } else { text.trim().to_owned() };
                Self { message, is_page, ..Self::default() }
            }
        };
        if trouble.message.is_empty() {
            trouble.message = format!("status {status}");
        }
        trouble.wait = wait.or(trouble.wait);
        Self { status, ..trouble }
    }

    /// Parses an error in the middle of a stream.
    pub(super) fn in_stream(json: &Json) -> Self {
        // Gemini wraps it in a list; most put it into a field, some as a plain string.
        let json = json.get(0).unwrap_or(json);
        let error = json.get("error").filter(|it| !it.is_null()).unwrap_or(json);
        let message = [error, &error["message"], &error["detail"], &error["msg"]];
        let message = message
            .into_iter()
            .find_map(|it: &Json| it.as_str().map(str::to_owned))
            .unwrap_or_else(|| describe_failure(error));
        let details = error["details"].as_array().map_or(&[][..], Vec::as_slice);
        let reasons = details.iter().map(|it| &it["reason"]);
        let reason = &error["incomplete_details"]["reason"];
        let words = [&error["type"], &error["code"], &error["status"], reason].into_iter();
        let words = words.chain(reasons);
        let words = words.filter_map(|it| it.as_str()).map(str::to_lowercase).collect();
        let retry = details.iter().find_map(|it| it["retryDelay"].as_str());
        let wait = retry.and_then(duration).or_else(|| wait_in_message(&message));
        let status = number(&error["code"]).and_then(|it| u16::try_from(it).ok()).unwrap_or(0);
        let (window, prompt) = (number(&error["n_ctx"]), number(&error["n_prompt_tokens"]));
        Self { status, window, prompt, wait, words, message, is_page: false }
    }

    /// Converts it into the error for the caller.
    pub(super) fn error(self, asked: &AskedServer<'_>) -> ModelError {
        let (status, wait) = (self.status, self.wait);
        let lower = self.message.to_lowercase();
        let has = |words: &[&str]| self.words.iter().any(|it| words.contains(&&**it));
        let message = safe_message(&self.message, asked.key);
        let (provider, model) = (asked.whom.to_owned(), asked.model.to_owned());
        let is_long = has(LONG) || status == 413 || contains_any(&lower, LONG_SAID);
        if is_long && !matches!(status, 401..=404) {
            let window = self.window.or(window(&lower));
            let prompt = self.prompt.or(window.and_then(|it| prompt_size(&lower, it)));
            return ModelError::TooLong { model, message, window, prompt };
        }
        if has(REFUSED) || contains_any(&lower, REFUSED_SAID) {
            return ModelError::Refused { model, message };
        }
        if has(UNPAID) || contains_any(&lower, UNPAID_SAID) || status == 402 {
            return ModelError::Unpaid { provider, message };
        }
        if has(UNKNOWN) || contains_any(&lower, UNKNOWN_SAID) || matches!(status, 401 | 403) {
            let variable = asked.variable;
            return ModelError::Auth { provider, message, variable };
        }
        let is_elsewhere = matches!(status, 300..=399) || self.is_page && status < 500;
        if is_elsewhere {
            return ModelError::Elsewhere { host: asked.host.to_owned(), message };
        }
        if has(MISSING) || matches!(status, 404 | 405) {
            // If the path does not exist, the server did not look for the model.
            let says_nothing = ["not found", "method not found", "page not found"]
                .contains(&lower.trim().trim_end_matches('.'));
            let is_model = lower.contains("model") || has(MISSING) && !says_nothing;
            return match is_model {
                true => ModelError::NotFound { model, message },
                false => ModelError::NoEndpoint { url: asked.url.to_owned(), message },
            };
        }
        if has(LIMITED) || status == 429 {
            return ModelError::RateLimited { model, message, wait };
        }
        // An error in the middle of a stream is not a fault of the request.
        if matches!(status, 400..=499) && status != 408 || status == 0 && has(INVALID) {
            return ModelError::Invalid { provider, message };
        }
        let message = match status {
            500..=599 if !message.contains(&status.to_string()) => {
                format!("server error {status}: {message}")
            }
            _ => message,
        };
        ModelError::Server { provider, message, wait }
    }
}

fn number(json: &Json) -> Option<usize> {
    json.as_u64().and_then(|it| usize::try_from(it).ok())
}

/// Whether a text contains any of these phrases.
pub(super) fn contains_any(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|it| text.contains(it))
}

/// Describes an answer without a message: the reason it failed, if given, else all of it.
fn describe_failure(answer: &Json) -> String {
    let reason = answer["incomplete_details"]["reason"].as_str().or(answer["code"].as_str());
    match (answer["status"].as_str(), reason) {
        (Some("cancelled"), _) => "the reply was cancelled".to_owned(),
        (Some("failed"), Some(reason)) => format!("the reply failed: {reason}"),
        (Some("failed"), None) => "the reply failed, and the provider does not say why".to_owned(),
        _ => answer.to_string(),
    }
}

/// Whether a text is an HTML page.
fn is_page(text: &str) -> bool {
    let start = text.trim_start().get(..9).unwrap_or_default().to_ascii_lowercase();
    start.starts_with("<!doctype") || start.starts_with("<html")
}

/// Describes a page by its first words.
fn page(text: &str) -> String {
    let behind = text.split('<').filter_map(|it| Some(it.split_once('>')?.1.trim()));
    let words: Vec<&str> = behind.filter(|it| !it.is_empty()).take(3).collect();
    format!(
        "got an HTML page instead of JSON: {}",
        words.join(" ").chars().take(MAX_WORDS).collect::<String>()
    )
}

/// Returns a text that is safe to show: shortened, and without the key, wherever it came from.
pub(super) fn safe_message(text: &str, key: &str) -> String {
    let secrets = KnownSecrets::new([key.to_owned()]);
    let mut text = secrets.replace(text, "[key]").into_owned();
    if text.len() > MAX_MESSAGE {
        text.truncate(text.floor_char_boundary(MAX_MESSAGE));
        text.push('…');
    }
    text
}

/// Returns the delay that the headers of an answer ask for. The reset time of a limit is in every
/// answer, and matters only for a limit that is used up.
pub(super) fn wait<'h>(
    status: u16,
    headers: impl Iterator<Item = (&'h str, &'h str)>,
) -> Option<Duration> {
    let headers: Vec<(&str, &str)> = headers.collect();
    let header = |name: &str| headers.iter().find(|it| it.0 == name).map(|it| it.1.trim());
    let milliseconds = header("retry-after-ms").and_then(|it| it.parse::<f64>().ok());
    if let Some(wait) = milliseconds.and_then(|it| Duration::try_from_secs_f64(it / 1000.0).ok()) {
        return Some(wait);
    }
    if let Some(wait) = header("retry-after").and_then(|it| duration(it).or_else(|| until_date(it)))
    {
        return Some(wait);
    }
    if status != 429 {
        return None;
    }
    // Of several limits, the exhausted one counts; if none is marked as exhausted, the earliest
    // reset.
    let resets = headers.iter().filter_map(|(name, value)| {
        let limit = name.strip_prefix("x-ratelimit-reset")?;
        let is_spent = header(&format!("x-ratelimit-remaining{limit}")) == Some("0");
        Some((is_spent, reset(value.trim())?))
    });
    let resets: Vec<(bool, Duration)> = resets.collect();
    let spent = resets.iter().filter(|it| it.0).map(|it| it.1).max();
    spent.or_else(|| resets.iter().map(|it| it.1).min())
}

/// Parses a duration from now: `20`, `1.5`, `20ms`, `6m0s`.
fn duration(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at(digits);
        let unit = behind.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit);
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?;
        total = total.checked_add(part)?;
        rest = behind;
    }
    (!text.is_empty()).then_some(total)
}

/// Parses a delay in a message: `Please try again in 1.2s.`
fn wait_in_message(message: &str) -> Option<Duration> {
    let (_, behind) = message.split_once("try again in ")?;
    let word = behind.split_whitespace().next()?;
    duration(word.trim_end_matches(['.', ',']))
}

/// Parses the reset time of a limit: a duration from now, or a Unix time in seconds or
/// milliseconds.
fn reset(text: &str) -> Option<Duration> {
    let given = duration(text)?;
    let seconds = given.as_secs();
    // A delay of thirty years is not plausible, so the number is a date.
    let date = match seconds {
        0..1_000_000_000 => return Some(given),
        1_000_000_000..100_000_000_000 => given,
        _ => given / 1000,
    };
    date.checked_sub(now())
}

/// Returns the time until an HTTP date, such as `Sun, 06 Nov 1994 08:49:37 GMT`; zero for a past
/// one.
fn until_date(text: &str) -> Option<Duration> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut words = text.split_once(", ")?.1.split(' ');
    let day: u64 = words.next()?.parse().ok()?;
    let month = words.next().filter(|it| it.len() == 3)?;
    let month = (MONTHS.find(month)? / 3) as u64;
    let year: u64 = words.next()?.parse().ok().filter(|it| (1970..10_000).contains(it))?;
    let mut seconds = 0;
    for part in words.next()?.splitn(3, ':') {
        seconds = seconds * 60 + part.parse::<u64>().ok().filter(|it| *it <= 60)?;
    }
    // Years begin in March, so that the leap day comes last.
    let (year, month) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day;
    let days = days.checked_sub(719_469)?;
    let date = Duration::from_secs(days * 86_400 + seconds);
    Some(date.saturating_sub(now()))
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Parses the size of the context window from a message. Tokens reserved for the reply are not
/// available to the prompt.
fn window(message: &str) -> Option<usize> {
    if let Some((_, sum)) = message.split_once("context limit: ") {
        let [_, reply, most] = numbers(sum)[..] else { return numbers(sum).get(2).copied() };
        return most.checked_sub(reply);
    }
    const BEFORE: &[&str] = &[
        "maximum context length is",
        "maximum context length of",
        "maximum prompt length is",
        "maximum number of tokens allowed",
        "context window of",
        "context size",
        "limit",
    ];
    const BEHIND: &[&str] = &["maximum context length", "maximum"];
    let before = BEFORE.iter().filter_map(|it| message.split_once(it));
    let first = before.filter_map(|(_, rest)| {
        let rest: &str = &rest[..rest.floor_char_boundary(24)];
        numbers(rest).first().copied()
    });
    let behind = BEHIND.iter().filter_map(|it| message.split_once(it));
    let last = behind.filter_map(|(text, _)| {
        let text = text.trim_end();
        let start = text.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |it| it + 1);
        // `start` is after a character of one byte or more.
        text.get(start..).and_then(|it| it.parse().ok())
    });
    let window: usize = first.chain(last).find(|it| *it > 0)?;
    let reply =
        message.split_once(" in the completion").and_then(|it| numbers(it.0).last().copied());
    Some(reply.and_then(|it| window.checked_sub(it)).filter(|it| *it > 0).unwrap_or(window))
}

/// Parses the size of the prompt from a message that also gives the window.
fn prompt_size(message: &str, window: usize) -> Option<usize> {
    for (sign, is_before) in [(" in the messages", true), ("context limit: ", false)] {
        if let Some((before, behind)) = message.split_once(sign) {
            let numbers = numbers(if is_before { before } else { behind });
            return if is_before { numbers.last() } else { numbers.first() }.copied();
        }
    }
    numbers(message).into_iter().find(|it| *it > window)
}

pub(super) fn numbers(text: &str) -> Vec<usize> {
    let digits = text.split(|c: char| !c.is_ascii_digit());
    digits.filter_map(|it| it.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_what_the_prompt_may_have() {
        for (message, tokens, prompt) in [
            (
                "this model's maximum context length is 8192 tokens. however, you requested 9000 tokens (5000 in the messages, 4000 in the completion).",
                Some(4192),
                Some(5000),
            ),
            (
                "this model's maximum context length is 128000 tokens. however, your messages resulted in 130000 tokens.",
                Some(128_000),
                Some(130_000),
            ),
            (
                "this endpoint's maximum context length is 131072 tokens. however, you requested about 200000 tokens",
                Some(131_072),
                Some(200_000),
            ),
            ("prompt is too long: 208310 tokens > 200000 maximum", Some(200_000), Some(208_310)),
            (
                "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length",
                Some(136_000),
                Some(178_959),
            ),
            (
                "the input token count (2551556) exceeds the maximum number of tokens allowed (1048576).",
                Some(1_048_576),
                Some(2_551_556),
            ),
            (
                "prompt contains 65673 tokens, too large for model with 32768 maximum context length",
                Some(32_768),
                Some(65_673),
            ),
            (
                "this model's maximum prompt length is 131072 but the request contains 537812 tokens.",
                Some(131_072),
                Some(537_812),
            ),
            (
                "request too large for gpt-4o on tokens per min (tpm): limit 30000, requested 40000.",
                Some(30_000),
                Some(40_000),
            ),
            (
                "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
                Some(8192),
                Some(9000),
            ),
            (
                "your input exceeds the context window of this model. please adjust your input",
                None,
                None,
            ),
            ("é maximum", None, None),
            ("context limit: 1", None, None),
        ] {
            assert_eq!(window(message), tokens, "{message}");
            assert_eq!(tokens.and_then(|it| prompt_size(message, it)), prompt, "{message}");
        }
    }

    #[test]
    fn a_wait_is_read_in_every_form() {
        let seconds = |it| Some(Duration::from_secs_f64(it));
        for (text, wait) in [
            ("20", seconds(20.0)),
            ("1.5", seconds(1.5)),
            ("20ms", seconds(0.02)),
            ("6m0s", seconds(360.0)),
            ("1h2m3.5s", seconds(3723.5)),
            ("34.074824224s", seconds(34.074_824_224)),
            ("", None),
            ("-1", None),
            ("NaN", None),
            ("inf", None),
            ("1e400", None),
            ("s", None),
            ("5 minutes", None),
            ("9999999999999999999999999999h", None),
        ] {
            assert_eq!(duration(text), wait, "{text}");
        }
        assert_eq!(wait_in_message("Limit 3, Used 3. Please try again in 6ms."), seconds(0.006));
        assert_eq!(until_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        let far = until_date("Fri, 31 Dec 9999 23:59:59 GMT").unwrap() + now();
        assert_eq!(far.as_secs(), 253_402_300_799);
        let leap = until_date("Tue, 29 Feb 2400 00:00:00 GMT").unwrap() + now();
        assert_eq!(leap.as_secs(), 13_574_563_200);
        for bad in
            ["", "tomorrow", "Sun, 06 Nov", "Sun, 06 Foo 1994 08:49:37 GMT", "x, 1 Jan 0 0:0:0"]
        {
            assert_eq!(until_date(bad), None, "{bad}");
        }
    }

    #[test]
    fn of_several_limits_the_one_that_is_used_up_says_how_long() {
        let two = |requests, tokens| {
            wait(
                429,
                [
                    ("x-ratelimit-remaining-requests", requests),
                    ("x-ratelimit-reset-requests", "8h0m0s"),
                    ("x-ratelimit-remaining-tokens", tokens),
                    ("x-ratelimit-reset-tokens", "1s"),
                ]
                .into_iter(),
            )
        };
        assert_eq!(two("0", "100"), Some(Duration::from_secs(8 * 3600)));
        assert_eq!(two("5", "0"), Some(Duration::from_secs(1)));
        assert_eq!(two("5", "100"), Some(Duration::from_secs(1)));
        let headers = [("retry-after", "7"), ("retry-after-ms", "250")];
        assert_eq!(wait(500, headers.into_iter()), Some(Duration::from_millis(250)));
        let date = (now() + Duration::from_secs(100)).as_millis().to_string();
        let reset = || [("x-ratelimit-reset", &*date)].into_iter();
        let left = wait(429, reset()).unwrap();
        assert!(left.as_secs() >= 98 && left.as_secs() <= 100, "{left:?}");
        assert_eq!(wait(500, reset()), None);
    }

    #[test]
    fn what_is_shown_is_short_and_holds_no_key() {
        let text = format!("{}sk-secret1 and sk-secret1{}", "ä".repeat(1020), "x".repeat(5000));
        let shown = safe_message(&text, "sk-secret1");
        assert!(shown.len() <= MAX_MESSAGE + 3 && !shown.contains("sk-"), "{shown}");
        // Some servers have an ordinary word as key.
        assert_eq!(safe_message("unexpected value", "x"), "unexpected value");
        assert_eq!(safe_message("unexpected value", "value"), "unexpected value");
    }
}
