//! Exports spans to the collector that the environment names.

use std::env;

use prowess_agent::{Collector, Otlp, SpanExporter};

use crate::printer::Printer;

/// Starts the export of spans if the environment asks for it.
pub(crate) fn start(printer: &mut Printer) -> Option<SpanExporter> {
    let collector = match Collector::from_variables(|name: &str| env::var(name).ok()) {
        Ok(collector) => collector?,
        Err(error) => {
            printer.warning(&format!("no spans are sent: {error}"));
            return None;
        }
    };
    let (otlp, sending) = Otlp::start(collector);
    tracing::subscriber::set_global_default(otlp).ok()?;
    Some(sending)
}
