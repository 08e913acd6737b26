//! Blocks of Markdown, one below the other.

use std::mem;

use anstyle::{AnsiColor, Style};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, LinkType, Parser, Tag, TagEnd};

use super::{
    layout::extensions,
    styled::{StyledText, WideWords},
    table::Table,
    wrap,
};
use crate::{
    printer::{DIM, NAME, paint},
    safe,
};

const CODE: Style = AnsiColor::Cyan.on_default();
/// The indentation of code.
const MARGIN: &str = "    ";
/// The maximum depth of indented quotes and items.
const DEEPEST: usize = 12;
/// The minimum width of text, however deep it is.
const NARROWEST: usize = 16;

/// Rendered blocks.
#[derive(Debug)]
pub(super) struct Page {
    width: usize,
    colored: bool,
    out: String,
    /// Whether a block has been rendered, so that the next one comes after a blank line.
    pub(super) has_content: bool,
    containers: Vec<Container>,
    /// The text of the current block.
    text: StyledText,
    styles: Vec<Style>,
    /// The lines of a block of code or HTML.
    literal: Option<String>,
    table: Option<Table>,
    /// The addresses of the links that are open.
    addresses: Vec<String>,
}

/// A block that contains others.
#[derive(Debug)]
struct Container {
    kind: ContainerKind,
    has_content: bool,
}

#[derive(Debug)]
enum ContainerKind {
    Quote,
    /// A list. One that is loose has blank lines between its items.
    List {
        next: Option<u64>,
        is_loose: bool,
    },
    /// An item, with its marker until that is printed.
    Item {
        marker: String,
        indent: usize,
    },
}

impl Page {
    pub(super) fn new(width: usize, colored: bool) -> Self {
        Self {
            width,
            colored,
            out: String::new(),
            has_content: false,
            containers: Vec::new(),
            text: StyledText::default(),
            styles: Vec::new(),
            literal: None,
            table: None,
            addresses: Vec::new(),
        }
    }

    pub(super) fn into_text(self) -> String {
        self.out
    }

    /// Renders an outermost block. Definitions of links, which no event covers, are printed
    /// unchanged.
    pub(super) fn block(&mut self, source: &str) {
        let events = Parser::new_ext(source, extensions()).into_offset_iter();
        let definitions = events.reference_definitions().iter();
        let mut definitions: Vec<_> = definitions.map(|(_, it)| it.span.clone()).collect();
        definitions.sort_by_key(|it| it.start);
        let mut has_events = false;
        for (event, _) in events {
            has_events = true;
            self.handle_event(event);
        }
        match has_events {
            true => definitions.into_iter().for_each(|it| self.definition(&source[it])),
            false => self.definition(source),
        }
    }

    fn definition(&mut self, source: &str) {
        self.begin_block();
        for line in source.trim().lines() {
            self.line(&paint(&safe::line(line), DIM, self.colored));
        }
    }

