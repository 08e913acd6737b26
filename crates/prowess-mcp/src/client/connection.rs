//! An MCP client: the only place that knows the protocol.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use prowess_sandbox::ProgramStream;
use rmcp::{
    ClientHandler, Peer, RoleClient,
    model::{
        CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, ClientRequest,
        CustomRequest, CustomResult, PaginatedRequestParams, ProtocolVersion,
        ReadResourceRequestParams, ReadResourceResponse, ServerNotification, ServerResult,
        SubscriptionFilter,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, NotificationContext, RunningService,
        Subscription, serve_client_with_lifecycle,
    },
};
use serde_json::{Map, Value, json};
use tokio::{io::BufReader, task::JoinHandle};

#[cfg(feature = "http")]
use super::remote::Remote;
use super::{
    failure::Failure,
    message::client_info,
    monitor::TrafficMonitor,
    pipe::{BoundedReader, Pipe},
};
use crate::sys::split;

pub(super) use rmcp::model::{
    CallToolResult, ContentBlock, ResourceContents, Tool as ToolDescription,
};

/// A connection to a server.
pub(super) struct Connection {
    service: RunningService<RoleClient, Handler>,
    monitor: Arc<TrafficMonitor>,
    /// Receives changes from a server of 2026-07-28, which sends them only to a subscriber.
    subscriber: Option<JoinHandle<()>>,
}

/// Sends requests to a server, also concurrently.
#[derive(Clone)]
pub(super) struct Caller {
    peer: Peer<RoleClient>,
    monitor: Arc<TrafficMonitor>,
}

/// The connection to a server.
pub(super) enum Channel {
    /// The input and output of a program.
    Stream(ProgramStream),
    #[cfg(feature = "http")]
    /// HTTP requests.
    Remote(Box<Remote>),
}

/// The maximum number of requested pages of a list.
const PAGES: usize = 64;
/// The capability of a server that offers skills.
const SKILLS: &str = "io.modelcontextprotocol/skills";

impl Connection {
    /// Connects to a server, by the protocol revision in which it offers the most. Some support
    /// two, and offer skills only in 2026-07-28. A program has `patience` to answer whether it
    /// supports that revision.
    pub(super) async fn connect(
        channel: Channel,
        patience: Duration,
        monitor: Arc<TrafficMonitor>,
    ) -> Result<Self, Failure> {
        let handler = Handler { monitor: monitor.clone() };
        let served = match channel {
            Channel::Stream(stream) => {
                let (read, write) = split(stream);
                let read = BufReader::new(BoundedReader { read, monitor: monitor.clone() });
                let monitor = monitor.clone();
                let mut pipe = Pipe { read, write, line: Vec::new(), late: None, monitor };
                let lifecycle = match pipe.knows_discovery(patience).await {
                    true => discovery(),
                    false => ClientLifecycleMode::Initialize,
                };
                let (transport, carried) = pipe.transport();
                match serve_client_with_lifecycle(handler.clone(), transport, lifecycle).await {
                    Err(ClientInitializeError::JsonRpcError(error)) => match carried.await {
                        // It was only slow, and is bound to its first answer.
                        Ok(pipe) if pipe.late == Some(true) => {
                            let (transport, _) = pipe.transport();
                            serve_client_with_lifecycle(handler, transport, discovery()).await
                        }
                        _ => Err(ClientInitializeError::JsonRpcError(error)),
                    },
                    served => served,
                }
            }
            #[cfg(feature = "http")]
            Channel::Remote(remote) => {
                let remote: Arc<Remote> = Arc::from(remote);
                let connected = |lifecycle| {
                    let transport = remote.clone().transport(monitor.clone());
                    serve_client_with_lifecycle(handler.clone(), transport, lifecycle)
                };
                match connected(ClientLifecycleMode::Initialize).await {
                    Err(ClientInitializeError::JsonRpcError(error)) => {
                        // The error of the handshake is more helpful, if this fails as well.
                        let served = connected(discovery()).await;
                        served.map_err(|_| ClientInitializeError::JsonRpcError(error))
                    }
                    Ok(service) if !offers_skills(&service) => match connected(discovery()).await {
                        Ok(other) if offers_skills(&other) => {
                            let _ = service.cancel().await;
                            Ok(other)
                        }
                        _ => {
                            monitor.note(None);
                            Ok(service)
                        }
                    },
                    served => served,
                }
            }
        };
        match served {
            Ok(service) => {
                let subscriber = subscribe(&service, &monitor);
                Ok(Self { service, monitor, subscriber })
            }
            Err(_) if monitor.is_flooded() => Err(Failure::Flood),
            Err(ClientInitializeError::JsonRpcError(error)) => {
                Err(Failure::Error(error.message.into()))
            }
            Err(
                ClientInitializeError::ConnectionClosed(_)
                | ClientInitializeError::TransportError { .. },
            ) => Err(monitor.end_reason()),
            Err(error) => Err(Failure::NotMcp(error.to_string())),
        }
    }

