//! Evaluates pipelines.

use crate::{
    exec::{At, Run, Stop},
    functions::{Body, Function, format, text, uncallable},
    tree::{Command, Operand, Pipe, Term},
    value::{Content, Text, Value},
};

type EvalResult<'v> = Result<Value<'v>, Stop>;

/// The type that an argument must have.
#[derive(Clone, Copy, PartialEq)]
enum ArgumentType {
    Anything,
    Text,
}

impl<'v> Run<'v> {
    /// Evaluates a pipeline, and declares or assigns its variables.
    pub(crate) fn pipe(&mut self, dot: &Value<'v>, pipe: &'v Pipe) -> EvalResult<'v> {
        self.at = At::Pipe(pipe);
        let mut value = None;
        for command in &pipe.commands {
            value = Some(self.command(dot, command, value)?.unbox());
        }
        let value = value.unwrap_or(Value::NONE);
        for variable in &pipe.variables {
            if pipe.assigns {
                self.set(variable, value.clone())?;
            } else {
                self.declare(variable, value.clone())?;
            }
        }
        Ok(value)
    }

    /// Evaluates a command; `last` is the value of the previous one.
    fn command(
        &mut self,
        dot: &Value<'v>,
        command: &'v Command,
        last: Option<Value<'v>>,
    ) -> EvalResult<'v> {
        self.step(1)?;
        let (first, arguments) = (&command.operands[0], &command.operands[1..]);
        let has_arguments = !arguments.is_empty() || last.is_some();
        match &first.term {
            Term::Function(function) => {
                return self.function(dot, *function, first, At::Command(command), arguments, last);
            }
            Term::Field(_) | Term::Chain(..) => return self.operand(dot, first, has_arguments),
            Term::Variable(_, fields) if !fields.is_empty() => {
                return self.operand(dot, first, has_arguments);
            }
            // Go reports these at the start of the pipeline.
            Term::Pipe(_) => {}
            _ => self.at = At::Operand(first),
        }
        if has_arguments {
            return Err(Stop::fault(format!("can't give argument to non-function {first}")));
        }
        match &first.term {
            Term::Nil => Err(Stop::fault("nil is not a command")),
            _ => self.operand(dot, first, false),
        }
    }

    /// Evaluates an operand; whether it has arguments matters only to its last field.
    fn operand(
        &mut self,
        dot: &Value<'v>,
        operand: &'v Operand,
        has_arguments: bool,
    ) -> EvalResult<'v> {
        self.at = match &operand.term {
            // Both evaluate something else first.
            Term::Pipe(_) => self.at,
            Term::Chain(inner, _) => At::Operand(inner),
            _ => At::Operand(operand),
        };
        let (mut value, fields) = match &operand.term {
            Term::Dot => return Ok(dot.clone()),
            Term::Nil => return Ok(Value::NONE),
            Term::Bool(truth) => return Ok(Content::Bool(*truth).into()),
            Term::Number { text, number } => {
                let content = Content::of_number(*number);
                return content
                    .map(Value::from)
                    .ok_or_else(|| Stop::fault(format!("{text} overflows int")));
            }
            Term::Text { text, .. } => return Ok(Content::Text(Text::Given(text)).into()),
            Term::Pipe(pipe) => return self.pipe(dot, pipe),
            Term::Function(function) => {
                return self.function(dot, *function, operand, self.at, &[], None);
            }
            Term::Field(fields) => (dot.clone(), fields),
            Term::Variable(variable, fields) => (self.get(variable)?, fields),
            Term::Chain(inner, fields) => (self.operand(dot, inner, false)?, fields),
        };
        for (index, name) in fields.iter().enumerate() {
            self.step(1 + name.len() / 16)?;
            value = field(value, name, has_arguments && index + 1 == fields.len())?;
        }
        Ok(value)
    }

    /// Evaluates the arguments of a function, and calls it. Errors of the call refer to `node`.
    fn function(
        &mut self,
        dot: &Value<'v>,
        function: Function,
        operand: &'v Operand,
        node: At<'v>,
        arguments: &'v [Operand],
        last: Option<Value<'v>>,
    ) -> EvalResult<'v> {
        self.at = At::Operand(operand);
        let Function { name, needs, variadic, body } = function;
        let (written, count) = (arguments.len(), arguments.len() + usize::from(last.is_some()));
        if variadic && count < needs {
            let wrong = format!("wrong number of args for {name}: want at least {needs}");
            return Err(Stop::fault(format!("{wrong} got {written}")));
        }
        if !variadic && count != needs {
            let wrong = format!("wrong number of args for {name}: want {needs} got {count}");
            return Err(Stop::fault(wrong));
        }
        if let Body::First(wanted) = body {
            return self.first_by_truth(dot, wanted, arguments, last);
        }
        let wanted = |index| match body {
            Body::Format if index == 0 => ArgumentType::Text,
            _ => ArgumentType::Anything,
        };
        let mut values = Vec::with_capacity(count);
        for (index, argument) in arguments.iter().enumerate() {
            values.push(self.argument(dot, argument, wanted(index))?);
        }
        if let Some(last) = last {
            values.push(check_type(last, wanted(written))?);
        }
        self.step(function.reads(&values) / 16)?;
        self.apply(body, &values, arguments.first()).map_err(|stop| match stop {
            Stop::Fault(message) => {
                self.at = node;
                Stop::Fault(format!("error calling {name}: {message}"))
            }
            Stop::Limit(limit) => Stop::Limit(limit),
        })
    }

    /// Calls a function with its arguments; `first` is the source of the first one.
    fn apply(
        &mut self,
        body: Body,
        values: &[Value<'v>],
        first: Option<&Operand>,
    ) -> EvalResult<'v> {
        let contents = || values.iter().map(|it| &it.content).collect::<Vec<_>>();
        let made = match body {
            // Functions that return one of their arguments are handled elsewhere.
            Body::First(_) | Body::Call => {
                let name = first.map(ToString::to_string);
                return Err(Stop::Fault(uncallable(&values[0], name)));
            }
            Body::Value(function) | Body::Reading(function) => {
                Some(function(values).map_err(Stop::Fault)?)
            }
            Body::Text(function) => text(self.room(), |writer| function(writer, &contents())),
            Body::Format => text(self.room(), |writer| format(writer, &contents())),
        };
        let value = made.ok_or_else(|| self.out_of_room())?;
        if let Content::Text(Text::Made(text)) = &value.content {
            self.step(text.len())?;
        }
        Ok(value)
    }

    /// Returns the first argument whose truth is `wanted`, or else the last one.
    fn first_by_truth(
        &mut self,
        dot: &Value<'v>,
        wanted: bool,
        arguments: &'v [Operand],
        last: Option<Value<'v>>,
    ) -> EvalResult<'v> {
        let mut value = Value::NONE;
        for argument in arguments {
            value = self.argument(dot, argument, ArgumentType::Anything)?;
            if value.content.truth() == wanted {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }

    fn argument(
        &mut self,
        dot: &Value<'v>,
        operand: &'v Operand,
        wanted: ArgumentType,
    ) -> EvalResult<'v> {
        self.step(1)?;
        self.at = At::Operand(operand);
        match &operand.term {
            Term::Nil if wanted == ArgumentType::Text => {
                Err(Stop::fault("cannot assign nil to string"))
            }
            Term::Bool(_) | Term::Number { .. } if wanted == ArgumentType::Text => {
                Err(Stop::fault(format!("expected string; found {operand}")))
            }
            _ => check_type(self.operand(dot, operand, false)?, wanted),
        }
    }
}

