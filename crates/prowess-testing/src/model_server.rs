//! A local server that speaks the protocols of the model providers, with the answers of a test.

use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use prowess_agent::{ApiKey, Model, ModelConnection, ModelProvider, model};
use serde_json::{Value as Json, json};

use crate::{
    server::{Asked, Server},
    world::until,
};

/// A model server. It answers in the protocol of the request, which the path shows. Ended when
/// dropped.
#[derive(Debug)]
pub struct ModelServer {
    server: Server,
    hung_up: Arc<AtomicBool>,
}

/// A request it got.
#[derive(Debug, Clone)]
pub struct Request {
    pub path: String,
    pub body: Json,
    asked: Asked,
}

/// An answer it gives.
#[derive(Debug, Clone)]
pub struct Answer {
    content: Content,
    end: End,
    headers: String,
    piece: usize,
    pause: Duration,
}

#[derive(Debug, Clone)]
enum Content {
    Reply(Reply),
    Status(u16, Option<String>),
    TooLong(usize),
    Bytes(Vec<u8>),
}

/// A reply, independent of the protocol.
#[derive(Debug, Clone, Default)]
struct Reply {
    thought: String,
    text: String,
    /// Tool calls: names, and arguments as the model wrote them.
    calls: Vec<(String, String)>,
    is_cut_short: bool,
    is_held_back: bool,
}

/// The end of an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Well,
    Cut,
    Hang,
    Drip,
    Error,
    Garbage,
    Flood,
}

/// The protocol of a provider.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Format {
    Chat,
    Responses,
    Messages,
    Gemini,
}

/// The ends of the paths that requests go to.
const FORMATS: [(&str, Format); 5] = [
    ("/chat/completions", Format::Chat),
    ("/responses", Format::Responses),
    ("/v1/messages", Format::Messages),
    (":generateContent", Format::Gemini),
    (":streamGenerateContent", Format::Gemini),
];

/// The key of requests to it.
pub const KEY: &str = "sk-test-0123456789";
/// Longer than any test waits for a silent server.
const LONG: Duration = Duration::from_secs(20);
/// The reported token usage: input, output, and cached input.
pub const SPENT: [u64; 3] = [25, 7, 5];

impl ModelServer {
    /// Starts a server that gives these answers, one after the other.
    pub fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers = Mutex::new(answers.into_iter().collect::<VecDeque<Answer>>());
        Self::answering(move |_| {
            let answer = answers.lock().unwrap().pop_front();
            answer.unwrap_or_else(|| Answer::status(501).body("the script is over"))
        })
    }

    /// Starts a server whose answers a function returns.
    pub fn answering(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let hung_up = Arc::new(AtomicBool::new(false));
        let (flag, count) = (hung_up.clone(), AtomicUsize::new(0));
        let server = Server::new(move |asked, client| {
            let request = Request::new(asked);
            let number = count.fetch_add(1, Ordering::Relaxed) + 1;
            let written = answer(&request).write(&request, number, client);
            flag.fetch_or(written.is_err(), Ordering::Relaxed);
            written
        });
        Self { server, hung_up }
    }

    /// Returns its address, without a path.
    pub fn url(&self) -> String {
        self.server.url("")
    }

    /// Returns a connection to it, with a key.
    pub fn connection(&self, provider: ModelProvider) -> ModelConnection {
        ModelConnection {
            base_url: Some(self.url()),
            key: Some(ApiKey::new(KEY)),
            ..ModelConnection::new(provider, "test-model")
        }
    }

    pub fn model(&self, provider: ModelProvider) -> Arc<dyn Model> {
        model(self.connection(provider)).unwrap()
    }

    pub fn openai(&self) -> Arc<dyn Model> {
        self.model(ModelProvider::OpenAi)
    }

    pub fn responses(&self) -> Arc<dyn Model> {
        self.model(ModelProvider::Responses)
    }

    pub fn anthropic(&self) -> Arc<dyn Model> {
        self.model(ModelProvider::Anthropic)
    }

    pub fn gemini(&self) -> Arc<dyn Model> {
        self.model(ModelProvider::Gemini)
    }

    /// Returns its requests, the last at the end.
    pub fn requests(&self) -> Vec<Request> {
        self.server.asked().iter().map(Request::new).collect()
    }

    /// Returns the body of the last request.
    pub fn last(&self) -> Json {
        Request::new(&self.server.last()).body
    }

    /// Waits until a client has hung up before the end.
    pub fn until_hung_up(&self) {
        until("the client has hung up", || self.hung_up.load(Ordering::Relaxed));
    }

    /// Waits until there have been this many requests.
    pub fn until_asked(&self, times: usize) {
        until("the model is asked", || self.requests().len() >= times);
    }
}

