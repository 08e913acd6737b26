//! One turn of a conversation: what happens is shown, and whoever has enough of it can say so.

use anyhow::{Context as _, Result};
use prowess_agent::{Answer, ModelError, Stop, TurnError};
use serde_json::{Value as Json, json};
use tokio::{
    runtime::Runtime,
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc::UnboundedReceiver,
};

use crate::{
    Status,
    printer::Printer,
    sessions::Kept,
    viewer::{Sight, Viewer},
};

/// How a turn ended.
pub(crate) enum Turned {
    /// With an answer, or without one; nothing if there was nothing to go on with.
    Ended(Result<Option<Answer>, TurnError>),
    /// By a person who has enough of it.
    Interrupted,
    /// By whoever ends the program.
    Terminated,
}

/// Listens for those who have enough.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for any of them.
    pub(crate) async fn any(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// What the work of an agent runs on.
pub(crate) fn runtime() -> Result<Runtime> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.context("cannot wait for anything")
}

/// Waits for a turn, and shows what happens. A turn that is interrupted is dropped, and takes all that
/// it has started with it; what was said is kept.
pub(crate) async fn follow(
    turn: impl Future<Output = Result<Option<Answer>, TurnError>>,
    sights: &mut UnboundedReceiver<Sight>,
    signals: &mut Signals,
    viewer: &mut Viewer,
    printer: &mut Printer,
) -> Result<Turned> {
    let turned = {
        let mut turn = Box::pin(turn);
        loop {
            tokio::select! {
                biased;
                _ = signals.interrupt.recv() => break Turned::Interrupted,
                _ = signals.terminate.recv() => break Turned::Terminated,
                Some(sight) = sights.recv() => viewer.show(sight, printer)?,
                ended = &mut turn => break Turned::Ended(ended),
            }
        }
    };
    while let Ok(sight) = sights.try_recv() {
        viewer.show(sight, printer)?;
    }
    viewer.end(printer)?;
    Ok(turned)
}

/// Says what a turn came to; where it came to nothing, with the command that goes on.
pub(crate) fn report(
    turned: &Turned,
    again: Option<&str>,
    viewer: &mut Viewer,
    printer: &mut Printer,
) -> Result<Status> {
    let status = match turned {
        Turned::Ended(Ok(Some(answer))) => {
            viewer.answer(&answer.message.content, printer)?;
            return Ok(answered(answer, printer));
        }
        Turned::Ended(Ok(None)) => {
            printer.note("there is nothing to go on with: the last answer was given");
            return Ok(Status::Well);
        }
        Turned::Ended(Err(error)) => {
            printer.fault(&reason(error));
            error.hint().iter().for_each(|it| printer.hint(it));
            status(error)
        }
        Turned::Interrupted => {
            printer.fault("it was interrupted");
            Status::AtFault
        }
        Turned::Terminated => {
            printer.fault("it was terminated");
            Status::AtFault
        }
    };
    if let Some(command) = again {
        printer.note(&format!("what was said is kept: `{command}` goes on"));
    }
    Ok(status)
}

/// A turn as a document, with all that happened in it.
pub(crate) fn document(turned: &Turned, kept: &Kept, viewer: &Viewer) -> Json {
    let (answer, error) = match turned {
        Turned::Ended(Ok(answer)) => (answer.as_ref(), None),
        Turned::Ended(Err(error)) => (None, Some(reason(error))),
        Turned::Interrupted => (None, Some("it was interrupted".to_owned())),
        Turned::Terminated => (None, Some("it was terminated".to_owned())),
    };
    let events = viewer.lines.iter().filter_map(|it| serde_json::from_str(it).ok());
    json!({
        "answer": answer.map(|it| &it.message.content),
        "error": error,
        "session": kept.name,
        "usage": viewer.spent,
        "cost": viewer.cost,
        "steps": viewer.steps,
        "events": events.collect::<Vec<Json>>(),
    })
}

/// What a turn came to, for whoever only wants to know that.
pub(crate) fn ended(turned: &Turned) -> Status {
    match turned {
        Turned::Ended(Ok(Some(answer))) if answer.stop == Stop::Filtered => Status::AtFault,
        Turned::Ended(Ok(_)) => Status::Well,
        Turned::Ended(Err(error)) => status(error),
        Turned::Interrupted | Turned::Terminated => Status::AtFault,
    }
}

fn answered(answer: &Answer, printer: &mut Printer) -> Status {
    match answer.stop {
        Stop::Length => {
            printer.warning("the answer was cut off: it is longer than the model may reply");
            Status::Well
        }
        Stop::Filtered => {
            printer.fault("the provider of the model held the answer back");
            Status::AtFault
        }
        _ => Status::Well,
    }
}

/// Whether what was asked is at fault, or we could not.
fn status(error: &TurnError) -> Status {
    match error {
        TurnError::Refused { .. } | TurnError::Fit(_) => Status::AtFault,
        TurnError::Model(ModelError::Refused { .. } | ModelError::TooLong { .. }) => {
            Status::AtFault
        }
        _ => Status::Unable,
    }
}

/// Why there is no answer, with its causes.
fn reason(error: &TurnError) -> String {
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
