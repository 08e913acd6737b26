//! Parses bytes as a message of the protocol, or returns the error that describes the fault.

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, GetMeta as _, JsonRpcError,
    ProtocolVersion, RequestId,
};
use serde::Deserialize as _;
use serde_json::Value;

/// The maximum size of a message in bytes.
pub(crate) const LONGEST: usize = 4 * 1024 * 1024;

/// The methods whose params the protocol defines: with other params they are rejected.
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

/// The methods that were removed in 2026-07-28.
const REMOVED: [&str; 5] =
    ["initialize", "ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel"];

/// Parses a message. An invalid one is answered with an error, unless it is a notification or a
/// response, which are never answered.
pub(crate) fn read(bytes: &[u8]) -> Result<ClientJsonRpcMessage, Option<Box<JsonRpcError>>> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    match serde_json::from_slice(bytes) {
        Ok(ClientJsonRpcMessage::Request(asked)) => match find_fault(&asked.request, bytes) {
            Some(error) => Err(Some(JsonRpcError::new(Some(asked.id), error).into())),
            None => Ok(ClientJsonRpcMessage::Request(asked)),
        },
        Ok(message) => Ok(message),
        Err(_) => Err(parse_error(bytes).map(Box::new)),
    }
}

/// Returns the reason a request cannot be answered, if any.
fn find_fault(request: &ClientRequest, bytes: &[u8]) -> Option<ErrorData> {
    let method = request.method();
    let version = request.get_meta().protocol_version();
    let is_new = version.is_some_and(|it| it.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
    if is_new && REMOVED.contains(&method) {
        return Some(no_method(method));
    }
    let is_unlike = match request {
        ClientRequest::CustomRequest(_) => METHODS.contains(&method),
        ClientRequest::ListToolsRequest(_)
        | ClientRequest::ListPromptsRequest(_)
        | ClientRequest::ListResourcesRequest(_)
        | ClientRequest::ListResourceTemplatesRequest(_) => !has_cursor_or_none(bytes),
        _ => false,
    };
    is_unlike.then(|| ErrorData::invalid_params(format!("invalid params for `{method}`"), None))
}

/// Whether the cursor in a message is a string or missing. The protocol types read any other type
/// as missing, which would lead back to the first page.
fn has_cursor_or_none(message: &[u8]) -> bool {
    let message: Value = serde_json::from_slice(message).unwrap_or_default();
    let cursor = &message["params"]["cursor"];
    cursor.is_string() || cursor.is_null()
}

/// Returns the error for an unknown method.
pub(crate) fn no_method(method: &str) -> ErrorData {
    let message = format!("there is no method `{method}`");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

/// Returns the error for a message that exceeds the size limit.
pub(crate) fn too_long() -> JsonRpcError {
    let message = format!("the message is longer than {LONGEST} bytes");
    JsonRpcError::new(None, ErrorData::invalid_request(message, None))
}

fn parse_error(bytes: &[u8]) -> Option<JsonRpcError> {
    let message = match serde_json::from_slice(bytes) {
        Ok(Value::Object(message)) => message,
        Ok(value) => {
            let message = match value {
                Value::Array(_) => "batches are not supported",
                _ => "a message must be a JSON object",
            };
            return Some(JsonRpcError::new(None, ErrorData::invalid_request(message, None)));
        }
        Err(error) => {
            let message = format!("the message is not JSON: {error}");
            return Some(JsonRpcError::new(None, ErrorData::parse_error(message, None)));
        }
    };
    let id = message.get("id").and_then(|it| RequestId::deserialize(it).ok());
    let is_request = message.contains_key("method") && message.contains_key("id");
    let invalid = if message.get("jsonrpc").is_none_or(|it| it != "2.0") {
        "`jsonrpc` is not \"2.0\""
    } else if is_request && id.is_none() {
        "`id` is neither a string nor an integer"
    } else if is_request && message.get("params").is_some_and(|it| !it.is_object()) {
        let error = ErrorData::invalid_params("`params` is not an object", None);
        return Some(JsonRpcError::new(id, error));
    } else if is_request
        || !["method", "result", "error"].iter().any(|it| message.contains_key(*it))
    {
        "the message is not a request, a notification or a response"
    } else {
        return None;
    };
    Some(JsonRpcError::new(id, ErrorData::invalid_request(invalid, None)))
}
