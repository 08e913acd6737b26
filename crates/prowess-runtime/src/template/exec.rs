//! Executes operations, on a stack of its own.

use serde_json::Value as Json;

use super::{
    TemplateLimits,
    error::TemplateError,
    format::{Flags, Writer},
    functions::shown,
    tree::{Branch, Command, Invocation, Operand, Operation, Pipe, Tree, Trees, Variable},
    value::{Content, Text, Value, sorted},
};

/// Templates that invoke each other, as in Go.
const DEPTH: usize = 100_000;
/// What a variable or an open block costs in steps, because it takes memory as long as it is there.
const KEPT: usize = 8;

/// Executes a template; what it wrote comes back.
pub(super) fn execute(
    trees: &Trees,
    limits: TemplateLimits,
    data: &Json,
) -> Result<Vec<u8>, TemplateError> {
    let mut run = Run::new(trees, limits);
    match run.execute(Content::of(data).into()) {
        Ok(()) => Ok(run.output),
        Err(stop) => Err(run.error(stop)),
    }
}

/// A template that is being executed.
#[derive(Debug)]
pub(super) struct Run<'v> {
    trees: &'v Trees,
    limits: TemplateLimits,
    steps: u64,
    output: Vec<u8>,
    /// What is being evaluated.
    pub(super) at: At<'v>,
    tree: &'v Tree,
    frames: Vec<Frame<'v>>,
    /// How many of the frames are invocations.
    depth: usize,
    /// The variables of all open blocks, by their numbers.
    variables: Vec<(u32, Value<'v>)>,
    /// The first of them that belongs to this tree.
    base: usize,
}

/// Why an execution stops.
#[derive(Debug)]
pub(super) enum Stop {
    Fault(String),
    Limit(String),
}

