//! Parses scripts.

mod word;

use crate::script::{
    CommandKind, CompoundKind, ListOperator, Pipeline, Redirect, RedirectKind, ShellCommand,
    ShellScript, Word, WordPart,
};

pub(crate) use self::word::{is_name, unescape};

/// A text is not a script, or not one that the parser understands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
#[non_exhaustive]
pub struct ShellError {
    /// The line, from 1.
    pub line: usize,
    /// The reason, in words.
    pub message: String,
}

/// Parses a script.
pub fn parse(text: &str) -> Result<ShellScript, ShellError> {
    match text.find('\0') {
        Some(at) => {
            let line = text[..at].matches('\n').count() + 1;
            Err(ShellError { line, message: "there is a null character".to_owned() })
        }
        None => Parser::new(text, 1, 0).script(),
    }
}

/// The maximum nesting depth.
const DEPTH: usize = 50;

/// The position of the parser in a text.
pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) line: usize,
    depth: usize,
    /// The position to continue at after the next line end: after the here-documents, with their
    /// number of lines.
    behind: Option<(usize, usize)>,
}

pub(super) type ParseResult<T> = Result<T, ShellError>;

/// The words that end a list inside a compound command.
const ENDS: &[&str] = &["then", "else", "elif", "fi", "do", "done", "esac", "}"];
/// The words that open a compound command.
const OPENS: &[&str] =
    &["if", "while", "until", "for", "select", "case", "{", "[[", "function", "!"];

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, line: usize, depth: usize) -> Self {
        Self { text, at: 0, line, depth, behind: None }
    }

    /// Parses all of the text.
    pub(super) fn script(mut self) -> ParseResult<ShellScript> {
        let script = self.list()?;
        if self.at < self.text.len() {
            return Err(self.unexpected());
        }
        Ok(script)
    }

    /// Parses one nesting level deeper.
    pub(super) fn with_nesting<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> ParseResult<T>,
    ) -> ParseResult<T> {
        if self.depth >= DEPTH {
            return Err(self.error("the script is nested too deeply"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Parses another text, such as that between backticks, as a script one level deeper.
    pub(super) fn parse_nested(&mut self, text: &str, line: usize) -> ParseResult<ShellScript> {
        self.with_nesting(|it| Parser::new(text, line, it.depth).script())
    }

    /// Parses pipelines until something that cannot begin one.
    pub(super) fn list(&mut self) -> ParseResult<ShellScript> {
        let mut pipelines: Vec<Pipeline> = Vec::new();
        loop {
            let joined = pipelines
                .last()
                .is_some_and(|it| matches!(it.operator, ListOperator::And | ListOperator::Or));
            self.blank_lines();
            if self.ends_list() {
                return if joined { Err(self.unexpected()) } else { Ok(ShellScript(pipelines)) };
            }
            let mut is_negated = false;
            while self.take_reserved("!") {
                is_negated = true;
            }
            let mut commands = vec![self.command()?];
            while self.peek() == Some(b'|') && !self.rest().starts_with("||") {
                self.at += 1;
                // `|&` of bash redirects stderr as well.
                self.take("&");
                self.blank_lines();
                commands.push(self.command()?);
            }
            let operator = self.operator();
            let ends = operator.is_none();
            pipelines.push(Pipeline {
                commands,
                is_negated,
                operator: operator.unwrap_or(ListOperator::Sequence),
            });
            if ends {
                return Ok(ShellScript(pipelines));
            }
        }
    }

    /// Parses the operator after a pipeline; `None` at the end of the list.
    fn operator(&mut self) -> Option<ListOperator> {
        self.blanks();
        let operator = if self.take("&&") {
            ListOperator::And
        } else if self.take("||") {
            ListOperator::Or
        } else if self.peek() == Some(b'&') {
            self.at += 1;
            ListOperator::Background
        } else if self.peek() == Some(b';')
            && !self.rest().starts_with(";;")
            && !self.rest().starts_with(";&")
        {
            self.at += 1;
            ListOperator::Sequence
        } else if self.peek() == Some(b'\n') {
            self.newline();
            ListOperator::Sequence
        } else {
            return None;
        };
        Some(operator)
    }

    /// Whether no further pipeline can begin here.
    fn ends_list(&self) -> bool {
        match self.peek() {
            None | Some(b')') => true,
            Some(b';') => self.rest().starts_with(";;") || self.rest().starts_with(";&"),
            _ => ENDS.iter().any(|it| self.is_reserved(it)),
        }
    }

    fn command(&mut self) -> ParseResult<ShellCommand> {
        self.with_nesting(|it| {
            it.blanks();
            let line = it.line;
            let kind = it.kind()?;
            let mut redirects = Vec::new();
            let kind = match kind {
                Some(kind) => {
                    while let Some(redirect) = it.redirect()? {
                        redirects.push(redirect);
                    }
                    kind
                }
                None => it.simple(&mut redirects)?,
            };
            Ok(ShellCommand { kind, redirects, line })
        })
    }

    /// Parses a compound command or a function, if one begins here.
    fn kind(&mut self) -> ParseResult<Option<CommandKind>> {
        if self.peek() == Some(b'(') {
            self.at += 1;
            let body = self.list()?;
            self.expect(")")?;
            return Ok(Some(compound(CompoundKind::Subshell, Vec::new(), vec![body])));
        }
        let Some(opens) = OPENS.iter().find(|it| self.is_reserved(it)) else { return Ok(None) };
        self.at += opens.len();
        match *opens {
            "{" => {
                let body = self.list()?;
                self.reserved("}")?;
                Ok(Some(compound(CompoundKind::Group, Vec::new(), vec![body])))
            }
            "if" => self.if_clause().map(Some),
            "while" | "until" => {
                let condition = self.list()?;
                let body = self.do_block()?;
                Ok(Some(compound(CompoundKind::While, Vec::new(), vec![condition, body])))
            }
            "for" | "select" => self.for_loop().map(Some),
            "case" => self.case().map(Some),
            "[[" => self.test_words().map(Some),
            "function" => {
                self.blanks();
                let name = self.word()?.ok_or_else(|| self.unexpected())?;
                self.blanks();
                if self.take("(") {
                    self.blanks();
                    self.expect(")")?;
                }
                self.function(name).map(Some)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn function(&mut self, name: Word) -> ParseResult<CommandKind> {
        self.blank_lines();
        Ok(CommandKind::Function { name, body: Box::new(self.command()?) })
    }

    fn if_clause(&mut self) -> ParseResult<CommandKind> {
        let mut bodies = vec![self.list()?];
        self.reserved("then")?;
        bodies.push(self.list()?);
        while self.take_reserved("elif") {
            bodies.push(self.list()?);
            self.reserved("then")?;
            bodies.push(self.list()?);
        }
        if self.take_reserved("else") {
            bodies.push(self.list()?);
        }
        self.reserved("fi")?;
        Ok(compound(CompoundKind::If, Vec::new(), bodies))
    }

    fn for_loop(&mut self) -> ParseResult<CommandKind> {
        self.blanks();
        let mut words = Vec::new();
        let name = if self.take("((") {
            words.push(Word(vec![WordPart::Arithmetic(self.arithmetic()?)]));
            String::new()
        } else {
            let name = self.word()?.ok_or_else(|| self.unexpected())?;
            name.literal().ok_or_else(|| self.unexpected())?
        };
        self.blank_lines();
        if self.take_reserved("in") {
            self.blanks();
            while let Some(word) = self.word()? {
                words.push(word);
                self.blanks();
            }
        }
        self.blanks();
        self.take(";");
        self.blank_lines();
        let body = self.do_block()?;
        Ok(compound(CompoundKind::For(name), words, vec![body]))
    }

    /// Parses `do …; done`, or the braces that bash accepts instead.
    fn do_block(&mut self) -> ParseResult<ShellScript> {
        self.blank_lines();
        let (open, close) = if self.is_reserved("{") { ("{", "}") } else { ("do", "done") };
        self.reserved(open)?;
        let body = self.list()?;
        self.reserved(close)?;
        Ok(body)
    }

    fn case(&mut self) -> ParseResult<CommandKind> {
        self.blanks();
        let mut words = vec![self.word()?.ok_or_else(|| self.unexpected())?];
        self.blank_lines();
        self.reserved("in")?;
        let mut bodies = Vec::new();
        loop {
            self.blank_lines();
            if self.take_reserved("esac") {
                return Ok(compound(CompoundKind::Case, words, bodies));
            }
            self.take("(");
            loop {
                self.blanks();
                words.push(self.word()?.ok_or_else(|| self.unexpected())?);
                self.blanks();
                if !self.take("|") {
                    break;
                }
            }
            self.expect(")")?;
            bodies.push(self.list()?);
            self.blanks();
            if !(self.take(";;&") || self.take(";;") || self.take(";&")) {
                self.reserved("esac")?;
                return Ok(compound(CompoundKind::Case, words, bodies));
            }
        }
    }

    /// Parses the content of `[[ … ]]`: operators become separate words.
    fn test_words(&mut self) -> ParseResult<CommandKind> {
        let mut words = Vec::new();
        loop {
            self.blank_lines();
            if self.take_reserved("]]") {
                return Ok(compound(CompoundKind::Test, words, Vec::new()));
            }
            let operator = ["&&", "||", "<", ">", "(", ")", "|", "&", ";"]
                .iter()
                .find(|it| self.rest().starts_with(**it));
            match operator {
                Some(operator) => {
                    self.at += operator.len();
                    words.push(Word(vec![WordPart::Plain((*operator).to_owned())]));
                }
                None => words.push(self.word()?.ok_or_else(|| self.unexpected())?),
            }
        }
    }

    /// Parses a simple command, or a function whose name comes first.
    fn simple(&mut self, redirects: &mut Vec<Redirect>) -> ParseResult<CommandKind> {
        let (mut assignments, mut words) = (Vec::new(), Vec::new());
        loop {
            self.blanks();
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            if self.peek() == Some(b'(')
                && words.len() == 1
                && assignments.is_empty()
                && redirects.is_empty()
            {
                self.at += 1;
                self.blanks();
                self.expect(")")?;
                return self.function(words.remove(0));
            }
            let Some(word) = self.word()? else { break };
            match words.is_empty().then(|| word::assignment(&word)).flatten() {
                Some(assignment) => assignments.push(assignment),
                None => words.push(word),
            }
        }
        if words.is_empty() && assignments.is_empty() && redirects.is_empty() {
            return Err(self.unexpected());
        }
        Ok(CommandKind::Simple { assignments, words })
    }

    fn redirect(&mut self) -> ParseResult<Option<Redirect>> {
        self.blanks();
        let start = self.at;
        while self.peek().is_some_and(|it| it.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start && self.peek() == Some(b'{') {
            // `{name}>` of bash.
            let name = self.rest()[1..].split('}').next().unwrap_or_default();
            let end = self.at + name.len() + 2;
            let arrow = self.text.as_bytes().get(end).is_some_and(|it| matches!(it, b'<' | b'>'));
            if word::is_name(name) && arrow {
                self.at = end;
            }
        }
        const WAYS: &[(&str, RedirectKind)] = &[
            ("&>>", RedirectKind::Output),
            ("&>", RedirectKind::Output),
            ("<<<", RedirectKind::Here),
            ("<<-", RedirectKind::Here),
            ("<<", RedirectKind::Here),
            ("<&", RedirectKind::Duplicate),
            ("<>", RedirectKind::Output),
            ("<(", RedirectKind::Input),
            ("<", RedirectKind::Input),
            (">>", RedirectKind::Output),
            (">&", RedirectKind::Duplicate),
            (">|", RedirectKind::Output),
            (">(", RedirectKind::Output),
            (">", RedirectKind::Output),
        ];
        let found = WAYS.iter().find(|it| self.rest().starts_with(it.0));
        // `<(` and `>(` begin words.
        let Some((sign, kind)) = found.filter(|it| !it.0.ends_with('(')) else {
            self.at = start;
            return Ok(None);
        };
        self.at += sign.len();
        self.blanks();
        let Some(target) = self.word()? else { return Err(self.unexpected()) };
        if matches!(*sign, "<<" | "<<-") {
            let target = self.document(&target, *sign == "<<-")?;
            return Ok(Some(Redirect { kind: RedirectKind::Here, target }));
        }
        let is_stream = target.literal().is_some_and(|it| {
            it == "-" || it.trim_end_matches('-').bytes().all(|it| it.is_ascii_digit())
        });
        let kind = match kind {
            RedirectKind::Duplicate if !is_stream && *sign == ">&" => RedirectKind::Output,
            kind => *kind,
        };
        Ok(Some(Redirect { kind, target }))
    }

    /// Skips spaces, comments and line ends.
    pub(super) fn blank_lines(&mut self) {
        self.blanks();
        while self.peek() == Some(b'\n') {
            self.newline();
            self.blanks();
        }
    }

    /// Skips spaces, joined lines and a comment.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.rest().starts_with("\\\n") && self.behind.is_none() => {
                    self.at += 2;
                    self.line += 1;
                }
                Some(b'#') => {
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                }
                _ => return,
            }
        }
    }

    /// Skips a line end, and the here-documents after it.
    pub(super) fn newline(&mut self) {
        self.at += 1;
        self.line += 1;
        if let Some((at, lines)) = self.behind.take() {
            self.at = at;
            self.line += lines;
        }
    }

    /// Skips a line end inside a word. If a here-document is pending, its text would follow, but
    /// shells disagree about where that begins.
    pub(super) fn inner_newline(&mut self) -> ParseResult<()> {
        if self.behind.is_some() {
            return Err(self.error("a line continues before its here-document"));
        }
        self.newline();
        Ok(())
    }

    /// Parses a here-document, whose text begins after this line.
    fn document(&mut self, end: &Word, is_indented: bool) -> ParseResult<Word> {
        let is_quoted = end.0.iter().any(|it| matches!(it, WordPart::Quoted(_)));
        let Some(end) = end.literal() else { return Err(self.unexpected()) };
        let (mut at, mut lines) = self.behind.unwrap_or_else(|| {
            let line = self.rest().find('\n').map_or(self.text.len(), |it| self.at + it + 1);
            (line, 0)
        });
        let first = self.line + 1 + lines;
        let mut text = String::new();
        while at < self.text.len() {
            let length = self.text[at..].find('\n').map_or(self.text.len() - at, |it| it + 1);
            let line = &self.text[at..at + length];
            at += length;
            lines += usize::from(line.ends_with('\n'));
            let line = if is_indented { line.trim_start_matches('\t') } else { line };
            if line.strip_suffix('\n').unwrap_or(line) == end {
                break;
            }
            text.push_str(line);
        }
        self.behind = Some((at, lines));
        match is_quoted {
            true => Ok(Word(vec![WordPart::Quoted(text)])),
            false => self.with_nesting(|it| Parser::new(&text, first, it.depth).quoted_text()),
        }
    }

    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips a sign, if it is there.
    pub(super) fn take(&mut self, sign: &str) -> bool {
        let there = self.rest().starts_with(sign);
        self.at += if there { sign.len() } else { 0 };
        there
    }

    pub(super) fn expect(&mut self, sign: &str) -> ParseResult<()> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Whether a reserved word is here as a separate word.
    fn is_reserved(&self, reserved: &str) -> bool {
        let Some(behind) = self.rest().strip_prefix(reserved) else { return false };
        behind.bytes().next().is_none_or(word::ends_word)
    }

    fn take_reserved(&mut self, reserved: &str) -> bool {
        self.blanks();
        let there = self.is_reserved(reserved);
        self.at += if there { reserved.len() } else { 0 };
        there
    }

    fn reserved(&mut self, reserved: &str) -> ParseResult<()> {
        self.blank_lines();
        if self.take_reserved(reserved) {
            Ok(())
        } else {
            Err(self.error(&format!("`{reserved}` is missing")))
        }
    }

    pub(super) fn error(&self, message: &str) -> ShellError {
        ShellError { line: self.line, message: message.to_owned() }
    }

    pub(super) fn unexpected(&self) -> ShellError {
        match self.rest().chars().next() {
            Some(c) => self.error(&format!("unexpected `{}`", c.escape_default())),
            None => self.error("unexpected end of the script"),
        }
    }
}

fn compound(kind: CompoundKind, words: Vec<Word>, bodies: Vec<ShellScript>) -> CommandKind {
    CommandKind::Compound { kind, words, bodies }
}