    /// Returns the first tools that the server lists, and whether it has more.
    pub(super) async fn tools(&self, most: usize) -> Result<(Vec<ToolDescription>, bool), Failure> {
        self.monitor.allow(0);
        self.monitor.has_changed_tools.store(false, Ordering::Relaxed);
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let page = self.service.list_tools(Some(page)).await;
            let page = page.map_err(|error| self.monitor.failure(error))?;
            tools.extend(page.tools);
            // A server that repeats a cursor has nothing new.
            let is_same = page.next_cursor == cursor;
            cursor = page.next_cursor;
            if cursor.is_none() || is_same || tools.len() > most {
                break;
            }
        }
        let has_more = cursor.is_some() || tools.len() > most;
        tools.truncate(most);
        Ok((tools, has_more))
    }

    /// Whether the server offers skills.
    pub(super) fn offers_skills(&self) -> bool {
        offers_skills(&self.service)
    }

    /// Whether the server has announced changed tools since they were last listed.
    pub(super) fn has_changed_tools(&self) -> bool {
        self.monitor.has_changed_tools.load(Ordering::Relaxed)
    }

    /// Whether the server has announced changed skills since they were last listed.
    pub(super) fn has_changed_skills(&self) -> bool {
        self.monitor.has_changed_skills.load(Ordering::Relaxed)
    }

    /// Returns the reason why it is closed.
    pub(super) fn failure(&self) -> Failure {
        if self.monitor.is_flooded() { Failure::Flood } else { Failure::Gone }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.service.is_transport_closed() || self.monitor.is_flooded()
    }

    pub(super) fn caller(&self) -> Caller {
        Caller { peer: self.service.peer().clone(), monitor: self.monitor.clone() }
    }

    /// Closes the connection: the server reaches the end of its input, or is asked to end the
    /// session.
    pub(super) async fn close(self) {
        if let Some(subscriber) = &self.subscriber {
            subscriber.abort();
        }
        let _ = self.service.cancel().await;
    }
}

/// Selects 2026-07-28, which has no handshake.
fn discovery() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

fn offers_skills(service: &RunningService<RoleClient, Handler>) -> bool {
    let said = service.peer().peer_info();
    said.is_some_and(|it| {
        it.capabilities.extensions.as_ref().is_some_and(|it| it.contains_key(SKILLS))
    })
}

/// Subscribes to changes of tools and resources, if the server only sends them on request.
fn subscribe(
    service: &RunningService<RoleClient, Handler>,
    monitor: &Arc<TrafficMonitor>,
) -> Option<JoinHandle<()>> {
    let info = service.peer().peer_info()?;
    if info.protocol_version.as_str() < ProtocolVersion::V_2026_07_28.as_str() {
        return None;
    }
    let capabilities = &info.capabilities;
    let tools = capabilities.tools.as_ref().and_then(|it| it.list_changed);
    let resources = capabilities.resources.as_ref().and_then(|it| it.list_changed);
    let mut filter = SubscriptionFilter::new();
    filter.tools_list_changed = tools.filter(|it| *it);
    filter.resources_list_changed = resources.filter(|it| *it);
    if filter == SubscriptionFilter::new() {
        return None;
    }
    let (peer, monitor) = (service.peer().clone(), monitor.clone());
    Some(tokio::spawn(async move {
        if let Ok(subscription) = peer.listen(filter).await {
            follow(subscription, &monitor).await;
        }
    }))
}

