//! Parses tokens into operations.

use std::{
    collections::{BTreeMap, HashMap},
    mem,
};

use crate::{
    draft::{Block, Clause, Draft, Opener},
    error::TemplateError,
    lex::{Kind, Lexer, Token},
    quote::{quote, unquote},
    tree::{Branch, Invocation, Operation, Tree, Trees, Variable},
    unicode::to_lossy,
};

/// The maximum size of a template in bytes.
const LENGTH: usize = 1 << 20;

/// Parses a template and its definitions.
pub(crate) fn parse(name: &str, text: &str) -> Result<Trees, TemplateError> {
    if text.len() > LENGTH {
        let limit = format!("{LENGTH} bytes of template");
        return Err(TemplateError::Limit { name: name.to_owned(), limit });
    }
    let mut parser = Parser::new(name, text);
    let trees = parser.trees().map_err(|message| {
        let line = parser.draft.line;
        TemplateError::Parse { name: name.to_owned(), line, message }
    })?;
    Ok(Trees { text: text.into(), trees, name: name.into() })
}

pub(crate) type ParseResult<T> = Result<T, String>;

/// A template that is being parsed.
pub(crate) struct Parser<'t> {
    name: &'t str,
    lexer: Lexer<'t>,
    /// Tokens that were peeked at and put back, the next one last.
    ahead: Vec<Token<'t>>,
    /// The tree that is being parsed.
    pub(crate) draft: Draft,
    /// The trees around it, which continue when it ends.
    around: Vec<Draft>,
    done: BTreeMap<Box<str>, Vec<Operation>>,
    ids: HashMap<Box<str>, u32>,
}

impl<'t> Parser<'t> {
    fn new(name: &'t str, text: &'t str) -> Self {
        let mut parser = Self {
            name,
            lexer: Lexer::new(text),
            ahead: Vec::new(),
            draft: Draft::new(name.into(), Clause::Template),
            around: Vec::new(),
            done: BTreeMap::new(),
            ids: HashMap::new(),
        };
        parser.declare("$");
        parser
    }

    fn trees(&mut self) -> ParseResult<Vec<Tree>> {
        loop {
            let outermost = self.around.is_empty() && self.draft.blocks.is_empty();
            match self.peek_past_space().kind {
                Kind::End if outermost => break,
                Kind::End => return Err("unexpected EOF".into()),
                Kind::LeftDelimiter if outermost => {
                    let delimiter = self.next();
                    if self.peek_past_space().is_keyword("define") {
                        self.next();
                        self.define()?;
                    } else {
                        self.put_back(delimiter);
                        self.item()?;
                    }
                }
                _ => self.item()?,
            }
        }
        self.finish()?;
        Ok(resolve(self.name, mem::take(&mut self.done)))
    }

    /// Parses text, or an action.
    fn item(&mut self) -> ParseResult<()> {
        let token = self.next_past_space();
        match token.kind {
            Kind::Text => self.draft.operations.push(Operation::Text(token.text.into())),
            Kind::LeftDelimiter => {
                self.draft.action = Some(token.line);
                self.action()?;
            }
            _ => return Err(self.unexpected(&token, "input")),
        }
        Ok(())
    }

    fn action(&mut self) -> ParseResult<()> {
        let token = self.next_past_space();
        if let Some(opener) = Opener::ALL.into_iter().find(|it| token.is_keyword(it.as_str())) {
            // Until the next action ends, Go treats what follows as a part of this one.
            return self.open(opener, false);
        }
        match &*token.text {
            "else" => self.else_clause()?,
            "end" => self.end()?,
            "block" => self.block()?,
            "template" => self.template()?,
            "break" => self.leave("{{break}}", Operation::Break)?,
            "continue" => self.leave("{{continue}}", Operation::Continue)?,
            _ => {
                self.put_back(token);
                let pipe = self.pipe("command", Kind::RightDelimiter)?;
                self.draft.operations.push(Operation::Print(pipe));
            }
        }
        self.draft.action = None;
        Ok(())
    }

    /// Opens a block, after its keyword.
    fn open(&mut self, kind: Opener, continues: bool) -> ParseResult<()> {
        let variables = self.draft.variables.len();
        let pipe = self.pipe(kind.as_str(), Kind::RightDelimiter)?;
        let branch = Branch { pipe, otherwise: 0, end: 0 };
        let opened = self.draft.operations.len();
        self.draft.blocks.push(Block { opened, kind, variables, otherwise: None, continues });
        self.draft.ranges += usize::from(kind == Opener::Range);
        self.draft.operations.push(match kind {
            Opener::If => Operation::If(branch),
            Opener::With => Operation::With(branch),
            Opener::Range => Operation::Range(branch),
        });
        Ok(())
    }

