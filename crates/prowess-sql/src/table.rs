//! Builds a table from rows, within the limits.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;

use crate::database::{Column, SqlLimits, Table};

/// The maximum length of a column's name in bytes, which may be a whole expression.
const NAME: usize = 256;

/// Builds a table within limits.
pub(crate) struct TableBuilder {
    table: Table,
    limits: SqlLimits,
    /// The size of all values so far.
    bytes: usize,
    /// The number of values that were cut.
    cut: usize,
}

impl TableBuilder {
    pub(crate) fn new(columns: Vec<Column>, limits: SqlLimits) -> Self {
        let mut builder = Self { table: Table::default(), limits, bytes: 0, cut: 0 };
        builder.set_columns(columns);
        builder
    }

    /// Sets the columns, with their names cut to the maximum length.
    pub(crate) fn set_columns(&mut self, mut columns: Vec<Column>) {
        for Column { name, .. } in &mut columns {
            name.truncate(name.floor_char_boundary(NAME));
        }
        self.table.columns = columns;
    }

    /// Adds to the number of changed rows, for a statement that returns none.
    pub(crate) fn add_affected(&mut self, rows: u64) {
        if self.table.columns.is_empty() {
            *self.table.rows_affected.get_or_insert(0) += rows;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.rows.is_empty()
    }

    /// Whether the limits allow another row; an omission is recorded.
    pub(crate) fn wants_more(&mut self) -> bool {
        let full = if self.table.rows.len() >= self.limits.rows {
            format!("all rows after the first {}", self.limits.rows)
        } else if self.bytes >= self.limits.total {
            format!("all rows after the first {} bytes", self.limits.total)
        } else {
            return true;
        };
        self.table.left_out.push(full);
        false
    }

    pub(crate) fn add_row(&mut self, row: Vec<Value>) {
        self.bytes += row.len();
        self.table.rows.push(row);
    }

    /// Returns a text, cut to the maximum size of a value.
    pub(crate) fn text(&mut self, text: &str) -> Value {
        let end = text.floor_char_boundary(self.reserve(text.len()));
        Value::String(text[..end].to_owned())
    }

    /// Returns bytes in base64, cut to the maximum size of a value.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Value {
        let end = self.reserve(bytes.len());
        Value::String(BASE64_STANDARD.encode(&bytes[..end]))
    }

    /// Parses a value written in JSON; returns its text if it is too long for a value.
    pub(crate) fn json(&mut self, text: &str) -> Value {
        let read =
            if text.len() <= self.limits.cell { serde_json::from_str(text).ok() } else { None };
        match read {
            Some(value) => {
                self.bytes += text.len();
                value
            }
            None => self.text(text),
        }
    }

    pub(crate) fn finish(mut self) -> Table {
        if self.cut > 0 {
            let cut = format!("the end of {} values over {} bytes", self.cut, self.limits.cell);
            self.table.left_out.push(cut);
        }
        self.table
    }

    /// Counts a value of this length, and returns how much of it is kept.
    fn reserve(&mut self, length: usize) -> usize {
        let kept = length.min(self.limits.cell);
        self.cut += usize::from(kept < length);
        self.bytes += kept;
        kept
    }
}
