//! `execute_sql`: executes a statement on the database that the host has configured.

use std::{borrow::Cow, sync::Arc};

use prowess_sql::{Access, Database, SqlError, SqlLimits, Statement};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{input, schema};
use crate::{
    outcome::{Outcome, OutcomeStatus},
    tool::{Action, Tool, ToolFuture},
};

/// The tool `execute_sql`.
#[derive(Debug)]
pub struct ExecuteSql {
    /// The database; without one, every call is refused.
    pub database: Option<Arc<dyn Database>>,
    /// Whether statements may write.
    pub access: Access,
    /// The limits of each statement.
    pub limits: SqlLimits,
}

/// The hint on how to configure a database.
const NO_DATABASE: &str = "set `url` under `[sql]` in `prowess.toml`";

/// The input.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// One statement
    sql: String,
    /// Values for the placeholders, in order
    #[serde(default)]
    params: Vec<Value>,
}

impl Tool for ExecuteSql {
    fn name(&self) -> &str {
        "execute_sql"
    }

    fn description(&self) -> Cow<'_, str> {
        let Some(database) = &self.database else {
            return format!("Run one SQL statement. No database is configured: {NO_DATABASE}.")
                .into();
        };
        let access = match self.access {
            Access::Read => "Read-only.",
            Access::Write => "It can read and write.",
        };
        let (dialect, rows) = (database.dialect(), self.limits.rows);
        format!("Run one SQL statement ({dialect}) and return at most {rows} rows. {access}").into()
    }

    fn input_schema(&self) -> Value {
        schema::<Input>()
    }

    fn action(&self, given: &Value) -> Result<Action, Box<Outcome>> {
        Ok(Action::Query(input::<Input>(given)?.sql))
    }

    fn perform<'a>(&'a self, _: Action, given: Value) -> ToolFuture<'a> {
        Box::pin(async move {
            let Input { sql, params } = match input(&given) {
                Ok(input) => input,
                Err(outcome) => return *outcome,
            };
            let Some(database) = &self.database else {
                let outcome = Outcome::bad(OutcomeStatus::Refused, "no database is configured");
                return outcome.hint(NO_DATABASE);
            };
            if sql.trim_matches([';', ' ', '\t', '\r', '\n']).is_empty() {
                let outcome = Outcome::bad(OutcomeStatus::Invalid, "there is no statement");
                return outcome.hint("write one, such as `SELECT 1`");
            }
            let (access, limits) = (self.access, self.limits);
            let statement = Statement { sql, parameters: params, access, limits };
            match database.run(statement).await {
                Ok(table) => {
                    let mut output = json!({
                        "columns": table.columns,
                        "row_count": table.rows.len(),
                        "truncated": !table.left_out.is_empty(),
                    });
                    if !table.left_out.is_empty() {
                        output["left_out"] = table.left_out.into();
                    }
                    if let Some(rows) = table.rows_affected {
                        output["rows_affected"] = rows.into();
                    }
                    output["rows"] = table.rows.into();
                    Outcome::ok(output)
                }
                Err(error) => self.to_outcome(&error),
            }
        })
    }
}

impl ExecuteSql {
    fn to_outcome(&self, error: &SqlError) -> Outcome {
        let (status, hint) = match error {
            SqlError::ReadOnly(_) => (
                OutcomeStatus::Refused,
                "set `write = true` under `[sql]` in your own settings to allow writes",
            ),
            SqlError::Privileged { .. } => (
                OutcomeStatus::Refused,
                "use an unprivileged database user, or set `privileged = true` under `[sql]` \
                 in your own settings",
            ),
            SqlError::InTransaction => {
                (OutcomeStatus::Refused, "the host has to end the transaction first")
            }
            SqlError::Refused(_) | SqlError::SessionState(_) => (OutcomeStatus::Refused, ""),
            SqlError::Parameters { .. } => (OutcomeStatus::Invalid, ""),
            SqlError::TimedOut(_) => (OutcomeStatus::TimedOut, ""),
            _ => (OutcomeStatus::Failed, ""),
        };
        let message = match error {
            SqlError::Memory(most) => {
                let most = most / (1024 * 1024);
                format!(
                    "it needs more than {most} MiB of memory (`limits.memory`): collect, group or join fewer rows"
                )
            }
            error => error.to_string(),
        };
        let outcome = Outcome::bad(status, message);
        if hint.is_empty() { outcome } else { outcome.hint(hint) }
    }
}
