//! From text to commands.

use super::{
    Command, Form, Joint, Kind, Part, Redirect, Script, ShellError, Statement, Way, Word, word,
};

/// How many levels of nesting are followed.
const DEPTH: usize = 50;

/// Where in a text the reading is.
pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) line: usize,
    depth: usize,
    /// Where to go on behind the next line end: behind the here-documents, with their lines.
    behind: Option<(usize, usize)>,
}

pub(super) type Read<T> = Result<T, ShellError>;

/// The words that end a list inside a compound command.
const ENDS: &[&str] = &["then", "else", "elif", "fi", "do", "done", "esac", "}"];
/// The words that open a compound command.
const OPENS: &[&str] =
    &["if", "while", "until", "for", "select", "case", "{", "[[", "function", "!"];

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, line: usize, depth: usize) -> Self {
        Self { text, at: 0, line, depth, behind: None }
    }

    /// Reads all of the text.
    pub(super) fn script(mut self) -> Read<Script> {
        let script = self.list()?;
        if self.at < self.text.len() {
            return Err(self.unexpected());
        }
        Ok(script)
    }

    /// Goes a level down.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= DEPTH {
            return Err(self.error("the script is nested too deeply"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Reads another text, such as that between backticks, as a script one level down.
    pub(super) fn other(&mut self, text: &str, line: usize) -> Read<Script> {
        self.deeper(|it| Parser::new(text, line, it.depth).script())
    }

    /// Reads statements up to whatever cannot begin one.
    pub(super) fn list(&mut self) -> Read<Script> {
        let mut statements: Vec<Statement> = Vec::new();
        loop {
            let joined =
                statements.last().is_some_and(|it| matches!(it.joint, Joint::And | Joint::Or));
            self.blank_lines();
            if self.ends_list() {
                return if joined { Err(self.unexpected()) } else { Ok(Script(statements)) };
            }
            let mut is_negated = false;
            while self.take_reserved("!") {
                is_negated = true;
            }
            let mut pipeline = vec![self.command()?];
            while self.peek() == Some(b'|') && !self.rest().starts_with("||") {
                self.at += 1;
                // `|&` of bash sends the errors along.
                self.take("&");
                self.blank_lines();
                pipeline.push(self.command()?);
            }
            let joint = self.joint();
            let ends = joint.is_none();
            statements.push(Statement {
                pipeline,
                is_negated,
                joint: joint.unwrap_or(Joint::Then),
            });
            if ends {
                return Ok(Script(statements));
            }
        }
    }

    /// Reads what stands behind a pipeline; nothing where the list ends.
    fn joint(&mut self) -> Option<Joint> {
        self.blanks();
        let joint = if self.take("&&") {
            Joint::And
        } else if self.take("||") {
            Joint::Or
        } else if self.peek() == Some(b'&') {
            self.at += 1;
            Joint::Background
        } else if self.peek() == Some(b';')
            && !self.rest().starts_with(";;")
            && !self.rest().starts_with(";&")
        {
            self.at += 1;
            Joint::Then
        } else if self.peek() == Some(b'\n') {
            self.newline();
            Joint::Then
        } else {
            return None;
        };
        Some(joint)
    }

    /// Whether nothing follows that could begin a statement.
    fn ends_list(&self) -> bool {
        match self.peek() {
            None | Some(b')') => true,
            Some(b';') => self.rest().starts_with(";;") || self.rest().starts_with(";&"),
            _ => ENDS.iter().any(|it| self.is_reserved(it)),
        }
    }

    fn command(&mut self) -> Read<Command> {
        self.deeper(|it| {
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
            Ok(Command { kind, redirects, line })
        })
    }

    /// Reads a compound command or a function, if one begins here.
    fn kind(&mut self) -> Read<Option<Kind>> {
        if self.peek() == Some(b'(') {
            self.at += 1;
            let body = self.list()?;
            self.expect(")")?;
            return Ok(Some(compound(Form::Subshell, Vec::new(), vec![body])));
        }
        let Some(opens) = OPENS.iter().find(|it| self.is_reserved(it)) else { return Ok(None) };
        self.at += opens.len();
        match *opens {
            "{" => {
                let body = self.list()?;
                self.reserved("}")?;
                Ok(Some(compound(Form::Group, Vec::new(), vec![body])))
            }
            "if" => self.choice().map(Some),
            "while" | "until" => {
                let condition = self.list()?;
                let body = self.block()?;
                Ok(Some(compound(Form::While, Vec::new(), vec![condition, body])))
            }
            "for" | "select" => self.each().map(Some),
            "case" => self.case().map(Some),
            "[[" => self.test().map(Some),
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

    fn function(&mut self, name: Word) -> Read<Kind> {
        self.blank_lines();
        Ok(Kind::Function { name, body: Box::new(self.command()?) })
    }

    fn choice(&mut self) -> Read<Kind> {
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
        Ok(compound(Form::If, Vec::new(), bodies))
    }

    fn each(&mut self) -> Read<Kind> {
        self.blanks();
        let mut words = Vec::new();
        let name = if self.take("((") {
            words.push(Word(vec![Part::Arithmetic(self.arithmetic()?)]));
            String::new()
        } else {
            let name = self.word()?.ok_or_else(|| self.unexpected())?;
            word::literal(&name).ok_or_else(|| self.unexpected())?
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
        let body = self.block()?;
        Ok(compound(Form::For(name), words, vec![body]))
    }

    /// Reads `do …; done`, or the braces that bash takes in their place.
    fn block(&mut self) -> Read<Script> {
        self.blank_lines();
        let (open, close) = if self.is_reserved("{") { ("{", "}") } else { ("do", "done") };
        self.reserved(open)?;
        let body = self.list()?;
        self.reserved(close)?;
        Ok(body)
    }

    fn case(&mut self) -> Read<Kind> {
        self.blanks();
        let mut words = vec![self.word()?.ok_or_else(|| self.unexpected())?];
        self.blank_lines();
        self.reserved("in")?;
        let mut bodies = Vec::new();
        loop {
            self.blank_lines();
            if self.take_reserved("esac") {
                return Ok(compound(Form::Case, words, bodies));
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
                return Ok(compound(Form::Case, words, bodies));
            }
        }
    }

    /// Reads what stands in `[[ … ]]`: operators become words of their own.
    fn test(&mut self) -> Read<Kind> {
        let mut words = Vec::new();
        loop {
            self.blank_lines();
            if self.take_reserved("]]") {
                return Ok(compound(Form::Test, words, Vec::new()));
            }
            let operator = ["&&", "||", "<", ">", "(", ")", "|", "&", ";"]
                .iter()
                .find(|it| self.rest().starts_with(**it));
            match operator {
                Some(operator) => {
                    self.at += operator.len();
                    words.push(Word(vec![Part::Plain((*operator).to_owned())]));
                }
                None => words.push(self.word()?.ok_or_else(|| self.unexpected())?),
            }
        }
    }

    /// Reads a simple command, or a function whose name comes first.
    fn simple(&mut self, redirects: &mut Vec<Redirect>) -> Read<Kind> {
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
        Ok(Kind::Simple { assignments, words })
    }

    fn redirect(&mut self) -> Read<Option<Redirect>> {
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
        const WAYS: &[(&str, Way)] = &[
            ("&>>", Way::Out),
            ("&>", Way::Out),
            ("<<<", Way::Here),
            ("<<-", Way::Here),
            ("<<", Way::Here),
            ("<&", Way::Copy),
            ("<>", Way::Out),
            ("<(", Way::In),
            ("<", Way::In),
            (">>", Way::Out),
            (">&", Way::Copy),
            (">|", Way::Out),
            (">(", Way::Out),
            (">", Way::Out),
        ];
        let found = WAYS.iter().find(|it| self.rest().starts_with(it.0));
        // `<(` and `>(` begin words.
        let Some((sign, way)) = found.filter(|it| !it.0.ends_with('(')) else {
            self.at = start;
            return Ok(None);
        };
        self.at += sign.len();
        self.blanks();
        let Some(target) = self.word()? else { return Err(self.unexpected()) };
        if matches!(*sign, "<<" | "<<-") {
            let target = self.document(&target, *sign == "<<-")?;
            return Ok(Some(Redirect { way: Way::Here, target }));
        }
        let is_stream =
            |it: &str| it == "-" || it.trim_end_matches('-').bytes().all(|it| it.is_ascii_digit());
        let way = match way {
            Way::Copy
                if !word::literal(&target).is_some_and(|it| is_stream(&it)) && *sign == ">&" =>
            {
                Way::Out
            }
            way => *way,
        };
        Ok(Some(Redirect { way, target }))
    }

    /// Goes over spaces, comments and line ends.
    pub(super) fn blank_lines(&mut self) {
        self.blanks();
        while self.peek() == Some(b'\n') {
            self.newline();
            self.blanks();
        }
    }

    /// Goes over spaces, joined lines and a comment.
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

    /// Goes over a line end, and over the here-documents behind it.
    pub(super) fn newline(&mut self) {
        self.at += 1;
        self.line += 1;
        if let Some((at, lines)) = self.behind.take() {
            self.at = at;
            self.line += lines;
        }
    }

    /// Goes over a line end inside a word. Behind it would be the text of a here-document: where
    /// that begins then, shells do not agree.
    pub(super) fn inner_newline(&mut self) -> Read<()> {
        if self.behind.is_some() {
            return Err(self.error("a line goes on before its here-document"));
        }
        self.newline();
        Ok(())
    }

    /// Reads a here-document, whose text begins behind this line.
    fn document(&mut self, end: &Word, is_indented: bool) -> Read<Word> {
        let is_quoted = end.0.iter().any(|it| matches!(it, Part::Quoted(_)));
        let Some(end) = word::literal(end) else { return Err(self.unexpected()) };
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
            true => Ok(Word(vec![Part::Quoted(text)])),
            false => self.deeper(|it| Parser::new(&text, first, it.depth).quoted_text()),
        }
    }

    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Goes over a sign, if it is there.
    pub(super) fn take(&mut self, sign: &str) -> bool {
        let there = self.rest().starts_with(sign);
        self.at += if there { sign.len() } else { 0 };
        there
    }

    pub(super) fn expect(&mut self, sign: &str) -> Read<()> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Whether a reserved word stands here by itself.
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

    fn reserved(&mut self, reserved: &str) -> Read<()> {
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
            Some(c) => self.error(&format!("`{}` is not expected here", c.escape_default())),
            None => self.error("the script ends too early"),
        }
    }
}

fn compound(form: Form, words: Vec<Word>, bodies: Vec<Script>) -> Kind {
    Kind::Compound { form, words, bodies }
}
