//! Whoever has skills to give: the seam through which a host takes them.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use prowess::{Keeper, Library};

use crate::gate::Gate;

/// Whoever has skills to give.
pub trait Provider: Send + Sync + fmt::Debug {
    /// The skills of this moment, all of one state.
    fn library(&self) -> Arc<Library>;
}

impl Provider for Keeper {
    fn library(&self) -> Arc<Library> {
        Self::library(self)
    }
}

impl Provider for Arc<Library> {
    fn library(&self) -> Arc<Library> {
        self.clone()
    }
}

/// The skills of a provider that a gate does not conceal.
#[derive(Debug)]
pub struct Permitted {
    provider: Arc<dyn Provider>,
    gate: Arc<Gate>,
    /// The last library, and what is left of it.
    last: Mutex<Option<(Arc<Library>, Arc<Library>)>>,
}

impl Permitted {
    /// Leaves out what the gate conceals.
    pub fn new(provider: Arc<dyn Provider>, gate: Arc<Gate>) -> Self {
        Self { provider, gate, last: Mutex::default() }
    }
}

impl Provider for Permitted {
    fn library(&self) -> Arc<Library> {
        let whole = self.provider.library();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, left)) = last.as_ref().filter(|it| Arc::ptr_eq(&it.0, &whole)) {
            return left.clone();
        }
        let left = match whole.all().any(|it| self.gate.conceals(it)) {
            true => Arc::new(whole.keeping(|it| !self.gate.conceals(it))),
            false => whole.clone(),
        };
        *last = Some((whole, left.clone()));
        left
    }
}
