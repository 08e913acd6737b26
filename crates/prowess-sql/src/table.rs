//! Rows become a table, and no more of them than the limits allow.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;

use crate::database::{Column, SqlLimits, Table};

/// The most bytes of the name of a column, which may be a whole expression.
const NAME: usize = 256;

/// Builds a table within limits.
pub(crate) struct TableBuilder {
    table: Table,
    limits: SqlLimits,
    bytes: usize,
    cut: usize,
}

impl TableBuilder {
    pub(crate) fn new(columns: Vec<Column>, limits: SqlLimits) -> Self {
        let mut collect = Self { table: Table::default(), limits, bytes: 0, cut: 0 };
        collect.columns(columns);
        collect
    }

    /// Takes the columns, with names that are not longer than a name is.
    pub(crate) fn columns(&mut self, mut columns: Vec<Column>) {
        for Column { name, .. } in &mut columns {
            name.truncate(name.floor_char_boundary(NAME));
        }
        self.table.columns = columns;
    }

    /// Counts rows that were changed, by a statement that gives none.
    pub(crate) fn affected(&mut self, rows: u64) {
        if self.table.columns.is_empty() {
            *self.table.rows_affected.get_or_insert(0) += rows;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.rows.is_empty()
    }

    /// Whether there is room for another row; what there is no room for is noted.
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

    pub(crate) fn row(&mut self, row: Vec<Value>) {
        self.bytes += row.len();
        self.table.rows.push(row);
    }

    /// A text, or as much of it as one value may have.
    pub(crate) fn text(&mut self, text: &str) -> Value {
        let end = text.floor_char_boundary(self.room(text.len()));
        Value::String(text[..end].to_owned())
    }

    /// Bytes in base64, or as many of them as one value may have.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Value {
        let end = self.room(bytes.len());
        Value::String(BASE64_STANDARD.encode(&bytes[..end]))
    }

    /// A value written in JSON, or its text where it is too long for a value.
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

    pub(crate) fn table(mut self) -> Table {
        if self.cut > 0 {
            let cut = format!("the end of {} values over {} bytes", self.cut, self.limits.cell);
            self.table.left_out.push(cut);
        }
        self.table
    }

    /// Counts a value of this length, and says how much of it is taken.
    fn room(&mut self, length: usize) -> usize {
        let taken = length.min(self.limits.cell);
        self.cut += usize::from(taken < length);
        self.bytes += taken;
        taken
    }
}
