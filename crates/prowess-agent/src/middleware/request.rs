//! A request on its way to the model, and the turn that it belongs to.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use prowess::{FittedPrompt, Library, Message, Offer, Prompt, Role, lock};
use prowess_runtime::{Tool, skill::ActiveSkills, tool::simplify_schema};
use serde_json::json;

use crate::{
    error::TurnError,
    event::{CONTEXT, Event, EventKind, sources},
    middleware::Middleware,
    model::{ChatRequest, ChatResponse, Delta, Model, TokenUsage, ToolDefinition},
    session::{Session, SessionError},
};

/// A request on its way to the model. Middleware adds to it; the middleware behind sees the
/// additions.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Request {
    /// The turn that it belongs to.
    pub turn: Arc<Turn>,
    /// The parts of the prompt; the tools are filled in last.
    pub prompt: Prompt,
    /// The tools that the model can call. If two have the same name, the first is kept.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Texts placed before the user's request that are not part of the conversation.
    pub context: Vec<Context>,
    /// Skills whose instructions are in the history as the result of a call. A middleware that
    /// removes the call from the history has to disclose them again.
    pub skills_in_history: Vec<SkillInHistory>,
    /// The prompt as it was made to fit; `None` if all of it is sent.
    pub fitted: Option<FittedPrompt>,
    /// The maximum number of tokens in the reply.
    pub max_output: Option<usize>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
}

/// A text that a middleware adds to a request beside the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Context {
    /// Its source, such as `retrieval:notes.md`.
    pub from: String,
    /// The text.
    pub text: String,
}

/// A skill whose instructions are in the history.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillInHistory {
    /// The id of the call whose result they are.
    pub call_id: String,
    /// The skill, as it was disclosed.
    pub offer: Arc<Offer>,
}

impl Context {
    /// Creates a text from a source.
    pub fn new(from: impl Into<String>, text: impl Into<String>) -> Self {
        Self { from: from.into(), text: text.into() }
    }
}

impl SkillInHistory {
    /// Creates a skill whose instructions are the result of a call.
    pub fn new(call_id: impl Into<String>, offer: impl Into<Arc<Offer>>) -> Self {
        Self { call_id: call_id.into(), offer: offer.into() }
    }
}

/// A turn: from a request to its answer.
#[derive(Debug)]
pub struct Turn {
    /// The session it belongs to.
    pub session: Session,
    /// Its number within the session, from 1.
    pub number: usize,
    began: Instant,
    steps: AtomicUsize,
    spent: Mutex<BTreeMap<String, TokenUsage>>,
    active: Mutex<Arc<ActiveSkills>>,
    offered: Mutex<Vec<Arc<dyn Tool>>>,
    skills_in_history: Mutex<Vec<SkillInHistory>>,
    asked: Mutex<Arc<ChatRequest>>,
    middleware: Arc<[Arc<dyn Middleware>]>,
}

/// The tools that were last offered, each with its first description.
#[derive(Default)]
struct DescribedTools(Mutex<Vec<(Arc<dyn Tool>, ToolDefinition)>>);

tokio::task_local! {
    static CURRENT: Arc<Turn>;
}

impl Turn {
    pub(crate) fn new(session: Session, middleware: Arc<[Arc<dyn Middleware>]>) -> Self {
        Self {
            number: session.turns(),
            session,
            began: Instant::now(),
            steps: AtomicUsize::new(0),
            spent: Mutex::default(),
            active: Mutex::default(),
            offered: Mutex::default(),
            skills_in_history: Mutex::default(),
            asked: Mutex::default(),
            middleware,
        }
    }

    /// Returns the number of requests to the model.
    pub fn steps(&self) -> usize {
        self.steps.load(Ordering::Relaxed)
    }

    /// Returns the token usage of all its replies.
    pub fn spent(&self) -> TokenUsage {
        lock(&self.spent).values().copied().sum()
    }

    /// Returns the token usage of each model, by model name.
    pub fn spent_on(&self) -> BTreeMap<String, TokenUsage> {
        lock(&self.spent).clone()
    }

    /// Adds the token usage of a reply to this turn and its session.
    pub(crate) fn spend(&self, model: &str, spent: TokenUsage) -> Result<(), SessionError> {
        *lock(&self.spent).entry(model.to_owned()).or_default() += spent;
        self.session.spend(model, spent)
    }

    /// Returns the time it began.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// Returns the middleware, outermost first.
    pub fn middleware(&self) -> &[Arc<dyn Middleware>] {
        &self.middleware
    }

