//! Executes operations, with a stack of its own.

use serde_json::Value as Json;

use crate::{
    TemplateLimits,
    error::TemplateError,
    format::{Flags, Writer},
    quote::quote,
    range::Loop,
    shell,
    tree::{Branch, Command, Invocation, Operand, Operation, Pipe, Tree, Trees, Variable},
    value::{Content, Value},
};

/// The maximum depth of templates that invoke each other, as in Go.
const DEPTH: usize = 100_000;
/// The maximum nesting of lists and maps, because they are formatted recursively.
const DATA_DEPTH: usize = 200;
/// The cost in steps of an open block, a variable or a sorted key: each uses memory while it
/// exists.
const MEMORY_STEPS: usize = 8;

/// Executes a template and returns its output.
pub(crate) fn execute(
    trees: &Trees,
    limits: TemplateLimits,
    data: &Json,
    is_command: bool,
) -> Result<Vec<u8>, TemplateError> {
    let mut run = Run { is_command, ..Run::new(trees, limits) };
    match run.execute(data) {
        Ok(()) => Ok(run.output),
        Err(stop) => Err(run.error(stop)),
    }
}

/// The state of an execution.
#[derive(Debug)]
pub(crate) struct Run<'v> {
    trees: &'v Trees,
    limits: TemplateLimits,
    steps: u64,
    output: Vec<u8>,
    /// Whether printed values are quoted for a shell.
    is_command: bool,
    /// The part of the template that is being evaluated.
    pub(crate) at: At<'v>,
    tree: &'v Tree,
    /// The trees to return to, innermost last.
    callers: Vec<Caller<'v>>,
    /// The blocks that are open.
    blocks: Vec<Block<'v>>,
    /// The variables of all of them, by number.
    variables: Vec<(u32, Value<'v>)>,
    /// The index of the first one that belongs to this tree.
    base: usize,
}

/// The reason an execution stops.
#[derive(Debug)]
pub(crate) enum Stop {
    Fault(String),
    Limit(String),
}

