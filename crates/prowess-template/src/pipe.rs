//! Parses tokens into pipelines.

use crate::{
    functions::Function,
    lex::{Kind, Token},
    literal,
    parse::{ParseResult, Parser},
    quote::{quote, unquote},
    tree::{Command, Operand, Pipe, Term},
};

/// The maximum nesting of parentheses, because pipelines are the only part that is parsed and
/// evaluated recursively.
const DEPTH: usize = 100;

impl<'t> Parser<'t> {
    /// Parses a pipeline, including the token that ends it.
    pub(crate) fn pipe(&mut self, context: &str, end: Kind) -> ParseResult<Pipe> {
        let position = self.peek_past_space().position;
        let mut pipe = Pipe { position, variables: vec![], assigns: false, commands: vec![] };
        self.variables(&mut pipe, context)?;
        loop {
            let token = self.next_past_space();
            if token.kind == end {
                break;
            }
            let begins = match token.kind {
                Kind::Keyword => matches!(&*token.text, "." | "nil"),
                Kind::Bool | Kind::Character | Kind::Complex | Kind::Number => true,
                Kind::Quoted | Kind::Field | Kind::Variable | Kind::Identifier => true,
                kind => kind == Kind::LeftParen,
            };
            if !begins {
                return Err(self.unexpected(&token, context));
            }
            self.put_back(token);
            let command = self.command()?;
            pipe.commands.push(command);
        }
        if pipe.commands.is_empty() {
            return Err(format!("missing value for {context}"));
        }
        for (index, command) in pipe.commands.iter().enumerate().skip(1) {
            if command.operands[0].term.is_constant() {
                let stage = index + 1;
                return Err(format!("non executable command in pipeline stage {stage}"));
            }
        }
        Ok(pipe)
    }

    /// Parses the variables at the start of a pipeline, if it declares or assigns any.
    fn variables(&mut self, pipe: &mut Pipe, context: &str) -> ParseResult<()> {
        while self.peek_past_space().kind == Kind::Variable {
            let token = self.next();
            let behind = self.peek();
            let next = self.peek_past_space();
            let comma = next.kind == Kind::Mark && next.text == ",";
            if !comma && !matches!(next.kind, Kind::Assign | Kind::Declare) {
                // It is an operand, for which it matters whether a space follows.
                if behind.kind == Kind::Space {
                    self.put_back(behind);
                }
                self.put_back(token);
                return Ok(());
            }
            self.next();
            let variable = self.declare(&token.text);
            pipe.variables.push(variable);
            if !comma {
                pipe.assigns = next.kind == Kind::Assign;
                return Ok(());
            }
            if context != "range" || pipe.variables.len() > 1 {
                return Err(format!("too many declarations in {context}"));
            }
            let kind = self.peek_past_space().kind;
            if !matches!(kind, Kind::Variable | Kind::RightDelimiter | Kind::RightParen) {
                return Err("range can only initialize variables".into());
            }
        }
        Ok(())
    }

    /// Parses operands separated by spaces, up to and including a `|`, or up to the end of the
    /// pipeline.
    fn command(&mut self) -> ParseResult<Command> {
        let position = self.peek_past_space().position;
        let mut operands = Vec::new();
        loop {
            self.peek_past_space();
            operands.extend(self.operand()?);
            let token = self.next();
            match token.kind {
                Kind::Space => continue,
                Kind::RightDelimiter | Kind::RightParen => self.put_back(token),
                Kind::Pipe => {}
                _ => return Err(self.unexpected(&token, "operand")),
            }
            break;
        }
        if operands.is_empty() {
            return Err("empty command".into());
        }
        Ok(Command { position, operands })
    }

    /// Parses a term with the fields after it; `None` if the next token does not begin one.
    fn operand(&mut self) -> ParseResult<Option<Operand>> {
        let Some(mut operand) = self.term()? else { return Ok(None) };
        let first = self.peek();
        if first.kind != Kind::Field {
            return Ok(Some(operand));
        }
        let mut more = Vec::new();
        while self.peek().kind == Kind::Field {
            more.push(field(&self.next()));
        }
        if operand.term.is_constant() {
            let term = quote(operand.to_string().as_bytes());
            return Err(format!("unexpected . after term {term}"));
        }
        if let Term::Field(fields) | Term::Variable(_, fields) = &mut operand.term {
            fields.append(&mut more);
            operand.position = first.position;
            return Ok(Some(operand));
        }
        let term = Term::Chain(Box::new(operand), more);
        Ok(Some(Operand { position: first.position, term }))
    }

    fn term(&mut self) -> ParseResult<Option<Operand>> {
        let token = self.next_past_space();
        let term = match token.kind {
            Kind::Keyword if token.text == "." => Term::Dot,
            Kind::Keyword if token.text == "nil" => Term::Nil,
            Kind::Bool => Term::Bool(token.text == "true"),
            Kind::Field => Term::Field(vec![field(&token)]),
            Kind::Variable => Term::Variable(self.resolve_variable(&token.text)?, Vec::new()),
            Kind::Identifier => {
                Term::Function(Function::find(&token.text).ok_or_else(|| {
                    format!("function {} not defined", quote(token.text.as_bytes()))
                })?)
            }
            Kind::Character | Kind::Complex | Kind::Number => {
                let number = match token.kind {
                    Kind::Character => literal::character(&token.text)?,
                    Kind::Complex => literal::complex(&token.text)?,
                    _ => literal::number(&token.text)?,
                };
                Term::Number { text: (*token.text).into(), number }
            }
            Kind::Quoted => {
                let text = unquote(&token.text).ok_or("invalid syntax")?.into();
                Term::Text { quoted: (*token.text).into(), text }
            }
            Kind::LeftParen if self.draft.parens == DEPTH => {
                return Err("max expression depth exceeded".into());
            }
            Kind::LeftParen => {
                self.draft.parens += 1;
                let pipe = self.pipe("parenthesized pipeline", Kind::RightParen)?;
                self.draft.parens -= 1;
                Term::Pipe(pipe)
            }
            _ => {
                self.put_back(token);
                return Ok(None);
            }
        };
        Ok(Some(Operand { position: token.position, term }))
    }
}

impl Term {
    /// Whether it is a constant, which cannot follow a `|` or precede a field.
    fn is_constant(&self) -> bool {
        matches!(
            self,
            Self::Dot | Self::Nil | Self::Bool(_) | Self::Number { .. } | Self::Text { .. }
        )
    }
}

/// Returns the name of a field, without its dot.
fn field(token: &Token<'_>) -> Box<str> {
    token.text[1..].into()
}