    /// Activates a skill from now on: a host says that its instructions are in the conversation. A
    /// name that no skill has is active too, for rules about that name.
    pub fn activate(&self, skill: &str) {
        activate(&self.active_skills(), skill);
    }

    /// Returns the names of the active skills, in the order of activation.
    pub fn active(&self) -> Vec<String> {
        self.active_skills().names()
    }

    /// Returns the active skills: guards, servers, tools and the authorizer go by them.
    pub fn active_skills(&self) -> Arc<ActiveSkills> {
        lock(&self.active).clone()
    }

    /// Looks up the active skills in this library from now on.
    pub(crate) fn look_up_skills_in(&self, library: Arc<Library>) {
        let mut active = lock(&self.active);
        let skills = ActiveSkills::new(Arc::new(library));
        active.names().iter().for_each(|it| activate(&skills, it));
        *active = Arc::new(skills);
    }

    /// Returns the tool of this name, among those last offered to the model.
    pub fn tool(&self, name: &str) -> Option<Arc<dyn Tool>> {
        lock(&self.offered).iter().find(|it| it.name() == name).cloned()
    }

    /// Returns the names of the tools last offered to the model.
    pub fn tools(&self) -> Vec<String> {
        lock(&self.offered).iter().map(|it| it.name().to_owned()).collect()
    }

    /// Returns the last request to the model; an empty one before the first.
    pub fn last_request(&self) -> Arc<ChatRequest> {
        lock(&self.asked).clone()
    }

    /// Records that the instructions of a skill are in the history; a skill is recorded once.
    pub fn record_skill(&self, skill: SkillInHistory) {
        let mut all = lock(&self.skills_in_history);
        all.retain(|it| it.offer.name != skill.offer.name);
        all.push(skill);
    }

    /// Returns the skills whose instructions are in the history.
    pub fn skills_in_history(&self) -> Vec<SkillInHistory> {
        lock(&self.skills_in_history).clone()
    }

    pub(crate) fn offer(&self, tools: &[Arc<dyn Tool>]) {
        *lock(&self.offered) = tools.to_vec();
    }

    /// Reports an event to every middleware.
    pub fn note(&self, what: EventKind) {
        self.middleware.iter().for_each(|it| it.note(self, &what));
    }

    /// Returns the turn whose call is being answered, for approvers that are not passed one.
    pub fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Arc::clone).ok()
    }

    /// Runs a future as part of this turn, with its active skills. Without a library the tools use
    /// those that they were created with.
    pub(crate) async fn within<T>(self: &Arc<Self>, future: impl Future<Output = T>) -> T {
        let future = CURRENT.scope(self.clone(), future);
        match self.active_skills() {
            active if active.has_library() => active.within(future).await,
            _ => future.await,
        }
    }

    /// Returns an event with its time and place.
    pub fn event<'a>(&'a self, what: &'a EventKind) -> Event<'a> {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Event {
            at: at.as_millis().try_into().unwrap_or(u64::MAX),
            session: self.session.id(),
            turn: self.number,
            step: self.steps(),
            what,
        }
    }
}

impl Request {
    pub(crate) fn new(turn: Arc<Turn>, system: String) -> Self {
        let history = turn.session.history();
        Self {
            turn,
            prompt: Prompt { system, history, ..Prompt::default() },
            tools: Vec::new(),
            context: Vec::new(),
            skills_in_history: Vec::new(),
            fitted: None,
            max_output: None,
            temperature: None,
        }
    }

    /// Adds a tool, unless another has the same name.
    pub fn offer(&mut self, tool: Arc<dyn Tool>) {
        if self.tools.iter().all(|it| it.name() != tool.name()) {
            self.tools.push(tool);
        }
    }

    /// Returns the definitions of the tools. A tool keeps the same description throughout a
    /// session, so that the provider can cache everything before the conversation.
    pub fn tool_definitions(&self) -> Vec<ToolDefinition> {
        let described = self.turn.session.keep(DescribedTools::default);
        let mut described = lock(&described.0);
        let described: &mut Vec<(Arc<dyn Tool>, ToolDefinition)> = &mut described;
        let known = std::mem::take(described);
        for tool in &self.tools {
            let offered = match known.iter().find(|it| Arc::ptr_eq(&it.0, tool)) {
                Some((_, offered)) => offered.clone(),
                None => ToolDefinition {
                    name: tool.name().to_owned(),
                    description: tool.description().into_owned(),
                    input_schema: simplify_schema(tool.input_schema()),
                },
            };
            described.push((tool.clone(), offered));
        }
        described.iter().map(|it| it.1.clone()).collect()
    }

