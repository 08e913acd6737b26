//! Walks through a script and checks every command with its arguments.

use std::collections::BTreeMap;

use crate::{
    parser::{is_name, parse, unescape},
    script::{
        CommandKind, CompoundKind, ListOperator, Redirect, RedirectKind, ShellCommand, ShellScript,
        Word,
    },
};

use super::{
    Hazard, HazardKind, bomb,
    expand::{Field, HOME, UNKNOWN, Value},
    rules, scan,
};

/// The known state of a shell during the walk through a script.
#[derive(Debug, Clone)]
pub(super) struct Walker {
    pub(super) variables: BTreeMap<String, Value>,
    /// The arguments of the script or function.
    pub(super) arguments: Value,
    functions: BTreeMap<String, ShellCommand>,
    /// The functions on the call stack.
    calling: Vec<String>,
    /// The working directory, if known.
    directory: Option<String>,
    /// The number of remaining steps.
    fuel: usize,
    /// The nesting depth of scripts in texts of scripts.
    depth: usize,
    /// Whether the current command may be skipped at run time.
    is_conditional: bool,
    line: usize,
}

/// The input or output of a command.
#[derive(Debug, Clone, Default)]
pub(super) struct Stream {
    /// The whole content, if known.
    pub(super) text: Option<String>,
    /// Whether it was, or may have been, downloaded or decoded.
    pub(super) is_foreign: bool,
}

pub(super) type Walk<T = Stream> = Result<T, Hazard>;

/// The maximum number of steps for a script before it counts as obscure.
const FUEL: usize = 400_000;
const DEPTH: usize = 12;

impl Default for Walker {
    fn default() -> Self {
        Self {
            variables: BTreeMap::new(),
            arguments: Value { is_list: true, ..Value::default() },
            functions: BTreeMap::new(),
            calling: Vec::new(),
            directory: None,
            fuel: FUEL,
            depth: 0,
            is_conditional: false,
            line: 1,
        }
    }
}

impl Walker {
    /// Walks through a script with its functions.
    pub(super) fn walk(&mut self, script: &ShellScript) -> Walk {
        if let Some((name, line)) = bomb::find_bomb(script, &mut self.fuel) {
            return Err(Hazard { kind: HazardKind::ForkBomb, line, command: name });
        }
        self.use_steps(1)?;
        self.script(script, &Stream::default())
    }

    /// Uses steps; a script that needs too many cannot be checked.
    pub(super) fn use_steps(&mut self, steps: usize) -> Walk<()> {
        self.fuel = self.fuel.saturating_sub(steps);
        if self.fuel == 0 {
            return Err(self.hazard(HazardKind::Obscure, &[]));
        }
        Ok(())
    }

    /// Walks through the script of a substitution.
    pub(super) fn walk_nested(&mut self, script: &ShellScript) -> Walk {
        self.walk_apart(|it| it.script(script, &Stream::default()))
    }

    /// Walks through something that changes nothing outside, such as a subshell.
    fn walk_apart(&mut self, walk: impl FnOnce(&mut Self) -> Walk) -> Walk {
        let (variables, directory) = (self.variables.clone(), self.directory.clone());
        self.use_steps(variables.len())?;
        let walked = walk(self);
        (self.variables, self.directory) = (variables, directory);
        walked
    }

    fn script(&mut self, script: &ShellScript, input: &Stream) -> Walk {
        let mut printed = Stream { text: Some(String::new()), is_foreign: false };
        let outer = self.is_conditional;
        for pipeline in &script.0 {
            let mut stream = input.clone();
            for command in &pipeline.commands {
                stream = self.command(command, &stream)?;
            }
            printed.add(stream);
            self.is_conditional =
                outer || matches!(pipeline.operator, ListOperator::And | ListOperator::Or);
        }
        self.is_conditional = outer;
        Ok(printed)
    }