impl Request {
    fn new(asked: &Asked) -> Self {
        let path = asked.line.trim_start_matches("POST ").to_owned();
        let body = serde_json::from_str(&asked.body).unwrap_or_default();
        Self { path, body, asked: asked.clone() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.asked.header(name)
    }

    fn format(&self) -> Option<Format> {
        let path = self.path.split('?').next().unwrap_or_default();
        FORMATS.iter().find(|it| path.ends_with(it.0)).map(|it| it.1)
    }

    fn wants_stream(&self) -> bool {
        self.body["stream"] == true || self.path.ends_with(":streamGenerateContent?alt=sse")
    }
}

impl Answer {
    fn new(content: Content) -> Self {
        Self { content, end: End::Well, headers: String::new(), piece: 64, pause: Duration::ZERO }
    }

    /// Answers with a text.
    pub fn text(text: &str) -> Self {
        Self::new(Content::Reply(Reply { text: text.to_owned(), ..Reply::default() }))
    }

    /// Calls tools, all at once.
    pub fn calls<'t>(calls: impl IntoIterator<Item = (&'t str, Json)>) -> Self {
        Self::calls_as_written(calls.into_iter().map(|(name, input)| (name, input.to_string())))
    }

    /// Calls tools with arguments that need not be JSON. Only chat completions and Responses can
    /// express that.
    pub fn calls_as_written<'t>(calls: impl IntoIterator<Item = (&'t str, String)>) -> Self {
        let calls = calls.into_iter().map(|(name, input)| (name.to_owned(), input)).collect();
        Self::new(Content::Reply(Reply { calls, ..Reply::default() }))
    }

    /// Fails with a status, and a body in the format of each provider.
    pub fn status(status: u16) -> Self {
        Self::new(Content::Status(status, None))
    }

    /// Fails because the prompt is longer than this many tokens.
    pub fn too_long(window: usize) -> Self {
        Self::new(Content::TooLong(window))
    }

    /// Sends nothing, and does not hang up.
    pub fn hang() -> Self {
        Self::bytes("").then(End::Hang)
    }

    /// Sends these bytes, which need not be HTTP.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(Content::Bytes(bytes.into()))
    }

    /// Adds a text before the calls.
    pub fn saying(self, text: &str) -> Self {
        self.with(|it| text.clone_into(&mut it.text))
    }

    /// Adds reasoning before that.
    pub fn thinking(self, thought: &str) -> Self {
        self.with(|it| thought.clone_into(&mut it.thought))
    }

    /// Ends because of the output limit.
    pub fn cut_short(self) -> Self {
        self.with(|it| it.is_cut_short = true)
    }

    /// Ends because of the provider's content filter.
    pub fn held_back(self) -> Self {
        self.with(|it| it.is_held_back = true)
    }

    /// Closes the connection before the end.
    pub fn then_cut(self) -> Self {
        self.then(End::Cut)
    }

    /// Sends nothing more, and does not hang up.
    pub fn then_hang(self) -> Self {
        self.then(End::Hang)
    }

    /// Continues with keep-alives, for as long as the client reads.
    pub fn then_drip(self) -> Self {
        self.then(End::Drip)
    }

    /// Reports an error in the middle of the stream.
    pub fn then_error(self) -> Self {
        self.then(End::Error)
    }

    /// Sends something that is not JSON.
    pub fn then_garbage(self) -> Self {
        self.then(End::Garbage)
    }

    /// Continues with an endless line.
    pub fn then_flood(self) -> Self {
        self.then(End::Flood)
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers += &format!("{name}: {value}\r\n");
        self
    }

    /// Sets the body of a failure.
    pub fn body(mut self, text: &str) -> Self {
        if let Content::Status(_, body) = &mut self.content {
            *body = Some(text.to_owned());
        }
        self
    }

    /// Sends pieces of this many bytes; the default is 64.
    pub fn in_pieces(self, piece: usize) -> Self {
        Self { piece, ..self }
    }

    /// Waits before each piece.
    pub fn slowly(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    fn then(self, end: End) -> Self {
        Self { end, ..self }
    }

    fn with(mut self, change: impl FnOnce(&mut Reply)) -> Self {
        if let Content::Reply(reply) = &mut self.content {
            change(reply);
        }
        self
    }

    fn write(&self, request: &Request, number: usize, client: &mut dyn Write) -> io::Result<()> {
        let Some(format) = request.format() else {
            return self.write_whole(404, &format!("no {}", request.path), client);
        };
        match &self.content {
            Content::Reply(reply) if request.wants_stream() => {
                let mut events = format.events(reply, number);
                if self.end != End::Well {
                    // All but the final event.
                    events.retain(|it| !is_last(it));
                }
                self.write_stream(format, &events.concat(), client)
            }
            Content::Reply(reply) => {
                let whole = format.whole(reply, number).to_string();
                let whole = if self.end == End::Garbage { halves(&whole).0 } else { &whole };
                self.write_whole(200, whole, client)
            }
            Content::Status(status, body) => {
                let body = body.clone().unwrap_or_else(|| format.error(*status).to_string());
                self.write_whole(*status, &body, client)
            }
            Content::TooLong(window) => {
                self.write_whole(400, &format.too_long(*window).to_string(), client)
            }
            Content::Bytes(bytes) => {
                client.write_all(bytes)?;
                self.write_end(format, client)
            }
        }
    }

    fn write_whole(&self, status: u16, body: &str, client: &mut dyn Write) -> io::Result<()> {
        // A cut body is shorter than promised.
        let length = body.len() + usize::from(self.end == End::Cut);
        let json = "application/json";
        write!(
            client,
            "HTTP/1.1 {status} X\r\ncontent-type: {json}\r\ncontent-length: {length}\r\n"
        )?;
        write!(client, "connection: close\r\n{}\r\n{body}", self.headers)
    }

    fn write_stream(&self, format: Format, text: &str, client: &mut dyn Write) -> io::Result<()> {
        write!(client, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n")?;
        write!(client, "transfer-encoding: chunked\r\n{}\r\n", self.headers)?;
        for piece in text.as_bytes().chunks(self.piece) {
            thread::sleep(self.pause);
            write_chunk(client, piece)?;
        }
        self.write_end(format, client)
    }

    fn write_end(&self, format: Format, client: &mut dyn Write) -> io::Result<()> {
        match self.end {
            End::Well => return client.write_all(b"0\r\n\r\n"),
            End::Cut => return Ok(()),
            End::Hang => {
                client.flush()?;
                thread::sleep(LONG);
                return Ok(());
            }
            End::Drip => loop {
                write_chunk(client, b": still here\n\n")?;
                thread::sleep(Duration::from_millis(10));
            },
            End::Flood => {
                write_chunk(client, b"data: ")?;
                loop {
                    write_chunk(client, &[b'x'; 64 * 1024])?;
                }
            }
            End::Error => write_chunk(client, format.error_event().as_bytes())?,
            End::Garbage => write_chunk(client, b"data: {\"choices\": [{\n\n")?,
        }
        client.write_all(b"0\r\n\r\n")
    }
}

fn write_chunk(client: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    write!(client, "{:x}\r\n", bytes.len())?;
    client.write_all(bytes)?;
    client.write_all(b"\r\n")?;
    client.flush()
}

/// Returns whether an event is the final one.
fn is_last(event: &str) -> bool {
    let signs = [
        "[DONE]",
        "finish_reason\":\"",
        "message_stop",
        "stop_reason\":\"",
        "finishReason",
        "response.completed",
        "response.incomplete",
    ];
    signs.iter().any(|it| event.contains(it))
}

fn data(json: Json) -> String {
    format!("data: {json}\n\n")
}

/// Formats an event with its kind as name.
fn named(json: Json) -> String {
    format!("event: {}\ndata: {json}\n\n", json["type"].as_str().unwrap())
}

/// Splits a text in two, at a word.
fn halves(text: &str) -> (&str, &str) {
    text.split_at(text.floor_char_boundary(text.len() / 2))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

impl Format {
    /// Returns a reply as a stream of events.
    fn events(self, reply: &Reply, number: usize) -> Vec<String> {
        match self {
            Self::Chat => chat_events(reply, number),
            Self::Responses => responses_events(reply, number),
            Self::Messages => messages_events(reply, number),
            Self::Gemini => gemini_events(reply),
        }
    }

    /// Returns a reply as one document.
    fn whole(self, reply: &Reply, number: usize) -> Json {
        match self {
            Self::Chat => chat_whole(reply, number),
            Self::Responses => responses_whole(reply, number),
            Self::Messages => messages_whole(reply, number),
            Self::Gemini => gemini_chunk(gemini_parts(reply), Some(gemini_reason(reply))),
        }
    }

    /// Returns the body of a failure.
    fn error(self, status: u16) -> Json {
        let (openai, anthropic, gemini) = match status {
            400 => ("invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT"),
            401 => ("invalid_api_key", "authentication_error", "UNAUTHENTICATED"),
            403 => ("permission_denied", "permission_error", "PERMISSION_DENIED"),
            404 => ("model_not_found", "not_found_error", "NOT_FOUND"),
            429 => ("rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"),
            529 => ("server_error", "overloaded_error", "UNAVAILABLE"),
            _ => ("server_error", "api_error", "INTERNAL"),
        };
        let message = format!("it says {status}");
        match self {
            Self::Chat | Self::Responses => {
                json!({"error": {"message": message, "type": openai, "param": null, "code": openai}})
            }
            Self::Messages => {
                json!({"type": "error", "error": {"type": anthropic, "message": message}, "request_id": "req_1"})
            }
            Self::Gemini => {
                json!({"error": {"code": status, "message": message, "status": gemini}})
            }
        }
    }

    fn too_long(self, window: usize) -> Json {
        let more = window + 1000;
        match self {
            Self::Chat | Self::Responses => json!({"error": {
                "message": format!("This model's maximum context length is {window} tokens. However, your messages resulted in {more} tokens."),
                "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded",
            }}),
            Self::Messages => json!({"type": "error", "error": {
                "type": "invalid_request_error",
                "message": format!("prompt is too long: {more} tokens > {window} maximum"),
            }}),
            Self::Gemini => json!({"error": {
                "code": 400,
                "message": format!("The input token count ({more}) exceeds the maximum number of tokens allowed ({window})."),
                "status": "INVALID_ARGUMENT",
            }}),
        }
    }

    fn error_event(self) -> String {
        match self {
            Self::Chat => data(self.error(500)),
            Self::Responses => named(json!({
                "type": "error", "code": "server_error", "message": "it says 500", "param": null, "sequence_number": 9,
            })),
            Self::Messages => named(self.error(529)),
            Self::Gemini => data(self.error(503)),
        }
    }
}

fn chat_reason(reply: &Reply) -> &'static str {
    match reply {
        Reply { is_held_back: true, .. } => "content_filter",
        Reply { is_cut_short: true, .. } => "length",
        Reply { calls, .. } if calls.is_empty() => "stop",
        _ => "tool_calls",
    }
}

fn chat_usage() -> Json {
    let [input, output, cached] = SPENT;
    json!({
        "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        "prompt_tokens_details": {"cached_tokens": cached},
    })
}

fn chat_events(reply: &Reply, number: usize) -> Vec<String> {
    let delta = |delta: Json| {
        chat_chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), Json::Null)
    };
    let mut events = vec![delta(json!({"role": "assistant", "content": ""}))];
    events.extend(words(&reply.thought).map(|it| delta(json!({"reasoning_content": it}))));
    events.extend(words(&reply.text).map(|it| delta(json!({"content": it}))));
    for (index, (name, input)) in reply.calls.iter().enumerate() {
        events.push(delta(json!({"tool_calls": [{
            "index": index, "id": format!("call_{number}_{index}"), "type": "function",
            "function": {"name": name, "arguments": ""},
        }]})));
        let (left, right) = halves(input);
        events.extend([left, right].map(|it| {
            delta(json!({"tool_calls": [{"index": index, "function": {"arguments": it}}]}))
        }));
    }
    let end = json!([{"index": 0, "delta": {}, "finish_reason": chat_reason(reply)}]);
    events.push(chat_chunk(end, Json::Null));
    events.push(chat_chunk(json!([]), chat_usage()));
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn chat_chunk(choices: Json, usage: Json) -> String {
    data(json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "test-model",
        "choices": choices, "usage": usage,
    }))
}