    fn handle_event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) if self.literal.is_some() => {
                self.literal.get_or_insert_default().push_str(&text);
            }
            Event::Code(text) => {
                let mark = if self.colored { "" } else { "`" };
                self.push(
                    &format!("{mark}{text}{mark}"),
                    self.style().fg_color(CODE.get_fg_color()),
                );
            }
            Event::InlineHtml(text) | Event::Html(text) => self.push(&text, self.style().dimmed()),
            Event::SoftBreak => self.push(" ", self.style()),
            Event::HardBreak => self.text.push("\n", self.style()),
            Event::Rule => {
                self.begin_block();
                let rule = paint(&"─".repeat(self.room()), DIM, self.colored);
                self.line(&rule);
            }
            Event::TaskListMarker(is_done) => {
                self.push(if is_done { "[x] " } else { "[ ] " }, self.style());
            }
            Event::Text(text)
            | Event::FootnoteReference(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => self.push(&text, self.style()),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => {
                if let [.., list, item] = &mut self.containers[..]
                    && matches!(item.kind, ContainerKind::Item { .. })
                    && let ContainerKind::List { is_loose, .. } = &mut list.kind
                {
                    *is_loose = true;
                }
            }
            Tag::Heading { level, .. } => {
                self.end_text();
                self.styles.push(heading(level));
            }
            Tag::BlockQuote(_) => self.open(ContainerKind::Quote),
            Tag::List(next) => self.open(ContainerKind::List { next, is_loose: false }),
            Tag::Item => self.start_item(),
            Tag::CodeBlock(kind) => {
                self.end_text();
                self.begin_block();
                if let CodeBlockKind::Fenced(info) = kind {
                    self.caption(&info);
                }
                self.literal = Some(String::new());
            }
            Tag::HtmlBlock => {
                self.end_text();
                self.begin_block();
                self.literal = Some(String::new());
            }
            Tag::Table(alignments) => {
                self.end_text();
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead => {
                self.table.iter_mut().for_each(|it| it.rows.push(Vec::new()));
                self.styles.push(NAME);
            }
            Tag::TableRow => self.table.iter_mut().for_each(|it| it.rows.push(Vec::new())),
            Tag::Emphasis => self.emphasize("*", self.style().italic()),
            Tag::Strong => self.emphasize("**", self.style().bold()),
            Tag::Strikethrough => self.emphasize("~~", self.style().strikethrough()),
            Tag::Link { link_type, dest_url, .. } => {
                // The text of these is the address.
                let is_shown = !matches!(link_type, LinkType::Autolink | LinkType::Email);
                self.addresses.push(if is_shown { dest_url.to_string() } else { String::new() });
                self.styles.push(self.style().underline());
            }
            Tag::Image { dest_url, .. } => {
                self.addresses.push(dest_url.to_string());
                self.styles.push(self.style().italic());
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.end_text(),
            TagEnd::Heading(_) => {
                self.end_text();
                self.styles.pop();
            }
            TagEnd::TableHead => drop(self.styles.pop()),
            TagEnd::BlockQuote(_) | TagEnd::List(_) => {
                self.end_text();
                self.containers.pop();
            }
            TagEnd::Item => {
                self.end_text();
                if self.containers.last().is_some_and(|it: &Container| matches!(&it.kind, ContainerKind::Item { marker, .. } if !marker.is_empty())) {
                    self.line("");
                }
                self.containers.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::HtmlBlock => {
                let html = self.literal.take().unwrap_or_default();
                for line in html.trim_end().lines() {
                    self.line(&paint(&safe::lines(line), DIM, self.colored));
                }
            }
            TagEnd::TableCell => {
                let cell = mem::take(&mut self.text);
                if let Some(row) = self.table.as_mut().and_then(|it| it.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                let table = self.table.take().unwrap_or_default();
                self.begin_block();
                let lines = table.lines(self.room(), self.colored);
                lines.iter().for_each(|it| self.line(it));
            }
            TagEnd::Emphasis => self.end_emphasis("*"),
            TagEnd::Strong => self.end_emphasis("**"),
            TagEnd::Strikethrough => self.end_emphasis("~~"),
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                let address = self.addresses.pop().unwrap_or_default();
                if !address.is_empty() {
                    self.push(&format!(" ({address})"), self.style().dimmed());
                }
            }
            _ => {}
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn push(&mut self, text: &str, style: Style) {
        self.text.push(&safe::line(text), style);
    }

    fn emphasize(&mut self, mark: &str, style: Style) {
        if !self.colored {
            self.push(mark, style);
        }
        self.styles.push(style);
    }

    fn end_emphasis(&mut self, mark: &str) {
        self.styles.pop();
        if !self.colored {
            self.push(mark, self.style());
        }
    }

    fn open(&mut self, kind: ContainerKind) {
        self.end_text();
        self.begin_block();
        self.containers.push(Container { kind, has_content: false });
    }

    fn start_item(&mut self) {
        let Some(list) = self.containers.last_mut() else { return };
        let ContainerKind::List { next, is_loose } = &mut list.kind else { return };
        let marker = match next {
            Some(number) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            None => "- ".to_owned(),
        };
        let is_apart = *is_loose && list.has_content;
        list.has_content = true;
        if is_apart {
            self.blank();
        }
        let indent = marker.len();
        let kind = ContainerKind::Item { marker, indent };
        self.containers.push(Container { kind, has_content: false });
    }

    /// Prints the text since the last block.
    fn end_text(&mut self) {
        // The cells of a table are not text of their own.
        if self.text.is_empty() || self.table.is_some() {
            return;
        }
        let text = mem::take(&mut self.text);
        self.begin_block();
        for line in text.wrap(self.room(), WideWords::Whole) {
            self.line(&line.paint(self.colored));
        }
    }

    /// Prints the name of the file in a block of code, such as `a/b` of `sh bad a/b`.
    fn caption(&mut self, info: &str) {
        if let Some(path) = info.split(' ').nth(2) {
            self.line(&paint(&format!("  {}", safe::line(path)), DIM, self.colored));
        }
    }

    fn end_code(&mut self) {
        let code = self.literal.take().unwrap_or_default();
        let room = self.room().saturating_sub(MARGIN.len());
        for line in code.lines() {
            for line in wrap(&safe::lines(line), room, "  ") {
                let line = paint(line.trim_end(), CODE, self.colored);
                self.line(&format!("{MARGIN}{line}"));
            }
        }
    }

    /// Separates a block from the one before it, except in a tight list.
    fn begin_block(&mut self) {
        let is_tight = matches!(&self.containers[..], [.., list, item]
            if matches!(item.kind, ContainerKind::Item { .. })
            && matches!(list.kind, ContainerKind::List { is_loose: false, .. }));
        let has_content = match self.containers.last_mut() {
            Some(container) => &mut container.has_content,
            None => &mut self.has_content,
        };
        if mem::replace(has_content, true) && !is_tight {
            self.blank();
        }
    }

    /// Returns the maximum width of a line here.
    fn room(&self) -> usize {
        let indent = self.containers.iter().map(Container::width).filter(|it| *it > 0);
        let indent: usize = indent.take(DEEPEST).sum();
        self.width.saturating_sub(indent).max(NARROWEST.min(self.width))
    }

    fn blank(&mut self) {
        self.line("");
    }

    fn line(&mut self, line: &str) {
        let mut depth = 0;
        let mut prefix = String::new();
        for container in &mut self.containers {
            depth += usize::from(container.width() > 0);
            prefix.push_str(&container.prefix(depth <= DEEPEST, self.colored));
        }
        self.out.push_str(format!("{prefix}{line}").trim_end());
        self.out.push('\n');
    }
}

impl Container {
    fn width(&self) -> usize {
        match &self.kind {
            ContainerKind::Quote => 2,
            ContainerKind::List { .. } => 0,
            ContainerKind::Item { indent, .. } => *indent,
        }
    }

    /// Returns the prefix of a line: the marker of an item once, and the indentation up to the
    /// maximum depth.
    fn prefix(&mut self, is_indented: bool, colored: bool) -> String {
        match &mut self.kind {
            ContainerKind::Quote if is_indented => paint("│", DIM, colored) + " ",
            ContainerKind::Item { marker, .. } if !marker.is_empty() => mem::take(marker),
            ContainerKind::Item { indent, .. } if is_indented => " ".repeat(*indent),
            _ => String::new(),
        }
    }
}

fn heading(level: HeadingLevel) -> Style {
    match level {
        HeadingLevel::H1 => NAME.underline(),
        HeadingLevel::H2 => NAME,
        _ => NAME.italic(),
    }
}