    /// Parses an `else`, alone or with the keyword of a block that takes the place of its rest.
    fn else_clause(&mut self) -> ParseResult<()> {
        let next = self.peek_past_space();
        let opener = [Opener::If, Opener::With].into_iter().find(|it| next.is_keyword(it.as_str()));
        if opener.is_none() {
            self.expect(Kind::RightDelimiter, "else")?;
        }
        self.draft.action = None;
        let Draft { operations, blocks, ranges, .. } = &mut self.draft;
        let Some(block) = blocks.last_mut() else { return Err(self.misplaced_else()) };
        if block.otherwise.is_some() {
            return Err("expected end; found {{else}}".into());
        }
        if block.kind == Opener::Range {
            *ranges -= 1;
            operations.push(Operation::Next);
        } else {
            operations.push(Operation::Else(0));
        }
        block.otherwise = Some(operations.len());
        match opener.filter(|it| *it == block.kind) {
            Some(opener) => {
                self.next();
                self.open(opener, true)
            }
            None => Ok(()),
        }
    }

    /// Parses an `end`, of a block or of a tree.
    fn end(&mut self) -> ParseResult<()> {
        self.expect(Kind::RightDelimiter, "end")?;
        if self.draft.blocks.is_empty() {
            return self.end_tree();
        }
        while let Some(block) = self.draft.blocks.pop() {
            self.close(&block);
            if !block.continues {
                break;
            }
        }
        Ok(())
    }

    /// Closes a block, now that the positions of its parts are known.
    fn close(&mut self, block: &Block) {
        let Draft { operations, ranges, .. } = &mut self.draft;
        if block.kind == Opener::Range && block.otherwise.is_none() {
            *ranges -= 1;
            operations.push(Operation::Next);
        }
        let end = operations.len();
        operations.push(Operation::End);
        if let Some(otherwise) = block.otherwise
            && let Operation::Else(target) = &mut operations[otherwise - 1]
        {
            *target = end;
        }
        if let Operation::If(branch) | Operation::With(branch) | Operation::Range(branch) =
            &mut operations[block.opened]
        {
            (branch.otherwise, branch.end) = (block.otherwise.unwrap_or(end), end);
        }
        self.draft.forget_down_to(block.variables);
    }

    fn define(&mut self) -> ParseResult<()> {
        self.begin("".into(), Clause::Define);
        (_, self.draft.name) = self.template_name("define clause")?;
        self.expect(Kind::RightDelimiter, "define clause")?;
        Ok(())
    }

    fn block(&mut self) -> ParseResult<()> {
        let (position, name) = self.template_name("block clause")?;
        let pipe = Some(self.pipe("block clause", Kind::RightDelimiter)?);
        let invocation = Invocation { position, name: name.clone(), tree: None, pipe };
        self.begin(name, Clause::Block(invocation));
        Ok(())
    }

    fn begin(&mut self, name: Box<str>, clause: Clause) {
        let draft = Draft::new(name, clause);
        self.around.push(mem::replace(&mut self.draft, draft));
        self.declare("$");
    }

    fn end_tree(&mut self) -> ParseResult<()> {
        if self.around.is_empty() {
            return Err("unexpected {{end}}".into());
        }
        self.finish()?;
        if let Some(outer) = self.around.pop()
            && let Clause::Block(invocation) = mem::replace(&mut self.draft, outer).clause
        {
            self.draft.operations.push(Operation::Invoke(invocation));
        }
        Ok(())
    }

    /// Returns the error about an `else` outside of all blocks.
    fn misplaced_else(&mut self) -> String {
        let clause = match self.draft.clause {
            Clause::Template => "",
            Clause::Define => " in define clause",
            Clause::Block(_) => {
                // Go reports the start of the block.
                self.draft.line = self.around.last().map_or(0, |it| it.line);
                " in block clause"
            }
        };
        format!("unexpected {{{{else}}}}{clause}")
    }

    /// Stores the parsed tree. Of two with the same name, an empty one gives way to the other.
    fn finish(&mut self) -> ParseResult<()> {
        let Draft { name, operations, .. } = &mut self.draft;
        match self.done.get(name) {
            Some(other) if !is_blank(other) && is_blank(operations) => {}
            Some(other) if !is_blank(other) => {
                let name = quote(name.as_bytes());
                return Err(format!("template: multiple definition of template {name}"));
            }
            _ => drop(self.done.insert(mem::take(name), mem::take(operations))),
        }
        Ok(())
    }