    fn command(&mut self, command: &ShellCommand, input: &Stream) -> Walk {
        self.use_steps(1)?;
        self.line = command.line;
        let input = &self.check_redirects(&command.redirects, input)?;
        match &command.kind {
            CommandKind::Simple { assignments, words } => {
                for assignment in assignments {
                    let value = self.value(&assignment.value)?;
                    self.assign(&assignment.name, value, assignment.appends);
                }
                let fields = self.fields(words)?;
                self.line = command.line;
                self.run(&fields, input)
            }
            CommandKind::Function { name, body } => {
                let name = name.literal().unwrap_or_default();
                self.functions.insert(name, (**body).clone());
                let arguments = std::mem::replace(&mut self.arguments, Value::text(UNKNOWN));
                let walked = self.walk_apart(|it| it.command(body, &Stream::default()));
                self.arguments = arguments;
                walked.map(|_| Stream::default())
            }
            CommandKind::Compound { kind, words, bodies } => {
                let outer = self.is_conditional;
                match kind {
                    CompoundKind::For(name) => {
                        let fields = self.fields(words)?;
                        let is_foreign = fields.iter().any(|it| it.is_foreign);
                        let texts = fields.into_iter().map(|it| it.text).collect();
                        self.assign(name, Value { texts, is_list: false, is_foreign }, false);
                    }
                    CompoundKind::Test => self.check_test(words, input)?,
                    _ => drop(self.fields(words)?),
                }
                self.is_conditional |=
                    !matches!(kind, CompoundKind::Group | CompoundKind::Subshell);
                let mut printed = Stream { text: Some(String::new()), is_foreign: false };
                for body in bodies {
                    printed.add(match kind {
                        CompoundKind::Subshell => self.walk_apart(|it| it.script(body, input))?,
                        _ => self.script(body, input)?,
                    });
                }
                self.is_conditional = outer;
                Ok(printed)
            }
        }
    }

    /// Checks the parts of `[[` as commands, for shells that do not know it.
    fn check_test(&mut self, words: &[Word], input: &Stream) -> Walk<()> {
        let mut parts = words.split(|word: &Word| {
            word.literal().is_some_and(|it| matches!(&*it, "&&" | "||" | ";" | "|" | "&"))
        });
        let first = parts.next().unwrap_or_default();
        for part in parts {
            let fields = self.fields(part)?;
            self.run(&fields, input)?;
        }
        self.fields(first).map(drop)
    }

    /// Checks the redirections of a command; returns its input.
    fn check_redirects(&mut self, redirects: &[Redirect], input: &Stream) -> Walk {
        let mut input = input.clone();
        for redirect in redirects {
            let target = self.expand_unsplit(&redirect.target)?;
            match redirect.kind {
                RedirectKind::Output if rules::is_disk(&self.absolute(&target.text)) => {
                    let sign = Field { text: ">".to_owned(), ..Field::default() };
                    return Err(self.hazard(HazardKind::DeviceWrite, &[sign, target]));
                }
                RedirectKind::Output | RedirectKind::Duplicate => {}
                RedirectKind::Here => {
                    let text = (!target.text.contains(UNKNOWN)).then_some(target.text);
                    input = Stream { text, is_foreign: target.is_foreign };
                }
                RedirectKind::Input => {
                    let remote =
                        ["/dev/tcp/", "/dev/udp/"].iter().any(|it| target.text.starts_with(it));
                    let stream = target.stream.unwrap_or_default();
                    input = Stream { is_foreign: stream.is_foreign || remote, ..stream };
                }
            }
        }
        Ok(input)
    }