fn chat_whole(reply: &Reply, number: usize) -> Json {
    let calls: Vec<Json> = reply
        .calls
        .iter()
        .enumerate()
        .map(|(index, (name, input)): (usize, &(String, String))| {
            json!({
                "id": format!("call_{number}_{index}"), "type": "function",
                "function": {"name": name, "arguments": input},
            })
        })
        .collect();
    let mut message = json!({"role": "assistant", "content": reply.text, "refusal": null});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "test-model",
        "choices": [{"index": 0, "message": message, "finish_reason": chat_reason(reply)}],
        "usage": chat_usage(),
    })
}

/// Returns the items of a reply, in order.
fn responses_items(reply: &Reply, number: usize) -> Vec<Json> {
    let mut items = Vec::new();
    if !reply.thought.is_empty() {
        items.push(json!({
            "id": format!("rs_{number}"), "type": "reasoning", "status": "completed",
            "summary": [{"type": "summary_text", "text": reply.thought}],
            "encrypted_content": format!("secret-{number}"),
        }));
    }
    if !reply.text.is_empty() {
        items.push(json!({
            "id": format!("msg_{number}"), "type": "message", "role": "assistant", "status": "completed",
            "phase": "commentary",
            "content": [{"type": "output_text", "text": reply.text, "annotations": []}],
        }));
    }
    for (index, (name, input)) in reply.calls.iter().enumerate() {
        items.push(json!({
            "id": format!("fc_{number}_{index}"), "type": "function_call", "status": "completed",
            "call_id": format!("call_{number}_{index}"), "name": name, "arguments": input,
        }));
    }
    items
}

