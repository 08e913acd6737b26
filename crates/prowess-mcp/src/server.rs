//! The server: each request of the protocol goes to the module that answers it.

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
        CustomRequest, CustomResult, GetPromptRequestParams, GetPromptResponse, Implementation,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
        ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
};
use tokio::sync::Semaphore;

use crate::{completion, extension, prompts, resources, served::Served, tools};

/// Answers the requests of one client, or of many.
#[derive(Debug)]
pub struct Server {
    served: Arc<Served>,
    /// How many more tools the client may call meanwhile.
    calls: Semaphore,
}

/// How many tools a client may call at once.
const CALLS: usize = 64;

impl Server {
    /// Serves this.
    pub fn new(served: Arc<Served>) -> Self {
        Self { served, calls: Semaphore::new(CALLS) }
    }

    /// Serves the same to another client.
    pub(crate) fn for_another(&self) -> Self {
        Self::new(self.served.clone())
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_completions()
            .enable_resources()
            .enable_extensions_with(extension::capabilities())
            .build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info =
            Implementation::new("prowess", env!("CARGO_PKG_VERSION")).with_title("Prowess");
        info.instructions = self.served.instructions();
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
        let Ok(_call) = self.calls.try_acquire() else {
            return Err(ErrorData::internal_error("too many tools are called at once", None));
        };
        tokio::select! {
            done = tools::call(&self.served, request) => done,
            // What a call has started ends with it.
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|it| it.cursor);
        self.served.work(move |served| resources::list(served, cursor.as_deref())).await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = move |served: &Served| resources::read(served, &request.uri);
        self.served.work(read).await.map(ReadResourceResponse::Complete)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        extension::answer(&self.served, request, context.protocol_version()).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let cursor = request.and_then(|it| it.cursor);
        prompts::list(&self.served, cursor.as_deref())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.served.work(|served| prompts::get(served, request)).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        completion::complete(&self.served, request)
    }
}