/// Records every change of a subscription, until it ends.
async fn follow(mut subscription: Subscription, monitor: &TrafficMonitor) {
    while let Ok(Some(notification)) = subscription.next().await {
        match notification {
            ServerNotification::ToolListChangedNotification(_) => {
                monitor.has_changed_tools.store(true, Ordering::Relaxed);
            }
            ServerNotification::ResourceListChangedNotification(_) => {
                monitor.has_changed_skills.store(true, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

impl Caller {
    /// Calls a tool. Dropping the future cancels the call.
    pub(super) async fn call(
        &self,
        tool: &str,
        input: Map<String, Value>,
    ) -> Result<CallToolResult, Failure> {
        self.monitor.allow(0);
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(input);
        match self.peer.call_tool_once(params).await {
            Ok(CallToolResponse::Complete(result)) => Ok(result),
            Ok(_) => Err(Failure::Error("it asks for input, which is not supported".to_owned())),
            Err(error) => Err(self.monitor.failure(error)),
        }
    }

    /// Returns the first skills that the server lists, as listed, and whether it has more.
    pub(super) async fn skills(&self, most: usize) -> Result<(Vec<Value>, bool), Failure> {
        self.monitor.allow(0);
        self.monitor.has_changed_skills.store(false, Ordering::Relaxed);
        let mut skills = Vec::new();
        let mut cursor = Value::Null;
        for _ in 0..PAGES {
            let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
            let mut page = self.ask("skills/list", params).await?;
            match page["skills"].take() {
                Value::Array(listed) => skills.extend(listed),
                _ => {
                    return Err(Failure::NotMcp(
                        "its answer to `skills/list` has no list of skills".to_owned(),
                    ));
                }
            }
            let next = page["nextCursor"].take();
            // A server that repeats a cursor has nothing new.
            let is_over = next.is_null() || next == cursor;
            cursor = next;
            if is_over || skills.len() > most {
                break;
            }
        }
        let has_more = !cursor.is_null() || skills.len() > most;
        skills.truncate(most);
        Ok((skills, has_more))
    }

    /// Returns the skill of a URI, as the server describes it now.
    pub(super) async fn skill(&self, uri: &str) -> Result<Value, Failure> {
        self.monitor.allow(0);
        Ok(self.ask("skills/get", json!({ "uri": uri })).await?["skill"].take())
    }

    /// Reads a resource of an expected size.
    pub(super) async fn read(&self, uri: &str, size: u64) -> Result<Vec<u8>, Failure> {
        // Most are longer when encoded in JSON.
        self.monitor.allow(size.saturating_mul(2));
        let params = ReadResourceRequestParams::new(uri);
        let contents = match self.peer.read_resource_once(params).await {
            Ok(ReadResourceResponse::Complete(result)) => result.contents,
            Ok(_) => {
                return Err(Failure::Error("it asks for input, which is not supported".to_owned()));
            }
            Err(error) => return Err(self.monitor.failure(error)),
        };
        match <[ResourceContents; 1]>::try_from(contents) {
            Ok([ResourceContents::TextResourceContents { uri: own, text, .. }]) if own == uri => {
                Ok(text.into_bytes())
            }
            Ok([ResourceContents::BlobResourceContents { uri: own, blob, .. }]) if own == uri => {
                let bytes = BASE64_STANDARD.decode(blob);
                bytes.map_err(|_| Failure::NotMcp("the content is not valid base64".to_owned()))
            }
            _ => Err(Failure::NotMcp("its answer is not the requested resource".to_owned())),
        }
    }

    /// Sends a request that is not part of the base protocol.
    async fn ask(&self, method: &str, params: Value) -> Result<Value, Failure> {
        let request = CustomRequest::new(method, Some(params));
        match self.peer.send_request(ClientRequest::CustomRequest(request)).await {
            Ok(ServerResult::CustomResult(CustomResult(result))) => Ok(result),
            Ok(_) => Err(Failure::NotMcp(format!("its answer to `{method}` is not a result"))),
            Err(error) => Err(self.monitor.failure(error)),
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("monitor", &self.monitor).finish_non_exhaustive()
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("monitor", &self.monitor).finish_non_exhaustive()
    }
}

/// Answers requests of a server. By default, it cannot use a model, ask a person, or list
/// directories.
#[derive(Clone)]
struct Handler {
    monitor: Arc<TrafficMonitor>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(ClientCapabilities::default(), client_info())
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.monitor.has_changed_tools.store(true, Ordering::Relaxed);
    }

    /// Skills are resources, and have no notification of their own.
    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.monitor.has_changed_skills.store(true, Ordering::Relaxed);
    }
}

// The sandbox uses sockets on Unix alone.
#[cfg(unix)]
#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};

    use super::{super::message::PROBE, *};

    /// Simulates a program that delays its answer to the first request until the second one, and
    /// then answers in order. With `knows` it only supports 2026-07-28.
    async fn answer_late(stream: ProgramStream, knows: bool) {
        let (read, mut write) = stream.into_split();
        let mut lines = BufReader::new(read).lines();
        let mut held: Vec<Value> = Vec::new();
        while let Ok(Some(line)) = lines.next_line().await {
            let asked: Value = serde_json::from_str(&line).unwrap();
            if asked["id"].is_null() {
                continue;
            }
            held.push(asked);
            if held.len() == 1 && held[0]["id"] == PROBE {
                continue;
            }
            for asked in held.drain(..) {
                let own = json!({ "name": "late", "version": "1" });
                let result = match asked["method"].as_str() {
                    Some("server/discover") if knows => json!({
                        "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
                        "serverInfo": own, "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                    }),
                    Some("initialize") if !knows => json!({
                        "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": own,
                    }),
                    Some("tools/list") => {
                        json!({ "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] })
                    }
                    _ => Value::Null,
                };
                let mut said = json!({ "jsonrpc": "2.0", "id": asked["id"] });
                match result {
                    Value::Null => {
                        said["error"] = json!({ "code": -32601, "message": "no such method" });
                    }
                    result => said["result"] = result,
                }
                write.write_all(format!("{said}\n").as_bytes()).await.unwrap();
            }
        }
    }

    #[tokio::test]
    async fn an_answer_that_nobody_waits_for_any_more_is_dropped() {
        for knows in [false, true] {
            let (own, other) = tokio::net::UnixStream::pair().unwrap();
            let server = tokio::spawn(answer_late(other, knows));
            let monitor = Arc::new(TrafficMonitor::default());
            let client = Connection::connect(Channel::Stream(own), Duration::ZERO, monitor);
            let client = client.await.unwrap();
            let (tools, _) = client.tools(8).await.unwrap();
            assert_eq!(tools.len(), 1, "{knows}");
            client.close().await;
            server.await.unwrap();
        }
    }
}