fn responses_whole(reply: &Reply, number: usize) -> Json {
    let [input, output, cached] = SPENT;
    let reason = match reply {
        Reply { is_held_back: true, .. } => json!({"reason": "content_filter"}),
        Reply { is_cut_short: true, .. } => json!({"reason": "max_output_tokens"}),
        _ => Json::Null,
    };
    json!({
        "id": format!("resp_{number}"), "object": "response", "model": "test-model", "error": null,
        "status": if reason.is_null() { "completed" } else { "incomplete" },
        "incomplete_details": reason,
        "output": responses_items(reply, number),
        "usage": {
            "input_tokens": input, "input_tokens_details": {"cached_tokens": cached},
            "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": input + output,
        },
    })
}

fn responses_events(reply: &Reply, number: usize) -> Vec<String> {
    let begun = json!({"id": format!("resp_{number}"), "object": "response", "status": "in_progress", "output": []});
    let mut events = vec![
        json!({"type": "response.created", "response": begun}),
        json!({"type": "response.in_progress", "response": begun}),
    ];
    for (index, item) in responses_items(reply, number).into_iter().enumerate() {
        let mut added = item.clone();
        added["status"] = "in_progress".into();
        let (kind, text) = match item["type"].as_str().unwrap() {
            "reasoning" => {
                added["summary"] = json!([]);
                added["encrypted_content"] = "not yet".into();
                ("response.reasoning_summary_text.delta", reply.thought.as_str())
            }
            "message" => {
                added["content"] = json!([]);
                ("response.output_text.delta", reply.text.as_str())
            }
            _ => {
                added["arguments"] = "".into();
                let input = item["arguments"].as_str().unwrap();
                ("response.function_call_arguments.delta", input)
            }
        };
        events.push(
            json!({"type": "response.output_item.added", "output_index": index, "item": added}),
        );
        events.extend(words(text).map(
            |it| json!({"type": kind, "item_id": item["id"], "output_index": index, "delta": it}),
        ));
        events.push(
            json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        );
    }
    let whole = responses_whole(reply, number);
    let kind = format!("response.{}", whole["status"].as_str().unwrap());
    events.push(json!({"type": kind, "response": whole}));
    events
        .into_iter()
        .enumerate()
        .map(|(number, mut event): (usize, Json)| {
            event["sequence_number"] = number.into();
            named(event)
        })
        .collect()
}

