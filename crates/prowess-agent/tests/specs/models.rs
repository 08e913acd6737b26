//! Requests to models, and their replies.

use std::{
    net::TcpListener,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use prowess::{Call, Message, Role};
use prowess_agent::{
    Agent, ApiKey, ChatRequest, ChatResponse, ConnectionError, Delta, Model, ModelConnection,
    ModelError, ModelProvider, Session, StopReason, TokenUsage, ToolDefinition, ToolLoop, model,
};
use prowess_http::{ClientRequest, HttpClient, HttpError, Timeouts};
use prowess_runtime::{
    Authorizer, DenyAll, Policy, Toolbox, files::Journal, skill::ActiveSkills, tools::UseSkill,
};
use prowess_testing::tools::dropped_when;
use serde_json::{Value as Json, json};

use crate::{
    model_server::{Answer, KEY, ModelServer, SPENT},
    server::{Names, Server, answer, redirect},
    world::World,
};

/// Runs a future to its end.
fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(future)
}

/// Sends a request, and returns the streamed pieces and the reply.
fn hear(model: &dyn Model, ask: &ChatRequest) -> (Vec<String>, Result<ChatResponse, ModelError>) {
    let heard = Mutex::new(Vec::new());
    let reply = wait(model.reply(ask, &|delta| {
        heard.lock().unwrap().push(match delta {
            Delta::Text(text) => format!("says {text}"),
            Delta::Thought(text) => format!("thinks {text}"),
            Delta::Call(tool) => format!("calls {tool}"),
            other => panic!("{other:?}"),
        });
    }));
    (heard.into_inner().unwrap(), reply)
}

fn reply(model: &dyn Model, ask: &ChatRequest) -> ChatResponse {
    hear(model, ask).1.unwrap()
}

fn error(model: &dyn Model, ask: &ChatRequest) -> ModelError {
    hear(model, ask).1.unwrap_err()
}

/// Returns the error of each provider for one answer.
fn errors(answer: &Answer) -> Vec<(ModelProvider, ModelError)> {
    let error = |provider| {
        let server = ModelServer::start([answer.clone()]);
        (provider, error(&*server.model(provider), &question()))
    };
    ModelProvider::ALL.map(error).into()
}

fn question() -> ChatRequest {
    ChatRequest {
        messages: vec![
            Message::new(Role::System, "Be brief."),
            Message::new(Role::User, "How warm is it in Oslo and Rome?"),
        ],
        ..ChatRequest::default()
    }
}

/// Returns a question, with a tool to answer it.
fn question_with_tool() -> ChatRequest {
    let input_schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": false,
    });
    let tool = ToolDefinition::new("weather", "Tells the weather", input_schema);
    ChatRequest { tools: vec![tool], ..question() }
}

/// Returns an answer with reasoning, text, and two tool calls.
fn calling() -> Answer {
    Answer::calls([("weather", json!({"city": "Oslo"})), ("weather", json!({"city": "Rome"}))])
        .saying("Let me look. ")
        .thinking("two cities")
}

/// Adds a reply and the results of its calls to a request.
fn answered(mut ask: ChatRequest, reply: ChatResponse) -> ChatRequest {
    let calls = reply.message.calls.clone();
    ask.messages.push(reply.message);
    let results = calls.iter().zip(["4 °C", "21 °C"]).map(|(call, result)| Message {
        call_id: Some(call.id.clone()),
        ..Message::new(Role::Tool, result)
    });
    ask.messages.extend(results);
    ask
}

/// Sends a request, answers the calls, and sends the next: returns the server and both replies.
fn round(provider: ModelProvider) -> (ModelServer, ChatResponse, ChatResponse) {
    let server = ModelServer::start([calling(), Answer::text("4 and 21 degrees.")]);
    let model = server.model(provider);
    let first = reply(&*model, &question_with_tool());
    assert_eq!(first.stop, StopReason::Calls);
    assert_eq!(first.message.content, "Let me look. ");
    let second = reply(&*model, &answered(question_with_tool(), first.clone()));
    assert_eq!((&*second.message.content, second.stop), ("4 and 21 degrees.", StopReason::Done));
    (server, first, second)
}

/// Returns the name and the input of each call.
fn called(reply: &ChatResponse) -> Vec<(&str, Json)> {
    let called = |it: &'_ Call| serde_json::from_str(&it.arguments).unwrap();
    reply.message.calls.iter().map(|it| (&*it.name, called(it))).collect()
}

