//! The server: each request of the protocol goes to the module that answers it.

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
};

use crate::{instructions::instructions, served::Served, tools};

/// Answers the requests of one client, or of many.
#[derive(Debug, Clone)]
pub struct Server {
    served: Arc<Served>,
}

impl Server {
    /// Serves this.
    pub fn new(served: Arc<Served>) -> Self {
        Self { served }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info =
            Implementation::new("prowess", env!("CARGO_PKG_VERSION")).with_title("Prowess");
        info.instructions = instructions(&self.served.library(), &self.served.telling);
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        tools::list(&self.served)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tokio::select! {
            done = tools::call(&self.served, request) => done,
            // What a call has started ends with it.
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
        }
    }
}