/// Returns the blocks of a reply, in order.
fn messages_blocks(reply: &Reply, number: usize) -> Vec<Json> {
    let mut blocks = Vec::new();
    if !reply.thought.is_empty() {
        blocks.push(json!({
            "type": "thinking", "thinking": reply.thought, "signature": format!("signed-{number}"),
        }));
    }
    if !reply.text.is_empty() {
        blocks.push(json!({"type": "text", "text": reply.text}));
    }
    for (index, (name, input)) in reply.calls.iter().enumerate() {
        let input: Json = serde_json::from_str(input).unwrap_or_default();
        blocks.push(json!({
            "type": "tool_use", "id": format!("toolu_{number}_{index}"), "name": name, "input": input,
        }));
    }
    blocks
}

fn messages_reason(reply: &Reply) -> &'static str {
    match reply {
        Reply { is_held_back: true, .. } => "refusal",
        Reply { is_cut_short: true, .. } => "max_tokens",
        Reply { calls, .. } if calls.is_empty() => "end_turn",
        _ => "tool_use",
    }
}

/// Returns the usage, without cached tokens.
fn messages_usage(output: u64) -> Json {
    let [input, _, cached] = SPENT;
    json!({
        "input_tokens": input - cached - 2, "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 2, "output_tokens": output,
    })
}

