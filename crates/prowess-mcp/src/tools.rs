//! The tools: as many as the toolbox has, however many skills there are.

use prowess_runtime::{Convention, Outcome, Status};
use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
        Tool,
    },
};
use serde_json::Value;

use crate::served::Served;

/// Lists all of them at once.
pub(crate) fn list(served: &Served) -> Result<ListToolsResult, ErrorData> {
    let told = served.toolbox.tools().iter().filter_map(|it| Convention::Mcp.tell(&**it));
    let tools: Result<Vec<Tool>, _> = told.map(serde_json::from_value).collect();
    let tools = tools.map_err(|it| ErrorData::internal_error(it.to_string(), None))?;
    Ok(ListToolsResult::with_all_items(tools))
}

/// Calls one. Whatever comes of it is a result that the model reads; only a tool that is not there is
/// an error of the protocol.
pub(crate) async fn call(
    served: &Served,
    request: CallToolRequestParams,
) -> Result<CallToolResponse, ErrorData> {
    let Some(tool) = served.toolbox.find(&request.name) else {
        let message = format!("there is no tool `{}`", request.name);
        return Err(ErrorData::invalid_params(message, None));
    };
    let input = request.arguments.map_or(Value::Null, Value::Object);
    let outcome = served.toolbox.call_tool(tool, input).await;
    Ok(CallToolResponse::Complete(result(&outcome)))
}

fn result(outcome: &Outcome) -> CallToolResult {
    let text = match (&outcome.output, outcome.status) {
        (Some(Value::String(text)), Status::Ok) => text.clone(),
        (Some(output), Status::Ok) => output.to_string(),
        _ => serde_json::to_string(outcome).unwrap_or_default(),
    };
    let content = vec![ContentBlock::text(text)];
    match outcome.status {
        Status::Ok => CallToolResult::success(content),
        _ => CallToolResult::error(content),
    }
}