    fn template(&mut self) -> ParseResult<()> {
        let context = "template clause";
        let (position, name) = self.template_name(context)?;
        let pipe = if self.peek_past_space().kind == Kind::RightDelimiter {
            self.next();
            None
        } else {
            Some(self.pipe(context, Kind::RightDelimiter)?)
        };
        let invocation = Invocation { position, name, tree: None, pipe };
        self.draft.operations.push(Operation::Invoke(invocation));
        Ok(())
    }

    /// Parses the name of a template, and returns its position.
    fn template_name(&mut self, context: &str) -> ParseResult<(usize, Box<str>)> {
        let token = self.expect(Kind::Quoted, context)?;
        let name = unquote(&token.text).ok_or("invalid syntax")?;
        Ok((token.position, to_lossy(&name).into()))
    }

    /// Parses a `break` or `continue`.
    fn leave(&mut self, word: &str, operation: Operation) -> ParseResult<()> {
        self.expect(Kind::RightDelimiter, word)?;
        if self.draft.ranges == 0 {
            return Err(format!("{word} outside {{{{range}}}}"));
        }
        self.draft.operations.push(operation);
        Ok(())
    }

    pub(crate) fn declare(&mut self, name: &str) -> Variable {
        let variable = self.variable(name);
        self.draft.variables.push(variable.id);
        *self.draft.known.entry(variable.id).or_default() += 1;
        variable
    }

    pub(crate) fn resolve_variable(&mut self, name: &str) -> ParseResult<Variable> {
        let variable = self.variable(name);
        if self.draft.known.get(&variable.id).is_none_or(|it| *it == 0) {
            return Err(format!("undefined variable {}", quote(name.as_bytes())));
        }
        Ok(variable)
    }

    fn variable(&mut self, name: &str) -> Variable {
        let next = self.ids.len() as u32;
        Variable { name: name.into(), id: *self.ids.entry(name.into()).or_insert(next) }
    }

    fn expect(&mut self, kind: Kind, context: &str) -> ParseResult<Token<'t>> {
        let token = self.next_past_space();
        if token.kind == kind { Ok(token) } else { Err(self.unexpected(&token, context)) }
    }

    pub(crate) fn unexpected(&self, token: &Token<'t>, context: &str) -> String {
        if token.kind != Kind::Error {
            return format!("unexpected {token} in {context}");
        }
        match self.draft.action.filter(|it| *it != token.line) {
            Some(line) => {
                let action = if token.text.ends_with(" action") { "" } else { " in action" };
                format!("{token}{action} started at {}:{line}", self.name)
            }
            None => token.to_string(),
        }
    }

    pub(crate) fn next(&mut self) -> Token<'t> {
        self.ahead.pop().unwrap_or_else(|| {
            let token = self.lexer.next();
            self.draft.line = token.line;
            token
        })
    }

    pub(crate) fn next_past_space(&mut self) -> Token<'t> {
        loop {
            let token = self.next();
            if token.kind != Kind::Space {
                return token;
            }
        }
    }

    pub(crate) fn put_back(&mut self, token: Token<'t>) {
        self.ahead.push(token);
    }

    pub(crate) fn peek(&mut self) -> Token<'t> {
        let token = self.next();
        self.put_back(token.clone());
        token
    }

    /// Peeks at the next token that is not a space, and drops the space before it.
    pub(crate) fn peek_past_space(&mut self) -> Token<'t> {
        let token = self.next_past_space();
        self.put_back(token.clone());
        token
    }
}

/// Puts the template before its definitions, and resolves each invocation.
fn resolve(own: &str, mut done: BTreeMap<Box<str>, Vec<Operation>>) -> Vec<Tree> {
    let first = done.remove_entry(own);
    let mut trees: Vec<Tree> =
        first.into_iter().chain(done).map(|(name, operations)| Tree { name, operations }).collect();
    let indices: HashMap<Box<str>, usize> =
        trees.iter().enumerate().map(|(index, tree)| (tree.name.clone(), index)).collect();
    for operation in trees.iter_mut().flat_map(|it| &mut it.operations) {
        if let Operation::Invoke(invocation) = operation {
            invocation.tree = indices.get(&invocation.name).copied();
        }
    }
    trees
}

fn is_blank(operations: &[Operation]) -> bool {
    operations
        .iter()
        .all(|it: &Operation| matches!(it, Operation::Text(text) if text.trim().is_empty()))
}