fn schema() -> Json {
    json!({
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": false,
    })
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

mod each_provider_is_asked_in_its_own_words {
    use super::*;

    #[test]
    fn chat_completions_are_asked_as_openai_documents_them() {
        let (server, first, _) = round(ModelProvider::OpenAi);
        let [one, two] = &server.requests()[..] else { panic!("it was asked twice") };
        assert_eq!(one.path, "/v1/chat/completions");
        assert_eq!(one.header("authorization"), Some(&*format!("bearer {KEY}")));
        assert_eq!(one.header("content-type"), Some("application/json"));
        let tools = json!([{"type": "function", "function": {
            "name": "weather", "description": "Tells the weather", "parameters": schema(),
        }}]);
        let system = json!({"role": "system", "content": "Be brief."});
        let user = json!({"role": "user", "content": "How warm is it in Oslo and Rome?"});
        assert_eq!(
            one.body,
            json!({
                "model": "test-model",
                "messages": [system, user],
                "tools": tools,
                "stream": true,
                "stream_options": {"include_usage": true},
            })
        );
        assert_eq!(
            called(&first),
            [("weather", json!({"city": "Oslo"})), ("weather", json!({"city": "Rome"}))]
        );
        let call = |id, city| {
            json!({"id": id, "type": "function", "function": {
                "name": "weather", "arguments": json!({"city": city}).to_string(),
            }})
        };
        assert_eq!(
            two.body["messages"],
            json!([
                system,
                user,
                {
                    "role": "assistant",
                    "content": "Let me look. ",
                    "tool_calls": [call("call_1_0", "Oslo"), call("call_1_1", "Rome")],
                    "reasoning_content": "two cities",
                },
                {"role": "tool", "content": "4 °C", "tool_call_id": "call_1_0"},
                {"role": "tool", "content": "21 °C", "tool_call_id": "call_1_1"},
            ])
        );
        assert_eq!(two.body["tools"], tools);
    }

    #[test]
    fn responses_are_asked_as_openai_documents_them() {
        let (server, first, _) = round(ModelProvider::Responses);
        let [one, two] = &server.requests()[..] else { panic!("it was asked twice") };
        assert_eq!(one.path, "/v1/responses");
        assert_eq!(one.header("authorization"), Some(&*format!("bearer {KEY}")));
        let user = json!({"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "How warm is it in Oslo and Rome?"},
        ]});
        let mut body = json!({
            "model": "test-model",
            "input": [user],
            "store": false,
            "stream": true,
            "instructions": "Be brief.",
            "include": ["reasoning.encrypted_content"],
            "tools": [{
                "type": "function", "name": "weather", "description": "Tells the weather",
                "parameters": schema(), "strict": false,
            }],
        });
        assert_eq!(one.body, body);
        assert_eq!(first.message.calls[1].id, "call_1_1");
        let call = |index: usize, city| {
            json!({
                "type": "function_call",
                "call_id": format!("call_1_{index}"), "name": "weather",
                "arguments": json!({"city": city}).to_string(),
            })
        };
        body["input"] = json!([
            user,
            {
                "id": "rs_1", "type": "reasoning", "encrypted_content": "secret-1",
                "summary": [{"type": "summary_text", "text": "two cities"}],
            },
            {
                "type": "message", "role": "assistant", "phase": "commentary",
                "content": [{"type": "output_text", "text": "Let me look. ", "annotations": []}],
            },
            call(0, "Oslo"),
            call(1, "Rome"),
            {"type": "function_call_output", "call_id": "call_1_0", "output": "4 °C"},
            {"type": "function_call_output", "call_id": "call_1_1", "output": "21 °C"},
        ]);
        assert_eq!(two.body, body);
    }

    #[test]
    fn messages_are_asked_as_anthropic_documents_them() {
        let (server, _, _) = round(ModelProvider::Anthropic);
        let [one, two] = &server.requests()[..] else { panic!("it was asked twice") };
        assert_eq!(one.path, "/v1/messages");
        assert_eq!(one.header("x-api-key"), Some(KEY));
        assert_eq!(one.header("anthropic-version"), Some("2023-06-01"));
        assert_eq!(one.header("authorization"), None);
        let kept = json!({"type": "ephemeral"});
        let text = json!({"type": "text", "text": "How warm is it in Oslo and Rome?"});
        let mut last = text.clone();
        last["cache_control"] = kept.clone();
        let mut body = json!({
            "model": "test-model",
            "max_tokens": 32000,
            "system": [{"type": "text", "text": "Be brief.", "cache_control": kept}],
            "tools": [{
                "name": "weather", "description": "Tells the weather", "input_schema": schema(),
                "cache_control": kept,
            }],
            "messages": [{"role": "user", "content": [last]}],
            "stream": true,
        });
        assert_eq!(one.body, body);
        let call = |id, city| json!({"type": "tool_use", "id": id, "name": "weather", "input": {"city": city}});
        body["messages"] = json!([
            {"role": "user", "content": [text]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "two cities", "signature": "signed-1"},
                {"type": "text", "text": "Let me look. "},
                call("toolu_1_0", "Oslo"),
                call("toolu_1_1", "Rome"),
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1_0", "content": "4 °C"},
                {
                    "type": "tool_result", "tool_use_id": "toolu_1_1", "content": "21 °C",
                    "cache_control": kept,
                },
            ]},
        ]);
        assert_eq!(two.body, body);
    }

    #[test]
    fn gemini_is_asked_as_google_documents_it() {
        let (server, first, _) = round(ModelProvider::Gemini);
        let [one, two] = &server.requests()[..] else { panic!("it was asked twice") };
        assert_eq!(one.path, "/v1beta/models/test-model:streamGenerateContent?alt=sse");
        assert_eq!(one.header("x-goog-api-key"), Some(KEY));
        let user = json!({"role": "user", "parts": [{"text": "How warm is it in Oslo and Rome?"}]});
        let mut body = json!({
            "contents": [user],
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "tools": [{"functionDeclarations": [{
                "name": "weather",
                "description": "Tells the weather",
                "parameters": {
                    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
                },
            }]}],
        });
        assert_eq!(one.body, body);
        assert!(first.message.calls.iter().all(|it| it.id.is_empty()), "{first:?}");
        body["contents"] = json!([
            user,
            {"role": "model", "parts": [
                {"text": "Let me look. "},
                {"functionCall": {"name": "weather", "args": {"city": "Oslo"}}, "thoughtSignature": "c2lnbmVk"},
                {"functionCall": {"name": "weather", "args": {"city": "Rome"}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "weather", "response": {"output": "4 °C"}}},
                {"functionResponse": {"name": "weather", "response": {"output": "21 °C"}}},
            ]},
        ]);
        assert_eq!(two.body, body);
    }

    #[test]
    fn limit_and_temperature_are_asked_for_by_their_names() {
        let ask = ChatRequest { max_output: Some(100), temperature: Some(0.5), ..question() };
        let sent = |provider| {
            let server = ModelServer::start([Answer::text("ok")]);
            reply(&*server.model(provider), &ask);
            server.last()
        };
        let chat = sent(ModelProvider::OpenAi);
        assert_eq!((&chat["max_tokens"], &chat["temperature"]), (&json!(100), &json!(0.5)));
        let responses = sent(ModelProvider::Responses);
        assert_eq!(responses["max_output_tokens"], 100);
        assert_eq!(responses["temperature"], 0.5);
        let messages = sent(ModelProvider::Anthropic);
        assert_eq!((&messages["max_tokens"], &messages["temperature"]), (&json!(100), &json!(0.5)));
        let config = json!({"maxOutputTokens": 100, "temperature": 0.5});
        assert_eq!(sent(ModelProvider::Gemini)["generationConfig"], config);
    }

    #[test]
    fn roles_alternate_where_they_have_to() {
        let mut ask = question();
        ask.messages.insert(1, Message::new(Role::Assistant, "Hello."));
        ask.messages.insert(2, Message::new(Role::User, "  "));
        ask.messages.push(Message::new(Role::User, "And in Paris?"));
        ask.messages.push(Message::new(Role::System, "Answer in Celsius."));
        let sent = |provider| {
            let server = ModelServer::start([Answer::text("ok")]);
            reply(&*server.model(provider), &ask);
            server.last()
        };
        let anthropic = sent(ModelProvider::Anthropic);
        let roles = |it: &Json| -> Vec<Json> {
            it.as_array().unwrap().iter().map(|it| it["role"].clone()).collect()
        };
        assert_eq!(roles(&anthropic["messages"]), ["user", "assistant", "user"]);
        let texts = &anthropic["messages"][2]["content"];
        assert_eq!(texts.as_array().unwrap().len(), 3, "{texts}");
        assert_eq!(texts[2]["text"], "Answer in Celsius.");
        assert_eq!(roles(&sent(ModelProvider::Gemini)["contents"]), ["user", "model", "user"]);
        let input = &sent(ModelProvider::Responses)["input"];
        assert_eq!(roles(input), ["assistant", "user", "user", "user", "developer"]);
    }

    #[test]
    fn an_image_is_told_to_everybody() {
        let mut ask = question();
        ask.messages[1].parts = vec![
            json!({"type": "text", "text": "What is this?"}),
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}),
        ];
        let sent = |provider| {
            let server = ModelServer::start([Answer::text("ok")]);
            reply(&*server.model(provider), &ask);
            server.last()
        };
        assert_eq!(
            sent(ModelProvider::OpenAi)["messages"][1]["content"],
            json!(ask.messages[1].parts)
        );
        let image = json!({"type": "input_image", "image_url": "data:image/png;base64,AAAA"});
        assert_eq!(sent(ModelProvider::Responses)["input"][0]["content"][1], image);
        let source = json!({"type": "base64", "media_type": "image/png", "data": "AAAA"});
        assert_eq!(sent(ModelProvider::Anthropic)["messages"][0]["content"][1]["source"], source);
        let inline = json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}});
        assert_eq!(sent(ModelProvider::Gemini)["contents"][0]["parts"][1], inline);
    }

    #[test]
    fn a_result_that_is_bad_is_marked_where_a_provider_knows_of_that() {
        let world = World::new().skill("notes", "Takes notes");
        let library: Arc<dyn prowess_runtime::SkillProvider> = Arc::new(Arc::new(world.load()));
        let authorizer = Authorizer::new(Policy::default(), Arc::new(DenyAll));
        let tool = UseSkill { active: Arc::new(ActiveSkills::new(library)) };
        let toolbox = Arc::new(Toolbox::new(Arc::new(authorizer)).with(Arc::new(tool)));
        for provider in ModelProvider::ALL {
            let calls = [("use_skill", json!({"name": "notes"})), ("nothing", json!({}))];
            let answers = [Answer::calls(calls), Answer::text("one"), Answer::text("two")];
            let server = ModelServer::start(answers);
            let agent = Agent::new(server.model(provider)).with(ToolLoop::new(toolbox.clone()));
            let path = world.path(format!("{provider:?}.jsonl"));
            for prompt in ["x", "y"] {
                let journal = Journal::open(&path).unwrap();
                wait(agent.ask(&Session::open("s", journal).unwrap(), prompt)).unwrap();
            }
            for request in &server.requests()[1..] {
                let text = request.body.to_string();
                assert!(text.contains("there is no tool `nothing`"), "{text}");
                assert_eq!(
                    text.contains("is_error"),
                    provider == ModelProvider::Anthropic,
                    "{text}"
                );
                if provider == ModelProvider::Anthropic {
                    let results = request.body["messages"][2]["content"].as_array().unwrap();
                    assert_eq!(results[0].get("is_error"), None, "{results:?}");
                    assert_eq!(results[1]["is_error"], true, "{results:?}");
                }
            }
        }
    }

    #[test]
    fn gemini_is_told_as_much_of_a_schema_as_it_takes() {
        let sent = |schema: Json| {
            let mut ask = question_with_tool();
            ask.tools[0].input_schema = schema;
            let server = ModelServer::start([Answer::text("ok")]);
            reply(&*server.gemini(), &ask);
            server.last()["tools"][0]["functionDeclarations"][0]["parameters"].clone()
        };
        let whole = json!({
            "type": "object",
            "$defs": {"place": {"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": false}},
            "properties": {
                "at": {"$ref": "#/$defs/place"},
                "unit": {"anyOf": [{"const": "c"}, {"type": "null"}], "default": null},
                "kind": {"enum": ["a", "b"]},
                "number": {"type": ["integer", "null"], "minimum": 0, "exclusiveMaximum": 9, "format": "uint"},
                "level": {"type": "integer", "enum": [1, 2]},
                "when": {"type": "string", "format": "date-time"},
                "either": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "number"}}]},
                "free": {"type": "object"},
                "many": {"type": "array"},
            },
            "required": ["at", "gone"],
        });
        assert_eq!(
            sent(whole),
            json!({
                "type": "object",
                "properties": {
                    "at": {"type": "object", "properties": {"name": {"type": "string"}}},
                    "unit": {"nullable": true, "type": "string", "enum": ["c"]},
                    "kind": {"type": "string", "enum": ["a", "b"]},
                    "number": {"minimum": 0, "nullable": true, "type": "integer"},
                    "level": {"type": "integer"},
                    "when": {"type": "string", "format": "date-time"},
                    "either": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "number"}}]},
                    "free": {"type": "object"},
                    "many": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["at"],
            })
        );
        assert_eq!(sent(json!({"type": "object"})), Json::Null);
        assert_eq!(sent(json!(true)), Json::Null);
        // A schema that refers to itself, twice, is expanded only so far.
        let endless = json!({
            "type": "object",
            "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}},
        });
        assert!(sent(endless).to_string().len() < 1_000_000);
    }

    #[test]
    fn a_name_that_a_model_made_up_goes_back_as_one_that_is_taken() {
        let long = "ä".repeat(100);
        let made_up = ["functions.weather", "a\u{1b}[2J", "", &long, "weather"];
        let mut ask = question_with_tool();
        for (id, name) in (1..).zip(made_up) {
            let (id, name, arguments) = (format!("c{id}"), name.to_owned(), "{}".to_owned());
            let call = Call { id: id.clone(), name, arguments, ..Call::default() };
            let calling = Message { calls: vec![call], ..Message::new(Role::Assistant, "") };
            let result = Message { call_id: Some(id), ..Message::new(Role::Tool, "none") };
            ask.messages.extend([calling, result]);
        }
        for provider in ModelProvider::ALL {
            let server = ModelServer::start([Answer::text("Well.")]);
            reply(&*server.model(provider), &ask);
            let mut body = server.last();
            body["tools"].take();
            let named = |name: &str| body.to_string().contains(&format!("\"name\":\"{name}\""));
            for name in ["functions_weather", "a__2J", "unknown", &"_".repeat(64), "weather"] {
                assert!(named(name), "{provider:?} is not told of {name}: {body}");
            }
            for name in ["functions.weather", "", &long] {
                assert!(!named(name), "{provider:?} does not take {name:?}: {body}");
            }
        }
    }
}