    /// Checks a command with its arguments; returns its output.
    fn run(&mut self, fields: &[Field], input: &Stream) -> Walk {
        self.use_steps(1 + fields.len())?;
        let Some((first, arguments)) = fields.split_first() else { return Ok(Stream::default()) };
        let name = &*first.name();
        let passed = Stream { text: None, is_foreign: input.is_foreign };
        if let Some(body) = self.functions.get(&*first.text).cloned() {
            return self.call(&first.text, &body, arguments, input);
        }
        match name {
            "rm" => self.delete(fields, arguments)?,
            // It may be anything, including nothing, or something like `sudo`.
            "" => {
                let at = arguments.iter().take_while(|it| it.name().is_empty()).count();
                match arguments.get(at) {
                    Some(first) if first.text.starts_with('-') => self.delete(fields, arguments)?,
                    Some(_) => return self.run(&arguments[at..], input),
                    None => {}
                }
            }
            "find" => self.find(fields, arguments, input)?,
            "dd" => self.copy(fields, arguments)?,
            "eval" => {
                let is_foreign = arguments.iter().any(|it| it.is_foreign);
                return self.code(&join_texts(arguments), is_foreign, fields);
            }
            "." | "source" => {
                let stream = self.file_content(arguments.first(), input);
                return self.stream(&stream, fields);
            }
            "alias" | "trap" | "su" | "runuser" | "script" => {
                for argument in arguments {
                    let text = argument.text.split_once('=').map_or(&*argument.text, |it| it.1);
                    self.code(text, argument.is_foreign, fields)?;
                }
            }
            "cd" | "pushd" => self.change_directory(arguments.first()),
            "popd" => self.directory = None,
            "read" | "mapfile" | "readarray" => {
                for argument in arguments.iter().filter(|it| is_name(&it.text)) {
                    let text = input.text.as_deref().and_then(|it| it.lines().next());
                    let value = Value::text(text.map_or(UNKNOWN.to_string(), str::to_owned));
                    let value = Value { is_foreign: input.is_foreign, ..value };
                    self.assign(&argument.text, value, false);
                }
            }
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                for argument in arguments {
                    if let Some((name, text)) = argument.text.split_once('=') {
                        let value = Value { is_foreign: argument.is_foreign, ..Value::text(text) };
                        self.assign(name, value, false);
                    }
                }
            }
            "set" => {
                let items = arguments.iter().skip_while(|it| it.text != "--").skip(1);
                let items: Vec<String> = items.map(|it| it.text.clone()).collect();
                if !items.is_empty() {
                    self.arguments = Value { texts: items, is_list: true, is_foreign: false };
                }
            }
            "echo" | "printf" => return Ok(printed_output(name, arguments)),
            "cat" | "tee" => {
                self.write(fields, arguments)?;
                let file = arguments.iter().find(|it| !it.text.starts_with('-'));
                return Ok(match file {
                    Some(file) if name == "cat" => self.file_content(Some(file), input),
                    _ => input.clone(),
                });
            }
            _ if rules::is_shell(name) => return self.shell(fields, arguments, input),
            _ if rules::is_formatter(name) => return Err(self.hazard(HazardKind::Format, fields)),
            _ if rules::is_fetcher(name) || rules::is_decoder(name) => {
                return Ok(Stream { text: None, is_foreign: true });
            }
            _ if rules::is_rewriter(name) => {
                let hides = input.text.as_ref().is_some_and(|it| !it.trim().is_empty());
                return Ok(Stream { text: None, is_foreign: input.is_foreign || hides });
            }
            _ if rules::is_wrapper(name) => return self.check_wrapped(name, arguments, input),
            _ => {
                if let Some(letters) = rules::code_letters(name) {
                    self.interpreter(letters, fields, arguments, input)?;
                } else if rules::is_writer(name) {
                    self.write(fields, arguments)?;
                }
            }
        }
        Ok(passed)
    }

    /// Walks through a function with its arguments.
    fn call(
        &mut self,
        name: &str,
        body: &ShellCommand,
        arguments: &[Field],
        input: &Stream,
    ) -> Walk {
        if self.calling.iter().any(|it| it == name) || self.calling.len() >= DEPTH {
            return Ok(Stream { text: None, is_foreign: input.is_foreign });
        }
        self.calling.push(name.to_owned());
        let given = arguments.iter().map(|it| it.text.clone()).collect();
        let given = Value { texts: given, is_list: true, is_foreign: false };
        let outer = std::mem::replace(&mut self.arguments, given);
        let line = self.line;
        let walked = self.command(body, input);
        (self.arguments, self.line) = (outer, line);
        self.calling.pop();
        walked
    }

    /// Checks the command after the options of a wrapper.
    fn check_wrapped(&mut self, name: &str, arguments: &[Field], input: &Stream) -> Walk {
        if name == "command"
            && arguments.first().is_some_and(|it: &Field| matches!(&*it.text, "-v" | "-V"))
        {
            return Ok(Stream::default());
        }
        // Its own arguments: options, variables, and numbers such as those of `timeout 5`.
        let own = arguments.iter().take_while(|it| {
            it.text.starts_with('-')
                || (it.text.contains('=') && !it.text.starts_with('/'))
                || it.text.starts_with(|c: char| c.is_ascii_digit())
        });
        let mut at = own.count();
        // The value of an option may be a text with a whole command in it.
        for argument in &arguments[..at] {
            let text = argument.text.trim_start_matches(|c| c != ' ').trim_start();
            self.code(text, argument.is_foreign, arguments)?;
        }
        let takes_word = at > 0 && arguments[at - 1].text.starts_with('-');
        let last = at + rules::own_words(name) + usize::from(takes_word);
        let mut printed = Stream { text: None, is_foreign: input.is_foreign };
        while at <= last {
            let Some(behind) = arguments.get(at..).filter(|it| !it.is_empty()) else { break };
            at += 1;
            // A whole command in one text: `watch 'rm -rf /'`, `env -S 'rm -rf /'`.
            if behind[0].text.contains(' ') {
                self.code(&behind[0].text, behind[0].is_foreign, behind)?;
            }
            if self.depth >= DEPTH {
                return Err(self.hazard(HazardKind::Obscure, behind));
            }
            self.depth += 1;
            let stream = self.run(behind, input);
            self.depth -= 1;
            printed.is_foreign |= stream?.is_foreign;
        }
        Ok(printed)
    }

    /// Checks a shell: its code, its script, or its input.
    fn shell(&mut self, fields: &[Field], arguments: &[Field], input: &Stream) -> Walk {
        let mut is_code = false;
        let mut rest = arguments;
        while let [first, behind @ ..] = rest {
            let text = &*first.text;
            if !text.starts_with(['-', '+']) || text == "-" {
                break;
            }
            rest = behind;
            match text {
                "--" => break,
                "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file" => {
                    rest = rest.get(1..).unwrap_or_default();
                }
                text if !text.starts_with("--") => {
                    is_code |= text.contains('c');
                    if text.contains('s') {
                        return self.stream(input, fields);
                    }
                }
                _ => {}
            }
        }
        match rest {
            [code, given @ ..] if is_code => {
                let given = given.iter().skip(1).map(|it| it.text.clone()).collect();
                let given = Value { texts: given, is_list: true, is_foreign: false };
                let outer = std::mem::replace(&mut self.arguments, given);
                let walked = self.code(&code.text, code.is_foreign, fields);
                self.arguments = outer;
                walked
            }
            [] if is_code => Ok(Stream::default()),
            rest => {
                let stream = match rest.first() {
                    Some(script) => self.file_content(Some(script), input),
                    None => input.clone(),
                };
                self.stream(&stream, fields)
            }
        }
    }

    /// Checks an interpreter: its code is searched for the same words.
    fn interpreter(
        &mut self,
        letters: &str,
        fields: &[Field],
        arguments: &[Field],
        input: &Stream,
    ) -> Walk<()> {
        if let Some(at) = arguments.iter().position(|it: &Field| {
            let flags = it.text.strip_prefix('-').filter(|it| !it.starts_with('-'));
            flags.is_some_and(|it| it.ends_with(|c| letters.contains(c))) || it.text == "--eval"
        }) {
            let Some(code) = arguments.get(at + 1) else { return Ok(()) };
            if code.is_foreign {
                return Err(self.hazard(HazardKind::PipeToShell, fields));
            }
            return scan::text(&code.text, self.line);
        }
        let file = arguments.iter().find(|it| !it.text.starts_with('-') || it.text == "-");
        let stream = match file {
            None if arguments.iter().any(|it: &Field| it.text.starts_with("-m")) => return Ok(()),
            Some(file) => self.file_content(Some(file), input),
            None => input.clone(),
        };
        match stream {
            Stream { is_foreign: true, .. } => Err(self.hazard(HazardKind::PipeToShell, fields)),
            Stream { text: Some(text), .. } => scan::text(&text, self.line),
            Stream { text: None, .. } => Ok(()),
        }
    }

    /// Checks a stream that a shell reads as a script.
    fn stream(&mut self, stream: &Stream, fields: &[Field]) -> Walk {
        match &stream.text {
            Some(text) => self.code(text, stream.is_foreign, fields),
            None => self.code("", stream.is_foreign, fields),
        }
    }

    /// Checks a text that is run as a script.
    fn code(&mut self, text: &str, is_foreign: bool, fields: &[Field]) -> Walk {
        if is_foreign {
            return Err(self.hazard(HazardKind::PipeToShell, fields));
        }
        if self.depth >= DEPTH {
            return Err(self.hazard(HazardKind::Obscure, fields));
        }
        self.use_steps(1 + text.len() / 8)?;
        let line = self.line;
        let Ok(script) = parse(&text.replace(UNKNOWN, "${_}")) else {
            return scan::text(text, line).map(|()| Stream::default());
        };
        self.depth += 1;
        let walked = self.walk(&script);
        self.depth -= 1;
        self.line = line;
        walked.map_err(|hazard| Hazard { line, ..hazard })
    }

    /// Returns the content of a file that is read.
    fn file_content(&self, file: Option<&Field>, input: &Stream) -> Stream {
        match file {
            Some(Field { stream: Some(stream), .. }) => stream.clone(),
            Some(file)
                if matches!(&*file.text, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") =>
            {
                input.clone()
            }
            Some(file) => {
                let remote = file.text.starts_with("/dev/tcp/");
                Stream { text: None, is_foreign: remote }
            }
            None => Stream::default(),
        }
    }

    fn delete(&mut self, fields: &[Field], arguments: &[Field]) -> Walk<()> {
        let (is_recursive, operands) = rules::removal(arguments.iter().map(|it| &*it.text));
        if is_recursive && operands.iter().any(|it| rules::is_vital(&self.absolute(it))) {
            return Err(self.hazard(HazardKind::Delete, fields));
        }
        Ok(())
    }

    fn find(&mut self, fields: &[Field], arguments: &[Field], input: &Stream) -> Walk<()> {
        let texts: Vec<&str> = arguments.iter().map(|it| &*it.text).collect();
        let places = texts.iter().take_while(|it| !it.starts_with(['-', '(', '!']));
        let vital = places.map(|it| self.absolute(it)).find(|it| rules::is_vital(it));
        const NAMES: &[&str] = &["-name", "-iname", "-path", "-ipath", "-regex", "-iregex"];
        let is_narrow = texts.windows(2).any(|it| {
            NAMES.contains(&it[0]) && !it[1].chars().all(|c| matches!(c, '*' | '?' | '.'))
        });
        let place = vital.filter(|_| !is_narrow);
        if place.is_some() && texts.contains(&"-delete") {
            return Err(self.hazard(HazardKind::Delete, fields));
        }
        for behind in arguments
            .split(|it: &Field| matches!(&*it.text, "-exec" | "-execdir" | "-ok" | "-okdir"))
            .skip(1)
        {
            let found = place.clone().unwrap_or_else(|| UNKNOWN.to_string());
            let command = behind.iter().take_while(|it| !matches!(&*it.text, ";" | "+"));
            let mut command: Vec<Field> = command.cloned().collect();
            for field in &mut command {
                field.text = field.text.replace("{}", &found);
            }
            // Deleting every file below is as bad as deleting the directories.
            let removes = command.first().is_some_and(|it| it.name() == "rm");
            if place.is_some() && removes {
                return Err(self.hazard(HazardKind::Delete, fields));
            }
            self.run(&command, input)?;
        }
        Ok(())
    }

    /// Checks `dd`: with `if=` only from one relative path to another.
    fn copy(&mut self, fields: &[Field], arguments: &[Field]) -> Walk<()> {
        let end = |key| arguments.iter().find_map(|it| it.text.strip_prefix(key));
        let (from, to) = (end("if="), end("of="));
        let is_own = |path: &str| {
            !path.starts_with('/')
                && !path.contains(UNKNOWN)
                && !path.split('/').any(|it| it == "..")
        };
        let is_bad = match (from, to) {
            (Some(from), to) => !is_own(from) || !to.is_none_or(is_own),
            (None, to) => to.is_some_and(|it| rules::is_disk(&self.absolute(it))),
        };
        if is_bad { Err(self.hazard(HazardKind::DiskCopy, fields)) } else { Ok(()) }
    }

    fn write(&mut self, fields: &[Field], arguments: &[Field]) -> Walk<()> {
        if arguments.iter().any(|it: &Field| {
            let path = it.text.split_once('=').map_or(&*it.text, |it| it.1);
            rules::is_disk(&self.absolute(path))
        }) {
            return Err(self.hazard(HazardKind::DeviceWrite, fields));
        }
        Ok(())
    }

    fn change_directory(&mut self, to: Option<&Field>) {
        let directory = self.absolute(to.map_or(HOME, |it| &it.text));
        self.directory = Some(directory).filter(|it| it.starts_with('/') && !it.contains(UNKNOWN));
    }

    /// Returns an absolute path, if the working directory is known.
    fn absolute(&self, path: &str) -> String {
        match &self.directory {
            Some(directory) if !path.starts_with('/') => format!("{directory}/{path}"),
            _ => path.to_owned(),
        }
    }

    fn assign(&mut self, name: &str, value: Value, adds: bool) {
        let old = self.variables.entry(name.to_owned()).or_default();
        old.is_foreign |= value.is_foreign;
        if adds && !value.is_list && !old.is_list {
            let text = value.texts.concat();
            old.texts.iter_mut().for_each(|it| it.push_str(&text));
        } else if adds || (self.is_conditional && !old.is_list && !value.is_list) {
            // It may still have its previous value.
            old.is_list |= value.is_list;
            old.texts.extend(value.texts);
            old.texts.truncate(64);
        } else {
            *old = value;
        }
        if old.texts.iter().map(String::len).sum::<usize>() > 64 * 1024 {
            *old = Value { is_foreign: old.is_foreign, ..Value::text(UNKNOWN) };
        }
    }

    fn hazard(&self, kind: HazardKind, fields: &[Field]) -> Hazard {
        let command = join_texts(fields).replace(UNKNOWN, "…");
        let end = command.char_indices().nth(120).map_or(command.len(), |it| it.0);
        Hazard { kind, line: self.line, command: command[..end].to_owned() }
    }
}