/// The part of a template that is being evaluated, for errors.
#[derive(Debug, Clone, Copy)]
pub(crate) enum At<'v> {
    Start,
    Invocation(&'v Invocation),
    Pipe(&'v Pipe),
    Command(&'v Command),
    Operand(&'v Operand),
}

/// A tree that has invoked another, and the position to return to.
#[derive(Debug)]
struct Caller<'v> {
    tree: &'v Tree,
    next: usize,
    dot: Value<'v>,
    base: usize,
    at: At<'v>,
}

/// An open block, with the dot and the number of variables before it.
#[derive(Debug)]
struct Block<'v> {
    dot: Value<'v>,
    variables: usize,
    kind: Kind<'v>,
}

#[derive(Debug)]
enum Kind<'v> {
    Plain,
    Loop(Loop<'v>),
    /// The `else` of a loop.
    Empty(&'v Branch),
}

impl Stop {
    pub(crate) fn fault(message: impl Into<String>) -> Self {
        Self::Fault(message.into())
    }
}

impl<'v> Run<'v> {
    fn new(trees: &'v Trees, limits: TemplateLimits) -> Self {
        Self {
            trees,
            limits,
            steps: 0,
            is_command: false,
            output: Vec::new(),
            at: At::Start,
            tree: &trees.trees[0],
            callers: Vec::new(),
            blocks: Vec::new(),
            variables: Vec::new(),
            base: 0,
        }
    }

    fn execute(&mut self, data: &'v Json) -> Result<(), Stop> {
        if is_deeper(data, DATA_DEPTH) {
            return Err(Stop::Limit(format!("{DATA_DEPTH} lists and maps in each other")));
        }
        let (mut dot, mut next) = (Value::from(Content::of(data)), 0);
        self.variables.push((0, dot.clone()));
        loop {
            self.step(1)?;
            let Some(operation) = self.tree.operations.get(next) else {
                let Some(caller) = self.callers.pop() else { return Ok(()) };
                self.variables.truncate(self.base);
                (self.tree, self.base, self.at) = (caller.tree, caller.base, caller.at);
                (dot, next) = (caller.dot, caller.next);
                continue;
            };
            next += 1;
            match operation {
                Operation::Text(text) => self.write(text.as_bytes())?,
                Operation::Print(pipe) => {
                    let value = self.pipe(&dot, pipe)?;
                    if pipe.variables.is_empty() {
                        self.print(&value.content)?;
                    }
                }
                Operation::If(branch) | Operation::With(branch) => {
                    let variables = self.variables.len();
                    let value = self.pipe(&dot, &branch.pipe)?;
                    self.open(&dot, variables, Kind::Plain)?;
                    if !value.content.truth() {
                        next = branch.otherwise;
                    } else if let Operation::With(_) = operation {
                        dot = value;
                    }
                }
                Operation::Range(branch) => {
                    let variables = self.variables.len();
                    let kind = self.range(&dot, branch, next)?;
                    self.open(&dot, variables, kind)?;
                    (dot, next) = self.next_turn(dot)?;
                }
                Operation::Else(end) => next = *end,
                Operation::Next => (dot, next) = self.next_turn(dot)?,
                Operation::Continue => {
                    self.leave_until(|it| matches!(it, Kind::Loop(_)));
                    (dot, next) = self.next_turn(dot)?;
                }
                Operation::Break => {
                    // Go treats the `else` of a loop as a part of it here, though not above.
                    self.leave_until(|it| !matches!(it, Kind::Plain));
                    next = match self.blocks.last().map(|it| &it.kind) {
                        Some(Kind::Loop(it)) => it.branch.end,
                        Some(Kind::Empty(branch)) => branch.end,
                        _ => next,
                    };
                }
                Operation::End => {
                    if let Some(block) = self.blocks.pop() {
                        self.variables.truncate(block.variables);
                        dot = block.dot;
                    }
                }
                Operation::Invoke(invocation) => {
                    dot = self.invoke(invocation, dot, next)?;
                    next = 0;
                }
            }
        }
    }

    fn open(&mut self, dot: &Value<'v>, variables: usize, kind: Kind<'v>) -> Result<(), Stop> {
        self.step(MEMORY_STEPS)?;
        self.blocks.push(Block { dot: dot.clone(), variables, kind });
        Ok(())
    }

    /// Begins a loop whose body is at `body`.
    fn range(
        &mut self,
        dot: &Value<'v>,
        branch: &'v Branch,
        body: usize,
    ) -> Result<Kind<'v>, Stop> {
        let value = self.pipe(dot, &branch.pipe)?;
        if let Content::Map(map) = value.content {
            self.step(MEMORY_STEPS * map.len())?;
        }
        let begun = Loop::new(&value.content, branch, body, self.variables.len());
        Ok(begun.map_err(Stop::Fault)?.map_or(Kind::Empty(branch), Kind::Loop))
    }

    /// Continues the innermost block, which is a loop: at its body, at its end, or at its `else`.
    fn next_turn(&mut self, dot: Value<'v>) -> Result<(Value<'v>, usize), Stop> {
        let it = match self.blocks.last_mut().map(|it| &mut it.kind) {
            Some(Kind::Loop(it)) => it,
            Some(Kind::Empty(branch)) => return Ok((dot, branch.otherwise)),
            _ => return Ok((dot, usize::MAX)),
        };
        self.variables.truncate(it.variables);
        let (branch, body) = (it.branch, it.body);
        let Some((index, item)) = it.take() else { return Ok((dot, branch.end)) };
        let Pipe { variables, assigns, .. } = &branch.pipe;
        // A single variable is the item; of two, the first is its index.
        let values = [index, item.clone()].into_iter().skip(2 - variables.len().min(2));
        let declared = self.variables.len().saturating_sub(variables.len());
        for (offset, (variable, value)) in variables.iter().zip(values).enumerate() {
            if *assigns {
                self.set(variable, value)?;
            } else {
                self.variables[declared + offset].1 = value;
            }
        }
        Ok((item, body))
    }

    /// Leaves blocks until one matches.
    fn leave_until(&mut self, meant: fn(&Kind<'v>) -> bool) {
        while self.blocks.pop_if(|it| !meant(&it.kind)).is_some() {}
    }

    /// Switches to another tree, and returns its dot.
    fn invoke(
        &mut self,
        invocation: &'v Invocation,
        dot: Value<'v>,
        next: usize,
    ) -> Result<Value<'v>, Stop> {
        self.at = At::Invocation(invocation);
        let Some(tree) = invocation.tree else {
            let name = quote(invocation.name.as_bytes());
            return Err(Stop::fault(format!("template {name} not defined")));
        };
        if self.callers.len() == DEPTH {
            return Err(Stop::fault(format!("exceeded maximum template depth ({DEPTH})")));
        }
        let value = match &invocation.pipe {
            Some(pipe) => self.pipe(&dot, pipe)?,
            None => Value::NONE,
        };
        self.step(MEMORY_STEPS)?;
        let (base, at) = (self.base, self.at);
        self.callers.push(Caller { tree: self.tree, next, dot, base, at });
        (self.tree, self.base) = (&self.trees.trees[tree], self.variables.len());
        self.variables.push((0, value.clone()));
        Ok(value)
    }

    fn print(&mut self, value: &Content<'_>) -> Result<(), Stop> {
        match value {
            Content::Nil => self.write_value(b"<no value>"),
            Content::Text(text) => self.write_value(text),
            value => {
                let mut writer = Writer::new(self.room());
                writer.argument(value, 'v', Flags::default());
                if writer.overflowed {
                    return Err(self.out_of_room());
                }
                self.write_value(&writer.into_bytes())
            }
        }
    }

    fn write_value(&mut self, text: &[u8]) -> Result<(), Stop> {
        if !self.is_command {
            return self.write(text);
        }
        // Determining the shell context reads the whole output again.
        self.step(self.output.len())?;
        let quoted = shell::quote(&self.output, text).map_err(Stop::Fault)?;
        self.write(&quoted)
    }

    fn write(&mut self, text: &[u8]) -> Result<(), Stop> {
        self.step(text.len())?;
        if self.output.len() + text.len() > self.limits.output {
            return Err(self.out_of_room());
        }
        self.output.extend_from_slice(text);
        Ok(())
    }

    pub(crate) fn declare(&mut self, variable: &Variable, value: Value<'v>) -> Result<(), Stop> {
        self.step(MEMORY_STEPS)?;
        self.variables.push((variable.id, value));
        Ok(())
    }

    pub(crate) fn set(&mut self, variable: &Variable, value: Value<'v>) -> Result<(), Stop> {
        let index = self.find(variable)?;
        self.variables[index].1 = value;
        Ok(())
    }

    pub(crate) fn get(&mut self, variable: &Variable) -> Result<Value<'v>, Stop> {
        let index = self.find(variable)?;
        Ok(self.variables[index].1.clone())
    }

    fn find(&mut self, variable: &Variable) -> Result<usize, Stop> {
        let own = &self.variables[self.base..];
        let found = own.iter().rposition(|it| it.0 == variable.id);
        self.step((own.len() - found.unwrap_or(0)) / 16)?;
        Ok(self.base
            + found.ok_or_else(|| Stop::fault(format!("undefined variable: {}", variable.name)))?)
    }

    pub(crate) fn step(&mut self, count: usize) -> Result<(), Stop> {
        self.steps += count as u64;
        if self.steps <= self.limits.steps {
            return Ok(());
        }
        Err(Stop::Limit(format!("{} steps", self.limits.steps)))
    }

    /// Returns the maximum size in bytes of a text that is created now.
    pub(crate) fn room(&self) -> usize {
        let steps = self.limits.steps.saturating_sub(self.steps);
        self.limits.output.min(usize::try_from(steps).unwrap_or(usize::MAX))
    }

    pub(crate) fn out_of_room(&self) -> Stop {
        Stop::Limit(if self.room() < self.limits.output {
            format!("{} steps", self.limits.steps)
        } else {
            format!("{} bytes of output", self.limits.output)
        })
    }

    fn error(&self, stop: Stop) -> TemplateError {
        let name = self.trees.name.to_string();
        let message = match stop {
            Stop::Fault(message) => message,
            Stop::Limit(limit) => return TemplateError::Limit { name, limit },
        };
        let (position, context) = match self.at {
            At::Start => (0, String::new()),
            At::Invocation(it) => (it.position, it.to_string()),
            At::Pipe(it) => (it.position, it.to_string()),
            At::Command(it) => (it.position, it.to_string()),
            At::Operand(it) => (it.position, it.to_string()),
        };
        let before = &self.trees.text[..position];
        let line = 1 + before.matches('\n').count();
        let column = position - before.rfind('\n').map_or(0, |it| it + 1);
        let executing = self.tree.name.to_string();
        TemplateError::Execute { name, line, column, executing, context, message }
    }
}

/// Whether lists and maps are nested more than `depth` levels deep.
fn is_deeper(data: &Json, depth: usize) -> bool {
    let mut left = vec![(data, 0)];
    while let Some((value, level)) = left.pop() {
        if level > depth {
            return true;
        }
        match value {
            Json::Array(items) => left.extend(items.iter().map(|it| (it, level + 1))),
            Json::Object(map) => left.extend(map.values().map(|it| (it, level + 1))),
            _ => {}
        }
    }
    false
}
