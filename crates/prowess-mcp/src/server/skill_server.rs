//! The server: passes each request of the protocol to the module that answers it.

use std::sync::{Arc, OnceLock};

use prowess::matches;
use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
        CustomRequest, CustomResult, GetPromptRequestParams, GetPromptResponse, Implementation,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, Reference,
        ServerCapabilities, ServerConfig, SubscribeRequestMethod, SubscribeRequestParams,
        SubscriptionFilter, UnsubscribeRequestMethod, UnsubscribeRequestParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use tokio::sync::Semaphore;

use crate::server::{
    completion, extension,
    frame::no_method,
    paging::reject_cursor,
    prompts, resources,
    server_state::{ServeOptions, ServerState},
    tools,
    watch::{Listener, Watch, WatchHandle},
};

/// Answers the requests of one client, or of many.
#[derive(Debug)]
pub struct SkillServer {
    served: Arc<ServerState>,
    watch: Option<Arc<Watch>>,
    /// The client, once it can be notified of changes.
    listener: OnceLock<Arc<Listener>>,
    /// The number of further tool calls the client may run concurrently.
    calls: Semaphore,
    /// The number of further change subscriptions the client may open.
    listening: Semaphore,
}

/// The maximum number of concurrent tool calls of a client.
const CALLS: usize = 64;
/// The maximum number of concurrent change subscriptions of a client.
const LISTENING: usize = 8;

impl SkillServer {
    /// Creates a server.
    pub fn new(served: Arc<ServerState>) -> Self {
        Self {
            served,
            watch: None,
            listener: OnceLock::new(),
            calls: Semaphore::new(CALLS),
            listening: Semaphore::new(LISTENING),
        }
    }

    /// Notifies clients when the provider has a new library.
    pub fn watching(mut self) -> Self {
        self.watch = Some(Arc::default());
        self
    }

    /// Returns a server for another client, with the same skills and tools.
    pub(crate) fn for_client(&self) -> Self {
        Self { watch: self.watch.clone(), ..Self::new(self.served.clone()) }
    }

    /// Builds the index ahead of the first search, and watches the library if clients are notified
    /// of changes.
    pub(crate) fn start(&self) -> Option<WatchHandle> {
        let library = self.served.library();
        tokio::task::spawn_blocking(move || drop(matches(&library, "anything", 1)));
        self.watch.as_ref().map(|it| it.follow(&self.served))
    }

    /// Returns the capabilities of the server.
    fn capabilities(&self) -> ServerCapabilities {
        let ServeOptions { prompts, resources, .. } = self.served.options;
        let mut all = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_completions()
            .enable_resources()
            .enable_extensions_with(extension::capabilities())
            .build();
        if !prompts {
            all.prompts = None;
        }
        if !resources {
            (all.resources, all.extensions) = (None, None);
        }
        if !prompts && !resources {
            all.completions = None;
        }
        all
    }

    /// Rejects a request for prompts if none are offered.
    fn with_prompts(&self, method: &str) -> Result<(), ErrorData> {
        if self.served.options.prompts { Ok(()) } else { Err(no_method(method)) }
    }

    /// Rejects a request for resources if none are offered.
    fn with_resources(&self, method: &str) -> Result<(), ErrorData> {
        if self.served.options.resources { Ok(()) } else { Err(no_method(method)) }
    }

    /// Returns the client as a listener for changes.
    fn listener(&self, watch: &Watch, peer: Peer<RoleServer>) -> &Listener {
        self.listener.get_or_init(|| watch.add_client(peer))
    }
}

impl ServerHandler for SkillServer {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(self.capabilities());
        if self.watch.is_some() {
            declare_changes(&mut info.capabilities);
        }
        info.server_info =
            Implementation::new("prowess", env!("CARGO_PKG_VERSION")).with_title("Prowess");
        info.instructions = self.served.instructions();
        info
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        reject_cursor(request.and_then(|it| it.cursor).as_deref())?;
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
            // Dropping the call ends everything it has started.
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.with_resources("resources/list")?;
        let cursor = request.and_then(|it| it.cursor);
        self.served.work(move |served| resources::list(served, cursor.as_deref())).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.with_resources("resources/templates/list")?;
        reject_cursor(request.and_then(|it| it.cursor).as_deref())?;
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.with_resources("resources/read")?;
        self.served
            .work(move |served: &ServerState| resources::read(served, &request.uri))
            .await
            .map(ReadResourceResponse::Complete)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        self.with_resources(&request.method)?;
        extension::answer(&self.served, request, context.protocol_version()).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.with_prompts("prompts/list")?;
        let cursor = request.and_then(|it| it.cursor);
        prompts::list(&self.served, cursor.as_deref())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.with_prompts("prompts/get")?;
        self.served.work(|served| prompts::get(served, request)).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        match &request.r#ref {
            Reference::Prompt(_) => self.with_prompts("completion/complete")?,
            _ => self.with_resources("completion/complete")?,
        }
        completion::complete(&self.served, request)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if let Some(watch) = &self.watch {
            self.listener(watch, context.peer);
        }
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.watch.as_ref().map(|it| it.accept(&self.served, requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let (Some(watch), Ok(_listening)) = (&self.watch, self.listening.try_acquire()) else {
            return Err(ErrorData::internal_error("too many subscriptions at once", None));
        };
        watch.listen(context).await;
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let Some(watch) = self.watch.as_ref().filter(|_| self.served.options.resources) else {
            return Err(ErrorData::method_not_found::<SubscribeRequestMethod>());
        };
        let listener = self.listener(watch, context.peer);
        watch.subscribe(&self.served, listener, request.uri).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let Some(watch) = &self.watch else {
            return Err(ErrorData::method_not_found::<UnsubscribeRequestMethod>());
        };
        self.listener(watch, context.peer).unsubscribe(&request.uri);
        Ok(())
    }
}

/// Declares that clients are notified of changes. The tools never change.
fn declare_changes(capabilities: &mut ServerCapabilities) {
    if let Some(resources) = &mut capabilities.resources {
        (resources.subscribe, resources.list_changed) = (Some(true), Some(true));
    }
    if let Some(prompts) = &mut capabilities.prompts {
        prompts.list_changed = Some(true);
    }
}