/// Returns a field of a value.
fn field<'v>(value: Value<'v>, name: &str, has_arguments: bool) -> EvalResult<'v> {
    match value.content {
        Content::Nil if value.boxed => {
            Err(Stop::fault(format!("nil pointer evaluating interface {{}}.{name}")))
        }
        Content::Nil => Ok(Value::NONE),
        Content::Map(_) if has_arguments => {
            Err(Stop::fault(format!("{name} is not a method but has arguments")))
        }
        Content::Map(map) => Ok(map.get(name).map_or(Value::NONE, Value::element)),
        _ => {
            let type_name = value.type_name();
            Err(Stop::fault(format!("can't evaluate field {name} in type {type_name}")))
        }
    }
}

/// Returns a value, if it has the wanted type.
fn check_type(value: Value<'_>, wanted: ArgumentType) -> EvalResult<'_> {
    match value.content {
        _ if wanted == ArgumentType::Anything => Ok(value),
        Content::Text(_) => Ok(value.unbox()),
        Content::Nil if !value.boxed => Err(Stop::fault("invalid value; expected string")),
        Content::Nil => Err(Stop::fault("wrong type for value; expected string; got interface {}")),
        _ => {
            let type_name = value.content.type_name();
            Err(Stop::fault(format!("wrong type for value; expected string; got {type_name}")))
        }
    }
}