    /// Returns the complete prompt: with the tools, and the context before the request.
    pub fn complete_prompt(&self) -> Prompt {
        self.filled_by(None::<fn(usize, &mut Message)>)
    }

    /// Like `filled`, and applies `mark` to each message of the history, by its index.
    pub(crate) fn filled_by(&self, mark: Option<impl FnMut(usize, &mut Message)>) -> Prompt {
        let mut prompt = self.prompt.clone();
        if let Some(mut mark) = mark {
            let history = Arc::make_mut(&mut prompt.history).iter_mut();
            history.enumerate().for_each(|(at, it)| mark(at, it));
        }
        prompt.tools = self.tool_definitions().iter().map(|it| json!(it)).collect();
        prompt.marker = self.has_texts().then(|| self.turn.session.marker());
        if self.context.is_empty() {
            return prompt;
        }
        let request = prowess::request(&prompt.history).map(std::ptr::from_ref);
        let at = request.and_then(|it| prompt.history.iter().position(|its| std::ptr::eq(its, it)));
        let context = self.context.iter().map(|it| {
            let mut message = Message::new(Role::User, &*it.text);
            message.rest.insert("name".to_owned(), json!(CONTEXT));
            message.rest.insert("from".to_owned(), json!(it.from));
            message
        });
        let at = at.unwrap_or(prompt.history.len());
        Arc::make_mut(&mut prompt.history).splice(at..at, context);
        prompt
    }

    /// Whether the prompt contains texts of skills or documents.
    fn has_texts(&self) -> bool {
        let Self { prompt, context, .. } = self;
        let opening = self.turn.session.known_marker().map(|it| it.opening());
        let is_fenced = |text: &str| opening.as_ref().is_some_and(|it| text.contains(&**it));
        !prompt.skills.is_empty()
            || !prompt.catalog.is_empty()
            || context.iter().any(|it| is_fenced(&it.text))
            || prompt.history.iter().any(|it| it.role == Role::Tool && is_fenced(&it.content))
    }

    /// Sends the request to the model.
    pub(crate) async fn ask(self, model: &dyn Model) -> Result<ChatResponse, TurnError> {
        let turn = self.turn.clone();
        let tools = self.tool_definitions();
        turn.offer(&self.tools);
        let (max_output, temperature) = (self.max_output, self.temperature);
        let mut messages = match self.fitted {
            Some(fitted) => fitted.messages,
            None => self.complete_prompt().whole(),
        };
        let Prompt { skills, catalog, .. } = self.prompt;
        // A reply may be empty, but most providers reject empty messages.
        messages.retain(|it| it.role != Role::Assistant || !is_empty(it));
        let ask = Arc::new(ChatRequest { messages, tools, max_output, temperature });
        *lock(&turn.asked) = ask.clone();
        let step = turn.steps.fetch_add(1, Ordering::Relaxed) + 1;
        turn.note(EventKind::Asked {
            step,
            model: model.name().to_owned(),
            provider: model.provider().to_owned(),
            sources: sources(
                &ask.messages,
                &skills,
                &catalog,
                turn.session.known_marker().as_ref(),
            ),
            ask: ask.clone(),
        });
        let start = Instant::now();
        let reply = model.reply(&ask, &|it: Delta<'_>| turn.note(EventKind::from_delta(it))).await;
        let took = start.elapsed();
        match reply {
            Ok(reply) => {
                if let Some(message) = reply.remark.clone() {
                    turn.note(EventKind::Warned { message });
                }
                let counted = turn.spend(model.name(), reply.spent);
                turn.note(EventKind::Replied { step, reply: reply.clone(), took });
                counted?;
                Ok(reply)
            }
            Err(error) => {
                let (message, kind) = (error.to_string(), error.kind().to_owned());
                turn.note(EventKind::Failed { step, message, kind, took });
                Err(error.into())
            }
        }
    }
}

/// Activates a skill; if there is none, its name alone.
fn activate(active: &ActiveSkills, skill: &str) {
    if !active.activate(skill) {
        active.activate_name(skill);
    }
}

/// Whether a message has no content at all.
pub(crate) fn is_empty(message: &Message) -> bool {
    message.content.trim().is_empty() && message.calls.is_empty() && message.parts.is_empty()
}
