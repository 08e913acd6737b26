//! The parsed form of a template.
//!
//! Blocks are flat: an operation that opens one contains the positions of its `else` and its end.
//! Only pipelines in parentheses are nested, and the parser limits their depth.

use std::fmt;

use crate::{functions::Function, literal::Number, quote::quote};

/// A template with all its definitions.
#[derive(Debug, Clone)]
pub(crate) struct Trees {
    /// The text that it was parsed from, for the positions of errors.
    pub(crate) text: Box<str>,
    /// The template itself, then its definitions.
    pub(crate) trees: Vec<Tree>,
    /// Its name in errors.
    pub(crate) name: Box<str>,
}

/// A template or a definition.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(crate) name: Box<str>,
    pub(crate) operations: Vec<Operation>,
}

/// An operation.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
    /// Writes a text unchanged.
    Text(Box<str>),
    /// Writes the value of a pipeline.
    Print(Pipe),
    /// Opens a block that runs if the value is true.
    If(Branch),
    /// Opens a block that runs if the value is true, with the value as its dot.
    With(Branch),
    /// Opens a block that runs for each item.
    Range(Branch),
    /// Ends the first part of an `If` or `With`: jumps to this operation.
    Else(usize),
    /// Ends the first part of a `Range`.
    Next,
    /// Closes a block.
    End,
    Break,
    Continue,
    /// Executes another tree.
    Invoke(Invocation),
}

/// The operation that opens a block.
#[derive(Debug, Clone)]
pub(crate) struct Branch {
    pub(crate) pipe: Pipe,
    /// The first operation if the value is false or empty.
    pub(crate) otherwise: usize,
    /// The operation that closes the block.
    pub(crate) end: usize,
}

/// A call of another tree.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    pub(crate) position: usize,
    pub(crate) name: Box<str>,
    /// The index of the tree, if it exists.
    pub(crate) tree: Option<usize>,
    pub(crate) pipe: Option<Pipe>,
}

/// Commands, each of which receives the value of the previous one.
#[derive(Debug, Clone)]
pub(crate) struct Pipe {
    pub(crate) position: usize,
    pub(crate) variables: Vec<Variable>,
    /// Whether the variables are only assigned, not declared.
    pub(crate) assigns: bool,
    pub(crate) commands: Vec<Command>,
}

/// Operands, the first of which may be a function.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    pub(crate) position: usize,
    pub(crate) operands: Vec<Operand>,
}

/// The name of a variable, and its number.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    pub(crate) name: Box<str>,
    pub(crate) id: u32,
}

/// An operand of a command.
#[derive(Debug, Clone)]
pub(crate) struct Operand {
    pub(crate) position: usize,
    pub(crate) term: Term,
}

/// The kind of an operand.
#[derive(Debug, Clone)]
pub(crate) enum Term {
    Dot,
    Nil,
    Bool(bool),
    Number { text: Box<str>, number: Number },
    Text { quoted: Box<str>, text: Box<[u8]> },
    Function(Function),
    Field(Vec<Box<str>>),
    Variable(Variable, Vec<Box<str>>),
    Pipe(Pipe),
    Chain(Box<Operand>, Vec<Box<str>>),
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{{template {}", quote(self.name.as_bytes()))?;
        if let Some(pipe) = &self.pipe {
            write!(f, " {pipe}")?;
        }
        f.write_str("}}")
    }
}

impl fmt::Display for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, variable) in self.variables.iter().enumerate() {
            write!(f, "{}{}", if index > 0 { ", " } else { "" }, variable.name)?;
        }
        if !self.variables.is_empty() {
            f.write_str(if self.assigns { " = " } else { " := " })?;
        }
        for (index, command) in self.commands.iter().enumerate() {
            write!(f, "{}{command}", if index > 0 { " | " } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, operand) in self.operands.iter().enumerate() {
            write!(f, "{}{operand:#}", if index > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

/// Writes a pipeline in parentheses only as a part of something else, which the flag `#` requests.
impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = match &self.term {
            Term::Dot => return f.write_str("."),
            Term::Nil => return f.write_str("nil"),
            Term::Bool(value) => return write!(f, "{value}"),
            Term::Number { text, .. } => return f.write_str(text),
            Term::Text { quoted, .. } => return f.write_str(quoted),
            Term::Function(function) => return f.write_str(function.name),
            Term::Pipe(pipe) if f.alternate() => return write!(f, "({pipe})"),
            Term::Pipe(pipe) => return write!(f, "{pipe}"),
            Term::Field(fields) => fields,
            Term::Variable(variable, fields) => {
                f.write_str(&variable.name)?;
                fields
            }
            Term::Chain(operand, fields) => {
                write!(f, "{operand:#}")?;
                fields
            }
        };
        fields.iter().try_for_each(|it| write!(f, ".{it}"))
    }
}
