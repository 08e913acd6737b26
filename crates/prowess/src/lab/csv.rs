//! Tables with cells separated by commas, semicolons or tabs, as spreadsheets write them.

/// A table with a header.
pub(super) struct Table {
    pub(super) header: Vec<String>,
    /// Its rows, each with the line in which it begins.
    pub(super) rows: Vec<(usize, Vec<String>)>,
    /// The line of a quote that is never closed.
    pub(super) open: Option<usize>,
}

impl Table {
    /// Parses a table; `None` if no cell of its first line is a wanted header.
    pub(super) fn read(text: &str, is_wanted: impl Fn(&str) -> bool) -> Option<Self> {
        [',', ';', '\t'].into_iter().find_map(|separator| {
            let first = Self::rows(text.lines().next()?, separator).rows.pop()?.1;
            first.iter().any(|it| is_wanted(it)).then_some(())?;
            let mut table = Self::rows(text, separator);
            table.header = table.rows.remove(0).1;
            Some(table)
        })
    }

    /// Parses all rows that are not empty. A quoted cell can contain anything, with quotes doubled.
    fn rows(text: &str, separator: char) -> Self {
        let mut table = Self { header: Vec::new(), rows: Vec::new(), open: None };
        let (mut row, mut cell) = (Vec::new(), String::new());
        let (mut line, mut start) = (1, 1);
        let mut chars = text.chars().chain(['\n']).peekable();
        while let Some(c) = chars.next() {
            line += usize::from(c == '\n');
            match c {
                '"' if table.open.is_some() && chars.next_if_eq(&'"').is_some() => cell.push('"'),
                '"' if table.open.is_some() => table.open = None,
                _ if table.open.is_some() => cell.push(c),
                '"' if cell.trim().is_empty() => {
                    cell.clear();
                    table.open = Some(line);
                }
                '\n' => {
                    row.push(std::mem::take(&mut cell).trim().to_owned());
                    let row = std::mem::take(&mut row);
                    if row.iter().any(|it| !it.is_empty()) {
                        table.rows.push((start, row));
                    }
                    start = line;
                }
                _ if c == separator => row.push(std::mem::take(&mut cell).trim().to_owned()),
                _ => cell.push(c),
            }
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_in_quotes_hold_separators_lines_and_quotes() {
        let text = "id;prompt\r\n1;\"a; \"\"b\"\"\nc\"\r\n\r\n2; d \n";
        let table = Table::read(text, |it| it == "prompt").unwrap();
        assert_eq!(table.header, ["id", "prompt"]);
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        assert_eq!(table.rows, [(2, row(["1", "a; \"b\"\nc"])), (5, row(["2", "d"]))]);
        assert_eq!(table.open, None);
    }

    #[test]
    fn what_has_no_such_header_is_no_table_and_a_quote_has_to_be_closed() {
        assert!(Table::read("open a PR\nship, it", |it| it == "prompt").is_none());
        assert!(Table::read("", |_| true).is_none());
        let table = Table::read("prompt\n\"a\nb", |it| it == "prompt").unwrap();
        assert_eq!((table.rows.len(), table.open), (0, Some(2)));
    }
}
