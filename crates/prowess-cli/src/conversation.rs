//! A conversation with an agent: prints its events, and can be interrupted.

use std::{io, time::Duration};

use anyhow::{Context as _, Result};
use prowess_agent::{AgentAnswer, ModelError, SpanExporter, StopReason, TurnError};
use serde_json::{Value as Json, json};
use tokio::{runtime::Runtime, task::JoinHandle};

use crate::{
    ExitStatus,
    agent::Stack,
    event_renderer::{EventRenderer, View},
    printer::Printer,
    sessions::OpenSession,
    sys::{Signal, SignalKind, interrupt_self, signal},
    telemetry,
};

/// The interval of checks whether the output is still being read.
const LOOK: Duration = Duration::from_millis(500);

/// The end of a turn.
pub(crate) enum TurnEnd {
    /// The agent answered.
    Answered(Box<AgentAnswer>),
    /// The session had already ended: there was nothing to resume.
    Over,
    /// The turn failed.
    Failed(TurnError),
    /// The user interrupted it.
    Interrupted,
    /// The process was asked to terminate.
    Terminated,
}

/// The exit code of a program that was ended by an interrupt, by the convention of shells.
const INTERRUPTED: i32 = 128 + 2;

/// The signals that end a turn.
#[derive(Debug)]
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: signal(SignalKind::terminate())? })
    }
}

/// A conversation with an agent, from its first turn to its last.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) stack: Stack,
    pub(crate) saved: OpenSession,
    pub(crate) renderer: EventRenderer,
    runtime: Runtime,
    signals: Signals,
    sending: Option<SpanExporter>,
}

impl Conversation {
    pub(crate) fn new(
        stack: Stack,
        saved: OpenSession,
        view: View,
        printer: &mut Printer,
    ) -> Result<Self> {
        let sending = telemetry::start(printer);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.context("cannot start the async runtime")?;
        let signals = runtime.block_on(async { Signals::listen() })?;
        Ok(Self { stack, saved, renderer: EventRenderer::new(view), runtime, signals, sending })
    }

    /// Sends a request, or resumes the session, and prints the events. An interrupted turn ends
    /// everything that it has started; the messages so far stay in the session.
    pub(crate) fn turn(
        &mut self,
        prompt: Option<String>,
        printer: &mut Printer,
    ) -> Result<TurnEnd> {
        let Self { stack, saved, renderer, runtime, signals, .. } = self;
        let Stack { agent, events, .. } = stack;
        let turn = async {
            match prompt {
                Some(prompt) => agent.ask(&saved.session, prompt).await.map(Some),
                None => agent.resume(&saved.session).await,
            }
        };
        let turned = runtime.block_on(async {
            let mut turn = Box::pin(turn);
            let mut looks = tokio::time::interval(LOOK);
            loop {
                tokio::select! {
                    biased;
                    _ = signals.interrupt.recv() => break anyhow::Ok(TurnEnd::Interrupted),
                    _ = signals.terminate.recv() => break Ok(TurnEnd::Terminated),
                    Some(event) = events.recv() => renderer.show(event, printer)?,
                    // The model's text may be buffered, so that no write would fail.
                    _ = looks.tick() => {
                        if printer.is_closed() {
                            return Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
                        }
                        renderer.tick(printer);
                    }
                    ended = &mut turn => break Ok(match ended {
                        Ok(Some(answer)) => TurnEnd::Answered(Box::new(answer)),
                        Ok(None) => TurnEnd::Over,
                        Err(error) => TurnEnd::Failed(error),
                    }),
                }
            }
        })?;
        while let Ok(event) = events.try_recv() {
            renderer.show(event, printer)?;
        }
        renderer.end(printer)?;
        Ok(turned)
    }

    /// Ends the program at once at the second interrupt: the first may have no effect, for example
    /// while a write to a stuck reader blocks. Messages are saved as they come.
    pub(crate) fn exit_at_second_interrupt(&self) -> Result<()> {
        let _within = self.runtime.enter();
        let mut interrupt = signal(SignalKind::interrupt())?;
        self.runtime.spawn(async move {
            interrupt.recv().await;
            interrupt.recv().await;
            std::process::exit(INTERRUPTED);
        });
        Ok(())
    }

    /// Waits for a future, unless a signal comes first.
    pub(crate) fn wait<T>(&mut self, future: impl Future<Output = T>) -> Option<T> {
        let Self { runtime, signals, .. } = self;
        runtime.block_on(async {
            tokio::select! {
                done = future => Some(done),
                _ = signals.interrupt.recv() => None,
                _ = signals.terminate.recv() => None,
            }
        })
    }

    /// Returns a signal that has come since the last call: to interrupt, or to terminate.
    pub(crate) fn take_signal(&mut self) -> Option<TurnEnd> {
        let Self { runtime, signals, .. } = self;
        runtime.block_on(async {
            tokio::select! {
                biased;
                _ = signals.terminate.recv() => Some(TurnEnd::Terminated),
                _ = signals.interrupt.recv() => Some(TurnEnd::Interrupted),
                () = std::future::ready(()) => None,
            }
        })
    }