impl Stream {
    /// Appends the output that follows.
    fn add(&mut self, next: Self) {
        self.is_foreign |= next.is_foreign;
        self.text = match (self.text.take(), next.text) {
            (Some(text), Some(next)) if text.len() + next.len() < 64 * 1024 => Some(text + &next),
            _ => None,
        };
    }
}

/// Returns the output of `echo` or `printf`.
fn printed_output(name: &str, arguments: &[Field]) -> Stream {
    let is_foreign = arguments.iter().any(|it| it.is_foreign);
    let mut rest = arguments
        .iter()
        .map(|it| &*it.text)
        .skip_while(|it| name == "echo" && matches!(*it, "-n" | "-e" | "-ne" | "-en"));
    let text = if name == "echo" {
        // Some shells decode what others print unchanged.
        unescape(&rest.collect::<Vec<_>>().join(" ")) + "\n"
    } else {
        let format = unescape(rest.next().unwrap_or_default());
        let mut pieces = format.split('%');
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            match piece.chars().next() {
                Some('s' | 'b' | 'd' | 'c') => {
                    text.push_str(&unescape(rest.next().unwrap_or_default()));
                    text.push_str(&piece[1..]);
                }
                _ => text.push_str(piece),
            }
        }
        for more in rest {
            text.push_str(&unescape(more));
        }
        text
    };
    Stream { text: (!text.contains(UNKNOWN)).then_some(text), is_foreign }
}

fn join_texts(fields: &[Field]) -> String {
    fields.iter().map(|it| &*it.text).collect::<Vec<_>>().join(" ")
}
