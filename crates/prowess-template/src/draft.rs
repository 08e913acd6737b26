//! A tree that is being parsed, and the blocks that are open in it.

use std::collections::HashMap;

use crate::tree::{Invocation, Operation};

/// A tree that is being parsed.
pub(crate) struct Draft {
    pub(crate) name: Box<str>,
    pub(crate) clause: Clause,
    pub(crate) operations: Vec<Operation>,
    pub(crate) blocks: Vec<Block>,
    /// The number of open loops whose body is being parsed.
    pub(crate) ranges: usize,
    /// The variables that were declared or assigned, and the number of times each occurs among
    /// them.
    pub(crate) variables: Vec<u32>,
    pub(crate) known: HashMap<u32, usize>,
    /// The line of the last token.
    pub(crate) line: usize,
    /// The line of the action that is being parsed.
    pub(crate) action: Option<usize>,
    pub(crate) parens: usize,
}

/// The start of a tree.
pub(crate) enum Clause {
    Template,
    Define,
    /// A `block`, which ends as an invocation of itself.
    Block(Invocation),
}

/// A block that is open.
pub(crate) struct Block {
    /// The operation that opened it.
    pub(crate) opened: usize,
    pub(crate) kind: Opener,
    /// The number of variables before it.
    pub(crate) variables: usize,
    /// The operation after its first part.
    pub(crate) otherwise: Option<usize>,
    /// Whether it takes the place of the rest of the block around it, as in `else if`.
    pub(crate) continues: bool,
}

/// The keyword that opened a block.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Opener {
    If,
    With,
    Range,
}

impl Opener {
    pub(crate) const ALL: [Self; 3] = [Self::If, Self::With, Self::Range];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::If => "if",
            Self::With => "with",
            Self::Range => "range",
        }
    }
}

impl Draft {
    pub(crate) fn new(name: Box<str>, clause: Clause) -> Self {
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

    /// Forgets all variables except the first `count`.
    pub(crate) fn forget_down_to(&mut self, count: usize) {
        for id in self.variables.drain(count..) {
            *self.known.entry(id).or_default() -= 1;
        }
    }
}