    /// Turns a termination into an interrupt until the task is aborted, for waits that only an
    /// interrupt ends.
    pub(crate) fn interrupt_on_termination(&self) -> Result<JoinHandle<()>> {
        let _within = self.runtime.enter();
        // The handler is installed before the task runs.
        let mut terminate = signal(SignalKind::terminate())?;
        Ok(self.runtime.spawn(async move {
            terminate.recv().await;
            interrupt_self();
        }))
    }

    /// Ends the servers that can write files, unless a signal comes first, and reports which files
    /// they wrote that other programs act on.
    pub(crate) fn close_servers(&mut self, printer: &mut Printer) {
        #[cfg(feature = "mcp")]
        if let Some(servers) = self.stack.servers.clone() {
            self.wait(async move { servers.close().await });
        }
        self.stack.authorizer.take_warnings().iter().for_each(|it| printer.safety_warning(it));
    }

    /// Ends the conversation: sends the last spans, unless a signal comes first, and reports events
    /// that could not be recorded.
    pub(crate) fn end(mut self, printer: &mut Printer) {
        self.close_servers(printer);
        if let Some(sending) = self.sending.take()
            && let Some(Ok(Err(error))) =
                self.wait(async { tokio::task::spawn_blocking(|| sending.finish()).await })
        {
            printer.warning(&error);
        }
        self.stack.authorizer.take_warnings().iter().for_each(|it| printer.safety_warning(it));
        // A person who interrupts a question is not going to answer it.
        self.runtime.shutdown_background();
    }
}

/// Prints the end of a turn; if it has no answer, with the command that resumes it.
pub(crate) fn report(
    turned: &TurnEnd,
    again: Option<&str>,
    renderer: &mut EventRenderer,
    printer: &mut Printer,
) -> Result<ExitStatus> {
    let status = match turned {
        TurnEnd::Answered(answer) => {
            renderer.answer(&answer.message.content, printer)?;
            return Ok(answer_status(answer, printer));
        }
        TurnEnd::Over => {
            printer.note("nothing to continue: the last request was answered");
            return Ok(ExitStatus::Success);
        }
        TurnEnd::Failed(error) => {
            printer.error_text(&error_text(error));
            error.hint().iter().for_each(|it| printer.hint(it));
            error_status(error)
        }
        TurnEnd::Interrupted => {
            printer.error_text("interrupted");
            ExitStatus::Failure
        }
        TurnEnd::Terminated => {
            printer.error_text("terminated");
            ExitStatus::Failure
        }
    };
    if let Some(command) = again {
        printer.note(&format!("the conversation is saved; {command} continues it"));
    }
    Ok(status)
}

/// Returns a turn as a document, with all its events.
pub(crate) fn document(turned: &TurnEnd, conversation: &Conversation) -> Json {
    let Conversation { saved, renderer, stack, .. } = conversation;
    let (answer, error) = match turned {
        TurnEnd::Answered(answer) => {
            (Some(stack.secrets.mask(&answer.message.content).into_owned()), None)
        }
        TurnEnd::Over => (None, None),
        TurnEnd::Failed(error) => (None, Some(error_text(error))),
        TurnEnd::Interrupted => (None, Some("interrupted".to_owned())),
        TurnEnd::Terminated => (None, Some("terminated".to_owned())),
    };
    let events = renderer.lines.iter().filter_map(|it| serde_json::from_str(it).ok());
    json!({
        "answer": answer,
        "error": error,
        "session": saved.name,
        "usage": renderer.turn_spent,
        "cost": renderer.turn_cost,
        "steps": renderer.steps,
        "events": events.collect::<Vec<Json>>(),
    })
}

/// Returns the exit status for the end of a turn.
pub(crate) fn exit_status(turned: &TurnEnd) -> ExitStatus {
    match turned {
        TurnEnd::Answered(answer) if answer.stop == StopReason::Filtered => ExitStatus::Failure,
        TurnEnd::Answered(_) | TurnEnd::Over => ExitStatus::Success,
        TurnEnd::Failed(error) => error_status(error),
        TurnEnd::Interrupted | TurnEnd::Terminated => ExitStatus::Failure,
    }
}

fn answer_status(answer: &AgentAnswer, printer: &mut Printer) -> ExitStatus {
    match answer.stop {
        StopReason::Length => {
            printer.warning("the answer was cut off at the model's output limit");
            ExitStatus::Success
        }
        StopReason::Filtered => {
            printer.error_text("the provider withheld the answer");
            ExitStatus::Failure
        }
        _ => ExitStatus::Success,
    }
}

/// Returns the exit status of an error: a wrong request, or one that could not be carried out.
fn error_status(error: &TurnError) -> ExitStatus {
    match error {
        TurnError::Refused { .. } | TurnError::Fit(_) => ExitStatus::Failure,
        TurnError::Model(ModelError::Refused { .. } | ModelError::TooLong { .. }) => {
            ExitStatus::Failure
        }
        _ => ExitStatus::Error,
    }
}

/// Returns the message of an error, with its causes.
fn error_text(error: &TurnError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(&format!(": {more}"));
        }
        cause = error.source();
    }
    text
}
