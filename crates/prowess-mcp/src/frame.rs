//! From bytes to a message of the protocol, or to the error that says what is wrong with them.

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcError, JsonRpcRequest, RequestId,
};
use serde::Deserialize as _;
use serde_json::Value;

/// How long a message may be, in bytes.
pub(crate) const LONGEST: usize = 4 * 1024 * 1024;

/// The methods whose params the protocol describes: with other params they are no methods of ours.
const METHODS: [&str; 15] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
    "completion/complete",
    "logging/setLevel",
];

/// Reads a message. What is none is answered with an error, unless it is one that nobody answers: a
/// notification or an answer.
pub(crate) fn read(bytes: &[u8]) -> Result<ClientJsonRpcMessage, Option<Box<JsonRpcError>>> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    match serde_json::from_slice(bytes) {
        Ok(ClientJsonRpcMessage::Request(JsonRpcRequest {
            id,
            request: ClientRequest::CustomRequest(request),
            ..
        })) if METHODS.contains(&&*request.method) => {
            let message =
                format!("the params of `{}` are not those of the protocol", request.method);
            let error = ErrorData::invalid_params(message, None);
            Err(Some(JsonRpcError::new(Some(id), error).into()))
        }
        Ok(message) => Ok(message),
        Err(_) => Err(refusal(bytes).map(Box::new)),
    }
}

/// What is said of a message that is too long to be read.
pub(crate) fn too_long() -> JsonRpcError {
    let message = format!("the message is longer than {LONGEST} bytes");
    JsonRpcError::new(None, ErrorData::invalid_request(message, None))
}

fn refusal(bytes: &[u8]) -> Option<JsonRpcError> {
    let invalid = |id, message: &'static str| {
        Some(JsonRpcError::new(id, ErrorData::invalid_request(message, None)))
    };
    let message = match serde_json::from_slice(bytes) {
        Ok(Value::Object(message)) => message,
        Ok(Value::Array(_)) => {
            return invalid(None, "messages are sent one by one: the protocol knows no batches");
        }
        Ok(_) => return invalid(None, "a message is a JSON object"),
        Err(error) => {
            let message = format!("the message is not JSON: {error}");
            return Some(JsonRpcError::new(None, ErrorData::parse_error(message, None)));
        }
    };
    let id = message.get("id").and_then(|it| RequestId::deserialize(it).ok());
    let is_request = message.contains_key("method") && message.contains_key("id");
    if message.get("jsonrpc").is_none_or(|it| it != "2.0") {
        invalid(id, "`jsonrpc` is not \"2.0\"")
    } else if is_request && id.is_none() {
        invalid(None, "`id` is neither a text nor an integer")
    } else if is_request && message.get("params").is_some_and(|it| !it.is_object()) {
        let error = ErrorData::invalid_params("`params` is not an object", None);
        Some(JsonRpcError::new(id, error))
    } else if is_request
        || !["method", "result", "error"].iter().any(|it| message.contains_key(*it))
    {
        invalid(id, "the message is neither a request nor a notification nor an answer")
    } else {
        None
    }
}