/// What is being evaluated, for errors.
#[derive(Debug, Clone, Copy)]
pub(super) enum At<'v> {
    Start,
    Invocation(&'v Invocation),
    Pipe(&'v Pipe),
    Command(&'v Command),
    Operand(&'v Operand),
}

/// What to return to when a block or tree ends.
#[derive(Debug)]
struct Frame<'v> {
    /// The dot before it.
    dot: Value<'v>,
    /// How many variables there were before it.
    variables: usize,
    kind: FrameKind<'v>,
}

#[derive(Debug)]
enum FrameKind<'v> {
    Block,
    Loop(Loop<'v>),
    Invocation { tree: &'v Tree, next: usize, base: usize, at: At<'v> },
}

#[derive(Debug)]
struct Loop<'v> {
    branch: &'v Branch,
    /// The first operation of its body.
    body: usize,
    /// How many variables there are at the start of its body.
    variables: usize,
    items: Items<'v>,
    /// How many of them were taken.
    taken: usize,
}

/// What a loop goes over.
#[derive(Debug)]
enum Items<'v> {
    Count(i64, fn(i64) -> Content<'static>),
    List(&'v [Json]),
    Map(Vec<(&'v str, &'v Json)>),
}

impl Stop {
    pub(super) fn fault(message: impl Into<String>) -> Self {
        Self::Fault(message.into())
    }
}

impl<'v> Run<'v> {
    fn new(trees: &'v Trees, limits: TemplateLimits) -> Self {
        Self {
            trees,
            limits,
            steps: 0,
            output: Vec::new(),
            at: At::Start,
            tree: &trees.trees[0],
            frames: Vec::new(),
            depth: 0,
            variables: Vec::new(),
            base: 0,
        }
    }

    fn execute(&mut self, data: Value<'v>) -> Result<(), Stop> {
        self.variables.push((0, data.clone()));
        let (mut dot, mut next) = (data, 0);
        loop {
            self.step(1)?;
            let Some(operation) = self.tree.operations.get(next) else {
                match self.frames.pop() {
                    Some(frame) => (dot, next) = self.resume(frame),
                    None => return Ok(()),
                }
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
                    self.enter(dot.clone(), variables, FrameKind::Block)?;
                    if !value.content.truth() {
                        next = branch.otherwise;
                    } else if let Operation::With(_) = operation {
                        dot = value;
                    }
                }
                Operation::Range(branch) => {
                    let variables = self.variables.len();
                    match self.begin_loop(&dot, branch, next)? {
                        Some(it) => {
                            self.enter(dot.clone(), variables, FrameKind::Loop(it))?;
                            (dot, next) = self.next_turn(dot)?;
                        }
                        None => {
                            self.enter(dot.clone(), variables, FrameKind::Block)?;
                            next = branch.otherwise;
                        }
                    }
                }
                Operation::Else(end) => next = *end,
                Operation::Next => (dot, next) = self.next_turn(dot)?,
                Operation::Continue => {
                    self.unwind();
                    (dot, next) = self.next_turn(dot)?;
                }
                Operation::Break => {
                    self.unwind();
                    if let Some(FrameKind::Loop(it)) = self.frames.last().map(|it| &it.kind) {
                        next = it.branch.end;
                    }
                }
                Operation::End => {
                    if let Some(frame) = self.frames.pop() {
                        self.variables.truncate(frame.variables);
                        dot = frame.dot;
                    }
                }
                Operation::Invoke(invocation) => {
                    dot = self.invoke(invocation, dot, next)?;
                    next = 0;
                }
            }
        }
    }

    /// Takes up a tree again behind an invocation.
    fn resume(&mut self, frame: Frame<'v>) -> (Value<'v>, usize) {
        self.variables.truncate(frame.variables);
        let FrameKind::Invocation { tree, next, base, at } = frame.kind else {
            // Blocks end before their trees do.
            return (frame.dot, usize::MAX);
        };
        (self.tree, self.base, self.at) = (tree, base, at);
        self.depth -= 1;
        (frame.dot, next)
    }

    fn invoke(
        &mut self,
        invocation: &'v Invocation,
        dot: Value<'v>,
        next: usize,
    ) -> Result<Value<'v>, Stop> {
        self.at = At::Invocation(invocation);
        let Some(tree) = invocation.tree else {
            let name = super::quote::quote(invocation.name.as_bytes());
            return Err(Stop::fault(format!("template {name} not defined")));
        };
        if self.depth == DEPTH {
            return Err(Stop::fault(format!("exceeded maximum template depth ({DEPTH})")));
        }
        let value = match &invocation.pipe {
            Some(pipe) => self.pipe(&dot, pipe)?,
            None => Value::NONE,
        };
        let (tree, base) = (&self.trees.trees[tree], self.base);
        let kind = FrameKind::Invocation { tree: self.tree, next, base, at: self.at };
        self.enter(dot, self.variables.len(), kind)?;
        self.depth += 1;
        (self.tree, self.base) = (tree, self.variables.len());
        self.variables.push((0, value.clone()));
        Ok(value)
    }

    fn enter(&mut self, dot: Value<'v>, variables: usize, kind: FrameKind<'v>) -> Result<(), Stop> {
        self.step(KEPT)?;
        self.frames.push(Frame { dot, variables, kind });
        Ok(())
    }

    /// Evaluates what a loop goes over; nothing when that is empty.
    fn begin_loop(
        &mut self,
        dot: &Value<'v>,
        branch: &'v Branch,
        body: usize,
    ) -> Result<Option<Loop<'v>>, Stop> {
        let value = self.pipe(dot, &branch.pipe)?;
        let items = match value.content {
            Content::Int(_) | Content::Byte(_) if branch.pipe.variables.len() > 1 => {
                let number = shown(&value.content, 'v');
                let message = format!("can't use {number} to iterate over more than one variable");
                return Err(Stop::fault(message));
            }
            Content::Int(count) => Items::Count(count, Content::Int),
            Content::Byte(count) => Items::Count(i64::from(count), |it| Content::Byte(it as u8)),
            Content::List(list) => Items::List(list.items()),
            Content::Map(map) => {
                self.step(KEPT * map.len())?;
                Items::Map(sorted(map))
            }
            Content::Nil => return Ok(None),
            content => {
                let value = shown(&content, 'v');
                return Err(Stop::fault(format!("range can't iterate over {value}")));
            }
        };
        let variables = self.variables.len();
        let it = Loop { branch, body, variables, items, taken: 0 };
        Ok((!it.is_over()).then_some(it))
    }

    /// Goes on with the innermost frame, which is a loop: at its body, or at its end.
    fn next_turn(&mut self, dot: Value<'v>) -> Result<(Value<'v>, usize), Stop> {
        let Some(FrameKind::Loop(it)) = self.frames.last_mut().map(|it| &mut it.kind) else {
            return Ok((dot, usize::MAX));
        };
        self.variables.truncate(it.variables);
        let (branch, body) = (it.branch, it.body);
        let Some((index, item)) = it.take() else { return Ok((dot, branch.end)) };
        let values = match &*branch.pipe.variables {
            [] => return Ok((item, body)),
            [_] => vec![item.clone()],
            [..] => vec![index, item.clone()],
        };
        let top = self.variables.len() - values.len().min(self.variables.len());
        for (offset, (variable, value)) in branch.pipe.variables.iter().zip(values).enumerate() {
            if branch.pipe.assigns {
                self.set(variable, value)?;
            } else if let Some(slot) = self.variables.get_mut(top + offset) {
                slot.1 = value;
            }
        }
        Ok((item, body))
    }

    /// Leaves the blocks inside of the innermost loop.
    fn unwind(&mut self) {
        while self.frames.last().is_some_and(|it| !matches!(it.kind, FrameKind::Loop(_))) {
            self.frames.pop();
        }
    }

    fn print(&mut self, value: &Content<'_>) -> Result<(), Stop> {
        match value {
            Content::Nil => self.write(b"<no value>"),
            Content::Text(Text::Given(text)) => self.write(text),
            Content::Text(Text::Made(text)) => self.write(text),
            value => {
                let mut writer = Writer::new(self.room());
                writer.argument(value, 'v', Flags::default());
                if writer.overflowed {
                    return Err(self.out_of_room());
                }
                self.write(&writer.into_bytes())
            }
        }
    }

    fn write(&mut self, text: &[u8]) -> Result<(), Stop> {
        self.step(text.len())?;
        if self.output.len() + text.len() > self.limits.output {
            return Err(self.out_of_room());
        }
        self.output.extend_from_slice(text);
        Ok(())
    }

    pub(super) fn declare(&mut self, variable: &Variable, value: Value<'v>) -> Result<(), Stop> {
        self.step(KEPT)?;
        self.variables.push((variable.id, value));
        Ok(())
    }

    pub(super) fn set(&mut self, variable: &Variable, value: Value<'v>) -> Result<(), Stop> {
        let index = self.find(variable)?;
        self.variables[index].1 = value;
        Ok(())
    }

    pub(super) fn get(&mut self, variable: &Variable) -> Result<Value<'v>, Stop> {
        let index = self.find(variable)?;
        Ok(self.variables[index].1.clone())
    }

    fn find(&mut self, variable: &Variable) -> Result<usize, Stop> {
        let own = &self.variables[self.base..];
        let found = own.iter().rposition(|it| it.0 == variable.id);
        self.step((own.len() - found.unwrap_or(0)) / 16)?;
        let missing = || Stop::fault(format!("undefined variable: {}", variable.name));
        Ok(self.base + found.ok_or_else(missing)?)
    }

    pub(super) fn step(&mut self, count: usize) -> Result<(), Stop> {
        self.steps += count as u64;
        if self.steps <= self.limits.steps {
            return Ok(());
        }
        Err(Stop::Limit(format!("{} steps", self.limits.steps)))
    }

    /// How many bytes a text may have that is made now.
    pub(super) fn room(&self) -> usize {
        let steps =
            usize::try_from(self.limits.steps.saturating_sub(self.steps)).unwrap_or(usize::MAX);
        self.limits.output.min(steps)
    }

    pub(super) fn out_of_room(&self) -> Stop {
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

impl<'v> Loop<'v> {
    fn is_over(&self) -> bool {
        match &self.items {
            Items::Count(count, _) => self.taken as i64 >= *count,
            Items::List(items) => self.taken >= items.len(),
            Items::Map(entries) => self.taken >= entries.len(),
        }
    }

    /// The next index or key, and the value for it.
    fn take(&mut self) -> Option<(Value<'v>, Value<'v>)> {
        if self.is_over() {
            return None;
        }
        let index = Content::Int(self.taken as i64).into();
        let pair = match &self.items {
            Items::Count(_, number) => (Value::NONE, number(self.taken as i64).into()),
            Items::List(items) => (index, Value::held(&items[self.taken])),
            Items::Map(entries) => {
                let (key, value) = entries[self.taken];
                (Content::Text(Text::Given(key.as_bytes())).into(), Value::held(value))
            }
        };
        self.taken += 1;
        Some(pair)
    }
}
