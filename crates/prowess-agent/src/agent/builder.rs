//! Builds a useful agent from a model and skills.

use std::sync::Arc;

use prowess::ContextWindow;
use prowess_runtime::{
    Authorizer, DenyAll, Policy, SkillProvider, Tool, Toolbox,
    approval::Approver,
    policy::{Approvals, Decision},
    skill::ActiveSkills,
    tools::ReadSkillFile,
};

use super::Agent;
use crate::{
    builtin::{FitContext, RecordingApprover, Retry, SkillOptions, Skills, ToolLoop},
    middleware::Middleware,
    model::Model,
};

/// Builds an [`Agent`] that uses skills and tools, with defaults that are safe: what does more than
/// read needs an approval, and there is nobody to ask, so it is refused.
///
/// The agent has [`Skills`], the middleware of the host, [`ToolLoop`], [`FitContext`] and
/// [`Retry`], in this order. For any other, add middleware to an [`Agent::new`].
#[derive(Debug, Clone)]
pub struct AgentBuilder {
    model: Arc<dyn Model>,
    system: String,
    skills: Option<Arc<dyn SkillProvider>>,
    skill_options: SkillOptions,
    tools: Vec<Arc<dyn Tool>>,
    policy: Policy,
    approver: Arc<dyn Approver>,
    window: ContextWindow,
    middleware: Vec<Arc<dyn Middleware>>,
}

impl AgentBuilder {
    pub(super) fn new(model: Arc<dyn Model>) -> Self {
        Self {
            model,
            system: String::new(),
            skills: None,
            skill_options: SkillOptions::default(),
            tools: Vec::new(),
            policy: Policy {
                approvals: Approvals::Always,
                writes: Decision::Ask,
                secret_reads: Decision::Ask,
                sends: Decision::Ask,
                ..Policy::default()
            },
            approver: Arc::new(DenyAll),
            window: ContextWindow::default(),
            middleware: Vec::new(),
        }
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn system(self, system: impl Into<String>) -> Self {
        Self { system: system.into(), ..self }
    }

    /// Uses the skills of a library, and offers `read_skill_file` for their files.
    #[must_use]
    pub fn skills(self, skills: impl SkillProvider + 'static) -> Self {
        Self { skills: Some(Arc::new(skills)), ..self }
    }

    /// Sets how skills are chosen and disclosed.
    #[must_use]
    pub fn skill_options(self, skill_options: SkillOptions) -> Self {
        Self { skill_options, ..self }
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Replaces the policy, which asks before every action that does more than read.
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// Replaces the approver, which denies everything. Its answers are reported as events.
    #[must_use]
    pub fn approver(self, approver: impl Approver + 'static) -> Self {
        Self { approver: Arc::new(approver), ..self }
    }

    /// Sets the context window of the model; old messages are summarised to fit into it.
    #[must_use]
    pub fn window(self, window: ContextWindow) -> Self {
        Self { window, ..self }
    }

    /// Adds a middleware behind those already added; all of them are before the tools.
    #[must_use]
    pub fn with(mut self, middleware: impl Middleware + 'static) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Builds the agent.
    pub fn build(self) -> Agent {
        let approver = Arc::new(RecordingApprover::new(self.approver));
        let authorizer = Arc::new(Authorizer::new(self.policy, approver));
        let mut toolbox = Toolbox::new(authorizer.clone());
        let mut agent = Agent::new(self.model).with_system(self.system);
        if let Some(skills) = self.skills {
            let active = Arc::new(ActiveSkills::new(skills.clone()));
            let reader = ReadSkillFile { active: active.clone(), authorizer: authorizer.clone() };
            toolbox = toolbox.with_active(active).with(Arc::new(reader));
            agent = agent.with(Skills::new(Some(skills), self.skill_options).with_gate(authorizer));
        }
        let toolbox = self.tools.into_iter().fold(toolbox, Toolbox::with);
        let agent = self.middleware.into_iter().fold(agent, Agent::with_shared);
        agent
            .with(ToolLoop::new(Arc::new(toolbox)))
            .with(FitContext::new(self.window).with_summaries(None))
            .with(Retry::default())
    }
}
