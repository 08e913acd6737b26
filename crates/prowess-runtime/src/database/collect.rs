//! Rows become a table, and no more of them than the bounds allow.

use serde_json::Value;

use super::{Bounds, Column, Table};
use crate::content::base64;

/// The most bytes of the name of a column, which may be a whole expression.
const NAME: usize = 256;

/// A table in the making.
pub(super) struct Collect {
    table: Table,
    bounds: Bounds,
    bytes: usize,
    cut: usize,
}

impl Collect {
    pub(super) fn new(columns: Vec<Column>, bounds: Bounds) -> Self {
        let mut collect = Self { table: Table::default(), bounds, bytes: 0, cut: 0 };
        collect.columns(columns);
        collect
    }

    /// Takes the columns, with names that are not longer than a name is.
    pub(super) fn columns(&mut self, mut columns: Vec<Column>) {
        for Column { name, .. } in &mut columns {
            name.truncate(name.floor_char_boundary(NAME));
        }
        self.table.columns = columns;
    }

    /// Counts rows that were changed, by a statement that gives none.
    pub(super) fn affected(&mut self, rows: u64) {
        if self.table.columns.is_empty() {
            *self.table.rows_affected.get_or_insert(0) += rows;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.table.rows.is_empty()
    }

    /// Whether there is room for another row; what there is no room for is noted.
    pub(super) fn wants_more(&mut self) -> bool {
        let full = if self.table.rows.len() >= self.bounds.rows {
            format!("all rows behind the first {}", self.bounds.rows)
        } else if self.bytes >= self.bounds.total {
            format!("all rows behind the first {} bytes", self.bounds.total)
        } else {
            return true;
        };
        self.table.left_out.push(full);
        false
    }

    pub(super) fn row(&mut self, row: Vec<Value>) {
        self.bytes += row.len();
        self.table.rows.push(row);
    }

    /// A text, or as much of it as one value may have.
    pub(super) fn text(&mut self, text: &str) -> Value {
        let end = text.floor_char_boundary(self.room(text.len()));
        Value::String(text[..end].to_owned())
    }

    /// Bytes in base64, or as many of them as one value may have.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Value {
        let end = self.room(bytes.len());
        Value::String(base64(&bytes[..end]))
    }

    /// What is written in JSON, or its text where it is too long for a value.
    pub(super) fn json(&mut self, text: &str) -> Value {
        let read =
            if text.len() <= self.bounds.cell { serde_json::from_str(text).ok() } else { None };
        match read {
            Some(value) => {
                self.bytes += text.len();
                value
            }
            None => self.text(text),
        }
    }

    pub(super) fn table(mut self) -> Table {
        if self.cut > 0 {
            let cut = format!("the end of {} values over {} bytes", self.cut, self.bounds.cell);
            self.table.left_out.push(cut);
        }
        self.table
    }

    /// Counts a value of this length, and says how much of it is taken.
    fn room(&mut self, length: usize) -> usize {
        let taken = length.min(self.bounds.cell);
        self.cut += usize::from(taken < length);
        self.bytes += taken;
        taken
    }
}
