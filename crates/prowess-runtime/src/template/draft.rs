//! A tree that is being parsed, and the blocks that are open in it.

use std::collections::HashMap;

use super::tree::{Invocation, Operation};

/// A tree that is being parsed.
pub(super) struct Draft {
    pub(super) name: Box<str>,
    pub(super) clause: Clause,
    pub(super) operations: Vec<Operation>,
    pub(super) blocks: Vec<Block>,
    /// How many of them are loops whose body is being parsed.
    pub(super) ranges: usize,
    /// The variables that were declared or given a value, and how often each is among them.
    pub(super) variables: Vec<u32>,
    pub(super) known: HashMap<u32, usize>,
    /// The line of the token that was read last.
    pub(super) line: usize,
    /// The line of the action that is being parsed.
    pub(super) action: Option<usize>,
    pub(super) parens: usize,
}

/// How a tree began.
pub(super) enum Clause {
    Template,
    Define,
    /// Ends as an invocation of itself.
    Block(Invocation),
}

/// A block that is open.
pub(super) struct Block {
    /// The operation that opened it.
    pub(super) opened: usize,
    pub(super) kind: Opener,
    /// How many variables there were before it.
    pub(super) variables: usize,
    /// The operation behind its first part.
    pub(super) otherwise: Option<usize>,
    /// Whether it stands for the rest of the block around it, as in `else if`.
    pub(super) continues: bool,
}

/// What opened a block.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Opener {
    If,
    With,
    Range,
}

impl Opener {
    pub(super) const ALL: [Self; 3] = [Self::If, Self::With, Self::Range];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::If => "if",
            Self::With => "with",
            Self::Range => "range",
        }
    }
}

impl Draft {
    pub(super) fn new(name: Box<str>, clause: Clause) -> Self {
        Self {
            name,
            clause,
            operations: Vec::new(),
            blocks: Vec::new(),
            ranges: 0,
            variables: Vec::new(),
            known: HashMap::new(),
            line: 0,
            action: None,
            parens: 0,
        }
    }

    /// Forgets all variables but so many.
    pub(super) fn forget_down_to(&mut self, count: usize) {
        for id in self.variables.drain(count..) {
            *self.known.entry(id).or_default() -= 1;
        }
    }
}