fn messages_whole(reply: &Reply, number: usize) -> Json {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "test-model",
        "content": messages_blocks(reply, number),
        "stop_reason": messages_reason(reply), "stop_sequence": null, "usage": messages_usage(SPENT[1]),
    })
}

fn messages_events(reply: &Reply, number: usize) -> Vec<String> {
    let begun = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "test-model", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": messages_usage(1),
    });
    let mut events =
        vec![json!({"type": "message_start", "message": begun}), json!({"type": "ping"})];
    for (index, block) in messages_blocks(reply, number).into_iter().enumerate() {
        let mut empty = block.clone();
        let mut deltas = Vec::new();
        match block["type"].as_str().unwrap() {
            "thinking" => {
                (empty["thinking"], empty["signature"]) = ("".into(), "".into());
                deltas.extend(
                    words(&reply.thought)
                        .map(|it| json!({"type": "thinking_delta", "thinking": it})),
                );
                deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
            }
            "text" => {
                empty["text"] = "".into();
                deltas
                    .extend(words(&reply.text).map(|it| json!({"type": "text_delta", "text": it})));
            }
            _ => {
                empty["input"] = json!({});
                let input = block["input"].to_string();
                let (left, right) = halves(&input);
                let pieces = ["", left, right];
                deltas.extend(
                    pieces.map(|it| json!({"type": "input_json_delta", "partial_json": it})),
                );
            }
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": empty}));
        events.extend(
            deltas
                .into_iter()
                .map(|it| json!({"type": "content_block_delta", "index": index, "delta": it})),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": messages_reason(reply), "stop_sequence": null},
        "usage": {"output_tokens": SPENT[1]},
    }));
    events.push(json!({"type": "message_stop"}));
    events.into_iter().map(named).collect()
}

/// Returns the parts of a reply: the first call is signed.
fn gemini_parts(reply: &Reply) -> Vec<Json> {
    let mut parts = Vec::new();
    if !reply.thought.is_empty() {
        parts.push(json!({"text": reply.thought, "thought": true}));
    }
    parts.extend(words(&reply.text).map(|it| json!({"text": it})));
    for (index, (name, input)) in reply.calls.iter().enumerate() {
        let input: Json = serde_json::from_str(input).unwrap_or_default();
        let mut part = json!({"functionCall": {"name": name, "args": input}});
        if index == 0 {
            part["thoughtSignature"] = "c2lnbmVk".into();
        }
        parts.push(part);
    }
    parts
}

fn gemini_reason(reply: &Reply) -> &'static str {
    match reply {
        Reply { is_held_back: true, .. } => "SAFETY",
        Reply { is_cut_short: true, .. } => "MAX_TOKENS",
        _ => "STOP",
    }
}

fn gemini_chunk(parts: Vec<Json>, reason: Option<&str>) -> Json {
    let [input, output, cached] = SPENT;
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if let Some(reason) = reason {
        candidate["finishReason"] = reason.into();
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": input, "cachedContentTokenCount": cached,
            "candidatesTokenCount": output - 3, "thoughtsTokenCount": 3, "totalTokenCount": input + output,
        },
        "modelVersion": "test-model",
    })
}

fn gemini_events(reply: &Reply) -> Vec<String> {
    let mut events: Vec<Json> =
        gemini_parts(reply).into_iter().map(|it| gemini_chunk(vec![it], None)).collect();
    events.push(gemini_chunk(vec![json!({"text": ""})], Some(gemini_reason(reply))));
    events.into_iter().map(|it| format!("data: {it}\r\n\r\n")).collect()
}