mod a_reply_is_heard_as_it_comes {
    use super::*;

    #[test]
    fn thoughts_text_and_calls_are_heard_in_order() {
        for provider in ModelProvider::ALL {
            let server = ModelServer::start([calling()]);
            let (heard, reply) = hear(&*server.model(provider), &question_with_tool());
            assert_eq!(called(&reply.unwrap()).len(), 2);
            let thought: String =
                heard.iter().filter_map(|it| it.strip_prefix("thinks ")).collect();
            assert_eq!(thought, "two cities", "{provider:?}");
            let rest: Vec<&String> = heard.iter().filter(|it| !it.starts_with("thinks")).collect();
            assert_eq!(
                rest,
                ["says Let ", "says me ", "says look. ", "calls weather", "calls weather"],
                "{provider:?}"
            );
            assert!(heard[0].starts_with("thinks"), "{heard:?}");
        }
    }

    #[test]
    fn a_reply_is_the_same_wherever_the_stream_is_cut() {
        let answer = Answer::calls([("weather", json!({"city": "Tromsø 😀 東京"}))])
            .saying("Grüße 😀 \"quoted\" \\ \n東京 ");
        for provider in ModelProvider::ALL {
            let told = |piece: usize| {
                let server = ModelServer::start([answer.clone().in_pieces(piece)]);
                reply(&*server.model(provider), &question_with_tool())
            };
            let whole = told(usize::MAX);
            assert_eq!(whole.message.content, "Grüße 😀 \"quoted\" \\ \n東京 ");
            assert_eq!(called(&whole), [("weather", json!({"city": "Tromsø 😀 東京"}))]);
            for piece in [1, 2, 3, 7] {
                assert_eq!(told(piece), whole, "{provider:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn a_reply_comes_while_the_rest_is_still_to_come() {
        let server = ModelServer::start([Answer::text("one two").then_drip()]);
        let model = server.openai();
        let heard = Mutex::new(None);
        let (tell, told) = tokio::sync::oneshot::channel();
        *heard.lock().unwrap() = Some(tell);
        wait(async {
            let ask = question();
            let hear = |delta: Delta<'_>| {
                if let Some(tell) = heard.lock().unwrap().take() {
                    tell.send(format!("{delta:?}")).unwrap();
                }
            };
            tokio::select! {
                reply = model.reply(&ask, &hear) => panic!("{reply:?}"),
                told = told => assert_eq!(told.unwrap(), "Text(\"one \")"),
            }
        });
    }

    #[test]
    fn without_a_stream_the_reply_is_the_same() {
        for provider in ModelProvider::ALL {
            let server = ModelServer::start([calling(), calling()]);
            let streamed = reply(&*server.model(provider), &question_with_tool());
            let connection = ModelConnection { stream: false, ..server.connection(provider) };
            let (heard, whole) = hear(&*model(connection).unwrap(), &question_with_tool());
            let whole = whole.unwrap();
            assert_eq!(called(&whole), called(&streamed), "{provider:?}");
            assert_eq!(whole.message.content, streamed.message.content);
            assert_eq!((whole.stop, whole.spent), (streamed.stop, streamed.spent));
            assert_eq!(heard.last().unwrap(), "calls weather");
            let last = server.requests().pop().unwrap();
            assert_ne!(last.body["stream"], true);
            assert!(!last.path.contains("stream"), "{}", last.path);
        }
    }

    #[test]
    fn a_server_that_does_not_stream_is_understood() {
        let body =
            json!({"choices": [{"message": {"content": "all at once"}, "finish_reason": "stop"}]});
        let whole = answer("200 OK", "content-type: application/json\r\n", &body.to_string());
        let server = ModelServer::start([Answer::bytes(whole)]);
        assert_eq!(reply(&*server.openai(), &question()).message.content, "all at once");
    }

    #[test]
    fn what_it_took_is_told() {
        let [input, output, cached] = SPENT;
        for provider in ModelProvider::ALL {
            let server = ModelServer::start([Answer::text("ok")]);
            let reply = reply(&*server.model(provider), &question());
            assert_eq!(
                reply.spent,
                TokenUsage { input, output, cached, ..TokenUsage::default() },
                "{provider:?}"
            );
        }
    }

    /// Returns a complete answer in the format of chat completions.
    fn completion(usage: &Json) -> Answer {
        let message = json!({"content": "It is four degrees in Oslo."});
        let mut body = json!({"choices": [{"message": message, "finish_reason": "stop"}]});
        if !usage.is_null() {
            body["usage"] = usage.clone();
        }
        let head = "content-type: application/json\r\n";
        Answer::bytes(answer("200 OK", head, &body.to_string()))
    }

    #[test]
    fn what_no_server_reports_is_estimated() {
        for usage in [
            Json::Null,
            json!({}),
            json!({"prompt_tokens": 0, "completion_tokens": 0}),
            json!({"prompt_tokens": null, "completion_tokens": "many"}),
        ] {
            let server = ModelServer::start([completion(&usage)]);
            let spent = reply(&*server.openai(), &question_with_tool()).spent;
            assert!(spent.estimated, "{usage}: {spent:?}");
            assert!((30..300).contains(&spent.input), "{spent:?}");
            assert!((5..20).contains(&spent.output), "{spent:?}");
            let wanted =
                format!("tokens unknown, about {} read and {} written", spent.input, spent.output);
            assert_eq!(spent.to_string(), wanted);
        }
        let reported = json!({"prompt_tokens": 12, "completion_tokens": 3});
        let server = ModelServer::start([completion(&reported)]);
        let spent = reply(&*server.openai(), &question()).spent;
        assert_eq!(spent, TokenUsage { input: 12, output: 3, ..TokenUsage::default() });
        assert_eq!(spent.to_string(), "12 tokens read, 3 written");
    }

    #[test]
    fn a_reason_that_is_not_known_keeps_what_was_said() {
        let gemini = |reason: &str, parts: Json| {
            let body = json!({"candidates": [{"content": {"parts": parts}, "finishReason": reason}],
                "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2}});
            let head = "content-type: text/event-stream\r\n";
            let whole = answer("200 OK", head, &format!("data: {body}\n\n"));
            let server = ModelServer::start([Answer::bytes(whole)]);
            hear(&*server.gemini(), &question_with_tool()).1
        };
        let calls = json!([{"functionCall": {"name": "weather", "args": {"city": "Oslo"}}}]);
        let reply = gemini("FUNCTION_CALL", calls).unwrap();
        assert_eq!(called(&reply), [("weather", json!({"city": "Oslo"}))]);
        assert_eq!(reply.stop, StopReason::Calls);
        let remark = "the reply ended for an unknown reason: FUNCTION_CALL";
        assert_eq!(reply.remark.as_deref(), Some(remark));
        let reply = gemini("NEW_IN_2027", json!([{"text": "Four."}])).unwrap();
        assert_eq!((&*reply.message.content, reply.stop), ("Four.", StopReason::Done));
        let error = gemini("NEW_IN_2027", json!([])).unwrap_err();
        assert!(error.to_string().contains("NEW_IN_2027"), "{error}");
        for reason in ["SAFETY", "RECITATION", "SPII"] {
            let error = gemini(reason, json!([])).unwrap_err();
            assert!(matches!(error, ModelError::Refused { .. }), "{error:?}");
            assert!(error.to_string().contains(reason), "{error}");
            let reply = gemini(reason, json!([{"text": "Fo"}])).unwrap();
            assert_eq!(reply.stop, StopReason::Filtered);
        }
        assert_eq!(gemini("STOP", json!([{"text": "Four."}])).unwrap().remark, None);
    }

    #[test]
    fn why_it_ended_is_told() {
        for provider in ModelProvider::ALL {
            let stop = |answer: Answer| {
                let server = ModelServer::start([answer]);
                reply(&*server.model(provider), &question_with_tool()).stop
            };
            assert_eq!(stop(Answer::text("ok")), StopReason::Done);
            assert_eq!(stop(calling()), StopReason::Calls);
            assert_eq!(stop(Answer::text("and so on").cut_short()), StopReason::Length);
            assert_eq!(stop(Answer::text("how to").held_back()), StopReason::Filtered);
        }
    }

    #[test]
    fn a_call_that_is_not_json_is_handed_on_as_it_was_written() {
        let written = "{\"city\": Oslo";
        for provider in [ModelProvider::OpenAi, ModelProvider::Responses] {
            let answers =
                [Answer::calls_as_written([("weather", written.to_owned())]), Answer::text("ok")];
            let server = ModelServer::start(answers);
            let model = server.model(provider);
            let first = reply(&*model, &question_with_tool());
            assert_eq!(first.message.calls[0].arguments, written, "{provider:?}");
            reply(&*model, &answered(question_with_tool(), first.clone()));
            assert!(server.last().to_string().contains("Oslo"));
            // Providers that accept only an object get the result in one.
            let server = ModelServer::start([Answer::text("ok"), Answer::text("ok")]);
            let ask = answered(question_with_tool(), first);
            reply(&*server.anthropic(), &ask);
            let input = json!({"arguments": written});
            assert_eq!(server.last()["messages"][1]["content"][0]["input"], input);
            reply(&*server.gemini(), &ask);
            let call = &server.last()["contents"][1]["parts"][0]["functionCall"];
            assert_eq!(call["args"], input);
        }
    }

    #[test]
    fn whoever_gives_up_hangs_up() {
        for provider in ModelProvider::ALL {
            let server = ModelServer::start([Answer::text("one").then_drip()]);
            let model = server.model(provider);
            wait(async {
                let ask = question();
                let reply = model.reply(&ask, &|_| {});
                dropped_when("the model is asked", || !server.requests().is_empty(), reply).await;
            });
            server.until_hung_up();
        }
    }
}

mod thoughts_go_back_to_whoever_had_them {
    use super::*;

    #[test]
    fn a_session_that_was_kept_gives_back_the_same() {
        for provider in ModelProvider::ALL {
            let server = ModelServer::start([calling(), Answer::text("ok"), Answer::text("ok")]);
            let model = server.model(provider);
            let first = reply(&*model, &question_with_tool());
            let ask = answered(question_with_tool(), first);
            reply(&*model, &ask);
            let text = serde_json::to_string(&ask.messages).unwrap();
            let messages: Vec<Message> = serde_json::from_str(&text).unwrap();
            reply(&*model, &ChatRequest { messages, ..ask });
            let [_, one, two] = &server.requests()[..] else { panic!("it was asked three times") };
            assert_eq!(one.body, two.body, "{provider:?}");
        }
    }

    #[test]
    fn another_model_gets_what_was_said_and_nothing_else() {
        for from in ModelProvider::ALL {
            let server = ModelServer::start([calling()]);
            let first = reply(&*server.model(from), &question_with_tool());
            let mut ask = answered(question_with_tool(), first);
            // Every call gets an id.
            for (index, message) in ask.messages.iter_mut().enumerate() {
                let ids = message.calls.iter_mut().enumerate();
                ids.for_each(|(number, it)| it.id = format!("functions.weather:{number}"));
                if message.role == Role::Tool {
                    message.call_id = Some(format!("functions.weather:{}", index - 3));
                }
            }
            for to in ModelProvider::ALL {
                let server = ModelServer::start([Answer::text("ok")]);
                let name = "another-model".to_owned();
                let connection = ModelConnection { name, ..server.connection(to) };
                reply(&*model(connection).unwrap(), &ask);
                let body = server.last().to_string();
                let secrets =
                    ["signed-", "secret-", "c2lnbmVk", "kept", "rs_1", "fc_1", "two cities"];
                let found = secrets.iter().find(|it| body.contains(**it));
                assert_eq!(found, None, "from {from:?} to {to:?}: {body}");
                assert!(body.contains("Let me look. ") && body.contains("21 °C"), "{body}");
                match to {
                    // No other id is accepted.
                    ModelProvider::Anthropic => {
                        assert!(body.contains("functions_weather_1"), "{body}");
                    }
                    // A call of another model is marked as such.
                    ModelProvider::Gemini => {
                        let signature = "skip_thought_signature_validator";
                        assert_eq!(body.matches(signature).count(), 1, "{body}");
                    }
                    _ => assert!(body.contains("functions.weather:1"), "{body}"),
                }
            }
        }
    }

    #[test]
    fn thoughts_that_are_refused_are_left_out() {
        for (provider, sign, message) in [
            (
                ModelProvider::Responses,
                "secret-",
                "The encrypted content for item rs_1 could not be verified.",
            ),
            (
                ModelProvider::Anthropic,
                "signed-",
                "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.",
            ),
            (ModelProvider::Gemini, "c2lnbmVk", "Thought signature is not valid."),
        ] {
            let server = ModelServer::answering(move |request| match request.body.to_string() {
                body if body.contains(sign) => {
                    Answer::status(400).body(&json!({"error": {"message": message}}).to_string())
                }
                body if body.contains("21 °C") => Answer::text("ok"),
                _ => calling(),
            });
            let model = server.model(provider);
            for _ in 0..2 {
                let first = reply(&*model, &question_with_tool());
                let second = reply(&*model, &answered(question_with_tool(), first));
                assert_eq!(second.message.content, "ok", "{provider:?}");
            }
            // The reasoning of the next reply is sent again: the error may have been about the
            // earlier one.
            assert_eq!(server.requests().len(), 6, "{provider:?}");
        }
    }

    #[test]
    fn anthropic_gets_thoughts_back_until_a_person_speaks_again() {
        let server = ModelServer::start([calling(), Answer::text("4 and 21."), Answer::text("ok")]);
        let model = server.anthropic();
        let first = reply(&*model, &question_with_tool());
        let mut ask = answered(question_with_tool(), first);
        let second = reply(&*model, &ask);
        assert!(server.last().to_string().contains("signed-1"));
        ask.messages.push(second.message);
        ask.messages.push(Message::new(Role::User, "And in Paris?"));
        reply(&*model, &ask);
        let body = server.last().to_string();
        assert!(!body.contains("signed-1") && body.contains("21 °C"), "{body}");
    }

    #[test]
    fn what_was_changed_since_goes_without_thoughts() {
        for provider in [ModelProvider::Responses, ModelProvider::Anthropic] {
            let server = ModelServer::start([calling(), Answer::text("ok")]);
            let model = server.model(provider);
            let mut first = reply(&*model, &question_with_tool());
            first.message.content = "Shorter.".to_owned();
            reply(&*model, &answered(question_with_tool(), first));
            let body = server.last().to_string();
            assert!(body.contains("Shorter.") && !body.contains("two cities"), "{body}");
        }
    }
}

mod servers_of_chat_completions_differ {
    use super::*;

    #[test]
    fn what_a_server_does_not_know_is_asked_for_otherwise() {
        let server = ModelServer::answering(|request| {
            let refused = |what: &str| {
                let message = format!("Unsupported parameter: '{what}' is not supported here.");
                let error = json!({"error": {"message": message, "type": "invalid_request_error"}});
                Answer::status(400).body(&error.to_string())
            };
            match &request.body {
                body if body.get("stream_options").is_some() => refused("stream_options"),
                body if body.get("max_tokens").is_some() => refused("max_tokens"),
                body if body["stream"] == true => refused("stream"),
                _ => Answer::text("at last"),
            }
        });
        let model = server.openai();
        let ask = ChatRequest { max_output: Some(9), ..question() };
        assert_eq!(reply(&*model, &ask).message.content, "at last");
        assert_eq!(server.requests().len(), 4);
        assert_eq!(server.last()["max_completion_tokens"], 9);
        // It is not requested again.
        reply(&*model, &ask);
        assert_eq!(server.requests().len(), 5);
        // A request that is invalid in itself is not retried forever.
        let server = ModelServer::answering(|_| {
            Answer::status(400).body("{\"error\": \"max_tokens is not supported, nor is stream\"}")
        });
        let error = error(&*server.openai(), &ask);
        assert!(matches!(error, ModelError::Invalid { .. }), "{error:?}");
        assert_eq!(server.requests().len(), 2);
        // The model's own output limit is used from then on.
        let most = |at: &str, said: &'static str| {
            let at = at.to_owned();
            ModelServer::answering(move |request| match request.body[&at].as_u64() {
                Some(wanted) if wanted > 4096 => {
                    let message = said.replace("{wanted}", &wanted.to_string());
                    Answer::status(400).body(&json!({"error": {"message": message}}).to_string())
                }
                _ => Answer::text("short"),
            })
        };
        let server = most(
            "max_tokens",
            "max_tokens: {wanted} > 4096, which is the maximum allowed number of output tokens for claude-3-haiku-20240307",
        );
        let model = server.anthropic();
        assert_eq!(reply(&*model, &question()).message.content, "short");
        reply(&*model, &question());
        let asked = server.requests().into_iter().map(|it| it.body["max_tokens"].clone());
        assert_eq!(asked.collect::<Vec<_>>(), [32_000, 4096, 4096]);
        let server = most(
            "max_tokens",
            "max_tokens is too large: {wanted}. This model supports at most 4096 completion tokens.",
        );
        reply(&*server.openai(), &ChatRequest { max_output: Some(9000), ..question() });
        assert_eq!(server.last()["max_tokens"], 4096);
        // Some require reasoning with every reply, also with those of other models.
        let server = ModelServer::answering(|request| match &request.body["messages"][2] {
            it if it["role"] == "assistant" && it.get("reasoning_content").is_none() => {
                let message =
                    "The `reasoning_content` in the thinking mode must be passed back to the API.";
                Answer::status(400).body(&json!({"error": {"message": message}}).to_string())
            }
            _ => Answer::text("ok"),
        });
        let mut ask = question();
        ask.messages.push(Message::new(Role::Assistant, "Warm."));
        ask.messages.push(Message::new(Role::User, "How warm?"));
        reply(&*server.openai(), &ask);
        assert_eq!(server.last()["messages"][2]["reasoning_content"], "");
    }

    #[test]
    fn a_model_of_responses_that_does_not_think_is_not_asked_to() {
        let server = ModelServer::answering(|request| {
            match request.body.get("include") {
            Some(_) => Answer::status(400).body(
                "{\"error\": {\"message\": \"Encrypted content is not supported with this model.\"}}",
            ),
            None => Answer::text("ok"),
        }
        });
        assert_eq!(reply(&*server.responses(), &question()).message.content, "ok");
        // Its reasoning must be encrypted to be sent back: nobody has stored it.
        let output = json!([
            {"type": "reasoning", "id": "rs_9", "summary": []},
            {"type": "message", "content": [{"type": "output_text", "text": "Hm."}]},
        ]);
        let whole = json!({"object": "response", "status": "completed", "output": output});
        let whole = answer("200 OK", "content-type: application/json\r\n", &whole.to_string());
        let server = ModelServer::start([Answer::bytes(whole), Answer::text("ok")]);
        let (model, mut ask) = (server.responses(), question());
        ask.messages.push(reply(&*model, &ask).message);
        ask.messages.push(Message::new(Role::User, "And?"));
        reply(&*model, &ask);
        let body = server.last().to_string();
        assert!(body.contains("Hm.") && !body.contains("rs_9"), "{body}");
    }

    #[test]
    fn streams_of_every_make_are_understood() {
        let streamed = |events: &str| {
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            let server = Server::saying(format!("{head}{events}"));
            let connection = ModelConnection {
                base_url: Some(server.url("/v1")),
                ..ModelConnection::new(ModelProvider::OpenAi, "m")
            };
            let (heard, reply) = hear(&*model(connection).unwrap(), &question_with_tool());
            (heard, reply.unwrap())
        };
        // No `[DONE]`, no usage, whole calls with objects, none with an id, and a less specific
        // stop reason.
        let (_, reply) = streamed(
            ": OPENROUTER PROCESSING\n\n\
             data: {\"choices\":[{\"delta\":{\"content\":null,\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"weather\",\"arguments\":{\"city\":\"Oslo\"}}},{\"index\":0,\"function\":{\"name\":\"weather\",\"arguments\":{\"city\":\"Rome\"}}}]},\"finish_reason\":\"stop\"}]}\n\n",
        );
        assert_eq!(called(&reply).len(), 2);
        assert_eq!(reply.stop, StopReason::Calls);
        // Reasoning under another name, content in parts, carriage returns, an empty stop reason.
        let (heard, reply) = streamed(
            "data: {\"choices\":[{\"delta\":{\"reasoning\":\"hm\"},\"finish_reason\":\"\"}]}\r\n\r\n\
             data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"ah\"}]},{\"type\":\"text\",\"text\":\"yes\"}]}}]}\r\n\r\n\
             data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1,\"prompt_cache_hit_tokens\":2}}\r\n\r\n\
             data: [DONE]\r\n\r\n",
        );
        assert_eq!(heard, ["thinks hm", "thinks ah", "says yes"]);
        assert_eq!(
            reply.spent,
            TokenUsage { input: 3, output: 1, cached: 2, ..TokenUsage::default() }
        );
        // A refusal in the model's own words.
        let (_, reply) = streamed(
            "data: {\"choices\":[{\"delta\":{\"refusal\":\"I will not.\"},\"finish_reason\":null}]}\n\n\
             data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        );
        assert_eq!((&*reply.message.content, reply.stop), ("I will not.", StopReason::Filtered));
        // No stop reason.
        let (_, reply) =
            streamed("data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n");
        assert_eq!((&*reply.message.content, reply.stop), ("hi", StopReason::Done));
        // Data to send back with the calls, in pieces, and with a call.
        let (_, reply) = streamed(
            "data: {\"choices\":[{\"delta\":{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"index\":0,\"text\":\"a\"}]}}]}\n\n\
             data: {\"choices\":[{\"delta\":{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"index\":0,\"text\":\"b\",\"signature\":\"s\"}]}}]}\n\n\
             data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"c\",\"function\":{\"name\":\"weather\",\"arguments\":\"{}\"},\"extra_content\":{\"google\":{\"thought_signature\":\"t\"}}}]},\"finish_reason\":\"tool_calls\"}]}\n\n",
        );
        let server = ModelServer::start([Answer::text("ok")]);
        let connection =
            ModelConnection { name: "m".to_owned(), ..server.connection(ModelProvider::OpenAi) };
        super::reply(&*model(connection).unwrap(), &answered(question_with_tool(), reply));
        let message = &server.last()["messages"][2];
        assert_eq!(
            message["reasoning_details"],
            json!([{"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s"}])
        );
        let extra = json!({"google": {"thought_signature": "t"}});
        assert_eq!(message["tool_calls"][0]["extra_content"], extra);
    }

    #[test]
    fn a_server_that_does_not_hang_up_keeps_nobody() {
        let end =
            "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n";
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        let server = ModelServer::start([Answer::bytes(format!("{head}{end}")).then_hang()]);
        assert_eq!(reply(&*server.openai(), &question()).message.content, "hi");
    }
}

mod what_goes_wrong_has_a_kind {
    use super::*;

    #[test]
    fn a_status_is_told_by_what_to_do_about_it() {
        for status in [401, 403] {
            for (provider, error) in errors(&Answer::status(status)) {
                let ModelError::Auth { message, .. } = &error else {
                    panic!("{provider:?} {error:?}")
                };
                assert_eq!(message, &format!("it says {status}"));
                assert!(!error.is_passing());
            }
        }
        for (provider, error) in errors(&Answer::status(404)) {
            assert!(matches!(error, ModelError::NotFound { .. }), "{provider:?} {error:?}");
        }
        for (provider, error) in errors(&Answer::status(400)) {
            assert!(matches!(error, ModelError::Invalid { .. }), "{provider:?} {error:?}");
            // The error names the server, not the provider of the protocol.
            assert!(error.to_string().starts_with("`127.0.0.1:"), "{error}");
            assert!(error.hint().is_some_and(|it| it.contains("--dry-run")));
        }
        for status in [500, 502, 503, 529] {
            for (provider, error) in errors(&Answer::status(status).header("retry-after", "3")) {
                assert!(matches!(error, ModelError::Server { .. }), "{provider:?} {error:?}");
                assert_eq!((error.is_passing(), error.wait()), (true, Some(seconds(3))));
            }
        }
    }

    #[test]
    fn a_missing_address_is_told_from_a_missing_model() {
        let tried = |base: &str, body: &str| {
            let server = ModelServer::start([Answer::status(404).body(body)]);
            let url = format!("{}{base}", server.url());
            let connection = server.connection(ModelProvider::Responses);
            let model =
                model(ModelConnection { base_url: Some(url.clone()), ..connection }).unwrap();
            (error(&*model, &question()), server.url())
        };
        for body in [r#"{"detail":"Not Found"}"#, "404 page not found", ""] {
            let (error, url) = tried("/v1", body);
            assert!(matches!(error, ModelError::NoEndpoint { .. }), "{body}: {error:?}");
            assert!(
                error.to_string().starts_with(&format!("`{url}/v1/responses` does not exist: "))
            );
            let hint = error.hint().unwrap();
            assert!(hint.contains(&format!("`{url}/v1`")) && hint.contains("--provider"), "{hint}");
            assert!(!error.is_passing());
        }
        for body in [
            r#"{"error":{"message":"The model `m` does not exist","code":"model_not_found"}}"#,
            r#"{"error":"model 'm' not found"}"#,
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: m"}}"#,
        ] {
            let (error, _) = tried("/v1", body);
            assert!(matches!(error, ModelError::NotFound { .. }), "{body}: {error:?}");
        }
    }

    #[test]
    fn a_base_url_may_be_the_whole_address() {
        for (provider, end) in [
            (ModelProvider::OpenAi, "/v1/chat/completions"),
            (ModelProvider::Responses, "/v1/responses/"),
            (ModelProvider::Anthropic, "/v1/messages"),
        ] {
            let server = ModelServer::start([Answer::text("ok")]);
            let base_url = Some(format!("{}{end}", server.url()));
            let connection = ModelConnection { base_url, ..server.connection(provider) };
            let said = reply(&*model(connection).unwrap(), &question()).message.content;
            assert_eq!((&*said, &*server.requests()[0].path), ("ok", end.trim_end_matches('/')));
        }
    }

    #[test]
    fn a_rate_limit_says_how_long_to_wait() {
        let wait = |headers: &[(&str, &str)]| {
            let answer = Answer::status(429);
            let answer = headers.iter().fold(answer, |it, (name, value)| it.header(name, value));
            let waits = errors(&answer).into_iter().map(|(provider, error)| {
                assert!(matches!(error, ModelError::RateLimited { .. }), "{provider:?} {error:?}");
                error.wait()
            });
            let mut waits: Vec<Option<Duration>> = waits.collect();
            waits.dedup();
            assert_eq!(waits.len(), 1, "{waits:?}");
            waits[0]
        };
        assert_eq!(wait(&[]), None);
        assert_eq!(wait(&[("retry-after", "7")]), Some(seconds(7)));
        for (_, error) in errors(&Answer::status(429).header("retry-after", "7")) {
            let said = error.to_string();
            assert!(said.contains("it says 429") && said.contains("wait 7 s"), "{said}");
        }
        assert_eq!(wait(&[("Retry-After", "0.5")]), Some(Duration::from_millis(500)));
        assert_eq!(
            wait(&[("retry-after-ms", "30"), ("retry-after", "1")]),
            Some(Duration::from_millis(30))
        );
        assert_eq!(wait(&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")]), Some(seconds(0)));
        let far = Answer::status(429).header("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT");
        assert!(errors(&far).iter().all(|it| it.1.wait() > Some(seconds(1_000_000_000))));
        assert_eq!(wait(&[("retry-after", "1000000000")]), Some(seconds(1_000_000_000)));
        assert_eq!(wait(&[("retry-after", "soon")]), None);
        assert_eq!(wait(&[("x-ratelimit-reset-requests", "1m30s")]), Some(seconds(90)));
        let server = ModelServer::start([Answer::status(429).body(
            "[{\"error\": {\"code\": 429, \"message\": \"Quota\", \"status\": \"RESOURCE_EXHAUSTED\", \"details\": [{\"@type\": \"type.googleapis.com/google.rpc.RetryInfo\", \"retryDelay\": \"34.5s\"}]}}]",
        )]);
        assert_eq!(
            error(&*server.gemini(), &question()).wait(),
            Some(Duration::from_millis(34_500))
        );
    }

    #[test]
    fn who_cannot_pay_does_not_wait() {
        for (provider, body) in [
            (
                ModelProvider::OpenAi,
                "{\"error\": {\"message\": \"You exceeded your current quota\", \"type\": \"insufficient_quota\", \"code\": \"insufficient_quota\"}}",
            ),
            (
                ModelProvider::Anthropic,
                "{\"type\": \"error\", \"error\": {\"type\": \"invalid_request_error\", \"message\": \"Your credit balance is too low to access the Anthropic API.\"}}",
            ),
            (
                ModelProvider::Gemini,
                "{\"error\": {\"code\": 400, \"message\": \"API key not valid. Please pass a valid API key.\", \"status\": \"INVALID_ARGUMENT\"}}",
            ),
        ] {
            let server = ModelServer::start([Answer::status(429).body(body)]);
            let error = error(&*server.model(provider), &question());
            match error {
                ModelError::Auth { variable, .. } => assert_eq!(variable, "GEMINI_API_KEY"),
                ModelError::Unpaid { .. } => assert!(error.hint().unwrap().contains("credits")),
                error => panic!("{error:?}"),
            }
        }
        for (provider, error) in errors(&Answer::status(402)) {
            assert!(matches!(error, ModelError::Unpaid { .. }), "{provider:?} {error:?}");
            assert!(!error.is_passing());
        }
    }

    #[test]
    fn a_prompt_that_is_too_long_is_told_with_what_fits() {
        for (provider, error) in errors(&Answer::too_long(8000)) {
            let ModelError::TooLong { window, message, .. } = &error else {
                panic!("{provider:?} {error:?}")
            };
            assert_eq!(*window, Some(8000));
            assert!(message.contains("9000"), "{message}");
            assert!(!error.is_passing());
        }
        for (body, tokens) in [
            (
                "{\"error\":{\"code\":400,\"message\":\"the request exceeds the available context size. try increasing the context size or enable context shift\",\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":14429,\"n_ctx\":8192}}",
                Some(8192),
            ),
            (
                "{\"object\":\"error\",\"message\":\"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4500 in the messages, 500 in the completion).\",\"type\":\"BadRequestError\",\"code\":400}",
                Some(3596),
            ),
            (
                "{\"error\":{\"message\":\"Your input exceeds the context window of this model.\",\"code\":\"context_length_exceeded\"}}",
                None,
            ),
        ] {
            let server = ModelServer::start([Answer::status(400).body(body)]);
            match error(&*server.openai(), &question()) {
                ModelError::TooLong { window, .. } => assert_eq!(window, tokens),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn what_is_held_back_is_refused() {
        for (provider, error) in errors(&Answer::text("").held_back()) {
            assert!(matches!(error, ModelError::Refused { .. }), "{provider:?} {error:?}");
            assert!(!error.is_passing());
        }
        let blocked = "{\"promptFeedback\": {\"blockReason\": \"PROHIBITED_CONTENT\"}}";
        let blocked = answer("200 OK", "content-type: application/json\r\n", blocked);
        let server = ModelServer::start([Answer::bytes(blocked)]);
        let error = error(&*server.gemini(), &question()).to_string();
        assert!(error.contains("PROHIBITED_CONTENT"), "{error}");
    }

    #[test]
    fn a_reply_that_breaks_off_is_a_matter_of_the_network() {
        for (provider, error) in errors(&Answer::text("one two").then_cut()) {
            assert!(matches!(error, ModelError::Broken { .. }), "{provider:?} {error:?}");
            assert!(error.is_passing() && error.to_string().contains("was cut off"), "{error}");
        }
        // The HTTP response is complete, but the reply is not.
        let cut = answer("200 OK", "content-type: text/event-stream\r\n", ": ping\n\ndata: {\"ty");
        for (provider, error) in errors(&Answer::bytes(cut)) {
            assert!(matches!(error, ModelError::Broken { .. }), "{provider:?} {error:?}");
            assert!(error.to_string().contains("before it began"), "{error}");
        }
        let connection = |url: String| ModelConnection {
            base_url: Some(url),
            ..ModelConnection::new(ModelProvider::OpenAi, "m")
        };
        // No response at all.
        let silent = Server::new(|_, _| Ok(()));
        let error = super::error(&*model(connection(silent.url(""))).unwrap(), &question());
        assert!(matches!(error, ModelError::Broken { .. }), "{error:?}");
        let wanted = "was cut off: the server closed the connection before it answered";
        assert!(error.is_passing() && error.to_string().ends_with(wanted), "{error}");
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let nobody = model(connection(format!("http://{free}"))).unwrap();
        let error = super::error(&*nobody, &question());
        assert_eq!(error.to_string(), format!("`{free}` cannot be reached: connection refused"));
        assert!(matches!(error, ModelError::Absent { .. }) && error.is_passing());
        assert!(error.hint().unwrap().contains("start the server"));
    }

    #[test]
    fn trouble_in_the_middle_of_a_reply_is_told() {
        for (provider, error) in errors(&Answer::text("one two").then_error()) {
            assert!(matches!(error, ModelError::Server { .. }), "{provider:?} {error:?}");
            assert!(error.is_passing());
        }
        let failed = json!({"type": "response.failed", "response": {
            "object": "response", "status": "failed",
            "error": {"code": "rate_limit_exceeded", "message": "Slow down. Please try again in 1.5s."},
        }});
        let failed =
            answer("200 OK", "content-type: text/event-stream\r\n", &format!("data: {failed}\n\n"));
        let server = ModelServer::start([Answer::bytes(failed)]);
        let error = error(&*server.responses(), &question());
        assert!(matches!(error, ModelError::RateLimited { .. }), "{error:?}");
        assert_eq!(error.wait(), Some(Duration::from_millis(1500)));
        // An error without a message is described in words, not as JSON.
        for (response, wanted) in [
            (json!({"incomplete_details": {"reason": "content_filter"}}), "failed: content_filter"),
            (json!({"error": null, "output": []}), "failed, and the provider does not say why"),
            (json!({"error": {"code": "server_error", "message": ""}}), ""),
        ] {
            let mut response = response;
            response["object"] = json!("response");
            response["status"] = json!("failed");
            let body = response.to_string();
            let whole = answer("200 OK", "content-type: application/json\r\n", &body);
            let server = ModelServer::start([Answer::bytes(whole)]);
            let error = super::error(&*server.responses(), &question()).to_string();
            assert!(error.contains(wanted) && !error.contains('{'), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_malformed() {
        for answer in [Answer::text("one two").then_garbage(), Answer::text("one").then_flood()] {
            for (provider, error) in errors(&answer) {
                assert!(matches!(error, ModelError::Malformed { .. }), "{provider:?} {error:?}");
                assert!(error.is_passing());
            }
        }
        for provider in ModelProvider::ALL {
            let server = ModelServer::start([Answer::text("one two").then_garbage()]);
            let connection = ModelConnection { stream: false, ..server.connection(provider) };
            let error = error(&*model(connection).unwrap(), &question());
            assert!(matches!(error, ModelError::Malformed { .. }), "{provider:?} {error:?}");
        }
    }

    #[test]
    fn nobody_is_waited_for_without_end() {
        let timeouts = Timeouts { idle: Duration::from_millis(300), ..Timeouts::default() };
        for answer in [Answer::hang(), Answer::text("one two").then_hang()] {
            for provider in ModelProvider::ALL {
                let server = ModelServer::start([answer.clone()]);
                let connection = ModelConnection { timeouts, ..server.connection(provider) };
                let error = error(&*model(connection).unwrap(), &question());
                assert!(matches!(error, ModelError::Timeout { .. }), "{provider:?} {error:?}");
                assert!(error.is_passing());
            }
        }
        // Keep-alives do not extend the total timeout.
        let timeouts = Timeouts { total: Duration::from_millis(500), ..Timeouts::default() };
        let server = ModelServer::start([Answer::text("one two").then_drip()]);
        let connection = ModelConnection { timeouts, ..server.connection(ModelProvider::OpenAi) };
        let error = error(&*model(connection).unwrap(), &question());
        assert!(matches!(error, ModelError::Timeout { .. }), "{error:?}");
        // A slow stream is read to its end.
        let timeouts = Timeouts { idle: Duration::from_secs(3), ..Timeouts::default() };
        let slow = Answer::text("one two").in_pieces(50).slowly(Duration::from_millis(200));
        let server = ModelServer::start([slow]);
        let connection = ModelConnection { timeouts, ..server.connection(ModelProvider::OpenAi) };
        let start = Instant::now();
        assert_eq!(reply(&*model(connection).unwrap(), &question()).message.content, "one two");
        assert!(start.elapsed() > timeouts.idle);
    }

    #[test]
    fn what_is_no_provider_of_models_is_told() {
        for (status, text) in [("200 OK", "Welcome"), ("404 X", "no such page")] {
            let text = format!("<!DOCTYPE html><html>{text}</html>");
            let page = answer(status, "content-type: text/html\r\n", &text);
            for (provider, error) in errors(&Answer::bytes(page)) {
                assert!(matches!(error, ModelError::Elsewhere { .. }), "{provider:?} {error:?}");
                assert!(error.to_string().contains("got an HTML page instead of JSON"), "{error}");
            }
        }
        let elsewhere = Server::saying(answer("200 OK", "", "{}"));
        let there = redirect(307, &elsewhere.url("/v1/chat/completions"));
        for (provider, error) in errors(&Answer::bytes(there)) {
            assert!(matches!(error, ModelError::Elsewhere { .. }), "{provider:?} {error:?}");
            assert!(error.to_string().contains(&elsewhere.url("")), "{error}");
        }
        assert_eq!(elsewhere.connections(), 0);
        let server = ModelServer::start([Answer::status(502).body("<html>Bad gateway</html>")]);
        let error = error(&*server.openai(), &question());
        assert!(error.to_string().contains("Bad gateway"), "{error}");
    }
}

mod a_key_is_sent_and_never_shown {
    use super::*;

    #[test]
    fn what_a_server_says_is_shown_short_and_without_the_key() {
        for status in [400, 401, 404, 429, 500] {
            let body =
                json!({"error": {"message": format!("{KEY} is wrong: {KEY}{}", "x".repeat(9000))}});
            for (provider, error) in errors(&Answer::status(status).body(&body.to_string())) {
                let shown = format!("{error} {error:?} {:?}", error.hint());
                assert!(!shown.contains(KEY), "{provider:?} {shown}");
                assert!(shown.len() < 6000, "{}", shown.len());
            }
        }
        let event = answer(
            "200 OK",
            "content-type: text/event-stream\r\n",
            &format!(
                "data: {{\"error\": {{\"type\": \"error\", \"message\": \"{KEY}\"}}, \"type\": \"error\"}}\n\n"
            ),
        );
        for (provider, error) in errors(&Answer::bytes(event)) {
            assert!(!format!("{error} {error:?}").contains(KEY), "{provider:?} {error}");
        }
    }

    #[test]
    fn nothing_shows_a_key() {
        let server = ModelServer::start([]);
        let connection = server.connection(ModelProvider::OpenAi);
        let model = model(connection.clone()).unwrap();
        let post = ClientRequest {
            url: server.url(),
            headers: vec![("x-api-key".to_owned(), KEY.to_owned())],
            body: KEY.into(),
            max_body: 1,
        };
        for shown in [
            format!("{connection:?}"),
            format!("{connection:#?}"),
            format!("{:?}", ApiKey::new(KEY)),
            format!("{model:?}"),
            format!("{post:?}"),
        ] {
            assert!(!shown.contains("0123456789"), "{shown}");
        }
    }

    #[test]
    fn without_a_key_none_is_sent() {
        for provider in ModelProvider::ALL {
            let server = ModelServer::start([Answer::text("ok")]);
            let connection = ModelConnection { key: None, ..server.connection(provider) };
            reply(&*model(connection).unwrap(), &question());
            let request = server.requests().pop().unwrap();
            for name in ["authorization", "x-api-key", "x-goog-api-key"] {
                assert_eq!(request.header(name), None, "{provider:?}");
            }
        }
    }
}

mod a_model_is_reached_where_the_user_says {
    use super::*;

    #[test]
    fn what_cannot_be_reached_is_said_before_anything_is_sent() {
        let with = |change: fn(&mut ModelConnection)| {
            let mut connection = ModelConnection::new(ModelProvider::OpenAi, "m");
            change(&mut connection);
            model(connection).map(|_| ()).unwrap_err()
        };
        assert!(matches!(with(|it| it.name = "  ".to_owned()), ConnectionError::Name));
        for url in [
            "",
            "localhost:11434",
            "ftp://example.com",
            "http://",
            "https://me:secret@example.com/v1",
        ] {
            let mut connection = ModelConnection::new(ModelProvider::OpenAi, "m");
            connection.base_url = Some(url.to_owned());
            let error = model(connection).map(|_| ()).unwrap_err();
            assert!(matches!(error, ConnectionError::Url { .. }), "{url}: {error:?}");
            assert!(!format!("{error} {error:?}").contains("secret"));
        }
        let key = with(|it| it.key = Some(ApiKey::new("two\nlines")));
        assert!(matches!(key, ConnectionError::Key), "{key:?}");
        let pem = b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
        let mut connection = ModelConnection::new(ModelProvider::OpenAi, "m");
        connection.certificates = Some(pem.to_vec());
        let error = model(connection).map(|_| ()).unwrap_err();
        assert!(matches!(error, ConnectionError::Certificates(_)), "{error:?}");
    }

    #[test]
    fn providers_have_words_and_places() {
        for provider in ModelProvider::ALL {
            assert_eq!(ModelProvider::from_word(provider.as_str()), Some(provider));
            let model = model(ModelConnection::new(provider, " m ")).unwrap();
            assert_eq!((model.provider(), model.name()), (provider.as_str(), "m"));
        }
        assert_eq!(ModelProvider::from_word("OpenAI"), None);
        let words: Vec<&str> = ModelProvider::ALL.iter().map(|it| it.as_str()).collect();
        assert_eq!(words, ["openai", "responses", "anthropic", "gemini"]);
    }

    #[test]
    fn a_certificate_has_to_be_trusted() {
        let server = Server::secure(|_, client| {
            std::io::Write::write_all(client, answer("200 OK", "", "safe").as_bytes())
        });
        let post = |host: &str| ClientRequest {
            url: format!("https://{host}:{}/", server.port()),
            headers: Vec::new(),
            body: b"{}".to_vec(),
            max_body: 100,
        };
        let names = Names::new(&[&["127.0.0.1"]]);
        let wire = || HttpClient::new(Timeouts::default()).with_resolver(names.clone());
        let ask = |wire: HttpClient, host: &str| {
            wait(async { wire.post(post(host)).await?.whole().await })
        };
        let refused = ask(wire(), "secure.test").unwrap_err();
        assert!(matches!(refused, HttpError::Connect { .. }), "{refused:?}");
        let authority = include_bytes!("../../../../fixtures/tls/ca.pem");
        let trusting = || wire().with_certificates(authority).unwrap();
        assert_eq!(ask(trusting(), "secure.test").unwrap(), b"safe");
        let other = ask(trusting(), "other.test").unwrap_err();
        assert!(matches!(other, HttpError::Connect { .. }), "{other:?}");
        assert_eq!(server.asked().len(), 1);
    }

    #[test]
    fn an_answer_is_taken_up_to_a_length() {
        let server = Server::saying(answer("200 OK", "x-a: 1\r\n", "0123456789"));
        let post = |max_body| ClientRequest {
            url: server.url("/x?y=1"),
            headers: Vec::new(),
            body: b"{}".to_vec(),
            max_body,
        };
        let wire = HttpClient::new(Timeouts { total: Duration::MAX, ..Timeouts::default() });
        wait(async {
            let mut incoming = wire.post(post(10)).await.unwrap();
            assert_eq!((incoming.status, incoming.header("x-a")), (200, Some("1")));
            assert_eq!(incoming.whole().await.unwrap(), b"0123456789");
            let error = wire.post(post(9)).await.unwrap().whole().await.unwrap_err();
            assert!(matches!(error, HttpError::TooLong { limit: 9, .. }), "{error:?}");
        });
        assert_eq!((&*server.last().line, &*server.last().body), ("POST /x?y=1", "{}"));
        let endless = Server::new(|_, client| {
            client.write_all(b"HTTP/1.1 200 OK\r\n")?;
            loop {
                client.write_all(b"x-more: and more\r\n")?;
            }
        });
        let post = ClientRequest {
            url: endless.url("/"),
            headers: Vec::new(),
            body: Vec::new(),
            max_body: 9,
        };
        let error = wait(wire.post(post)).map(|_| ()).unwrap_err();
        assert!(matches!(error, HttpError::Answer { .. }), "{error:?}");
    }

    #[test]
    fn many_can_ask_at_once() {
        let server = ModelServer::answering(|request| {
            let said = request.body["messages"][0]["content"].as_str().unwrap();
            Answer::text(said).in_pieces(5)
        });
        let model = server.openai();
        let ask = |number: usize| {
            let (model, said) = (Arc::clone(&model), format!("number {number}"));
            tokio::spawn(async move {
                let messages = vec![Message::new(Role::User, &*said)];
                let ask = ChatRequest { messages, ..ChatRequest::default() };
                let reply = model.reply(&ask, &|_| {}).await.unwrap();
                assert_eq!(reply.message.content, said);
            })
        };
        wait(async {
            let asked: Vec<_> = (0..50).map(ask).collect();
            for asked in asked {
                asked.await.unwrap();
            }
        });
    }
}
