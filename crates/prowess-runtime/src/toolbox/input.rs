//! The input of a call, checked against the schema of its tool.

use prowess::{did_you_mean, nearest};
use serde_json::{Map, Value, json};

use crate::{
    outcome::{Outcome, OutcomeStatus},
    schema::{Schema, property, shortened},
    tool::Tool,
    tool_parameters::{tool_parameters, unknown_parameters},
};

/// Checks an input against the schema of a tool, and resolves aliases. All errors are reported at
/// once.
pub(super) fn check_input(tool: &dyn Tool, input: Value) -> Result<Value, Box<Outcome>> {
    let invalid = |message: String| Box::new(Outcome::bad(OutcomeStatus::Invalid, message));
    let root = tool.input_schema();
    let schema = Schema::new(&root)
        .map_err(|error| invalid(format!("`{}` cannot be called: {error}", tool.name())))?;
    let input = match input {
        Value::Object(input) => Value::Object(resolve_aliases(tool, &root, input)),
        Value::Null => json!({}),
        other => other,
    };
    let mismatches = schema.mismatches(&input);
    if mismatches.is_empty() {
        return Ok(input);
    }
    let mut all: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
    // A schema may allow unlisted names; if something else is wrong, such a name is probably
    // misspelled.
    let unknown = unknown_parameters(&root, &input);
    let unreported =
        unknown.iter().filter(|name| mismatches.iter().all(|it| it.parameter != **name));
    all.extend(
        unreported
            .take(MAX_NAMED)
            .map(|it: &&str| format!("`{}` is not a parameter", shortened(it))),
    );
    let outcome = invalid(format!("invalid input: {}", all.join("; ")));
    Err(match takes_parameters(tool.name(), &root, &unknown) {
        Some(takes) => Box::new(outcome.hint(takes)),
        None => outcome,
    })
}

/// The maximum number of parameters in one sentence.
const MAX_NAMED: usize = 12;

/// Returns a sentence with the parameters of a tool, and the one that an unknown name may mean.
pub fn takes_parameters(tool: &str, schema: &Value, unknown: &[&str]) -> Option<String> {
    let parameters = tool_parameters(schema);
    if parameters.is_empty() {
        let lists = schema.get("properties").is_some();
        return (lists && !unknown.is_empty()).then(|| format!("`{tool}` takes no parameters"));
    }
    let near = unknown.iter().find_map(|it| nearest(it, parameters.iter().map(|it| &*it.name)));
    let near = near.map(|it| format!("{} ", did_you_mean(it))).unwrap_or_default();
    let mut named: Vec<String> =
        parameters.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    if parameters.len() > MAX_NAMED {
        named.push(format!("and {} more", parameters.len() - MAX_NAMED));
    }
    Some(format!("{near}`{tool}` takes {}", named.join(", ")))
}

/// Resolves aliases, and removes a null that the schema does not allow.
fn resolve_aliases(tool: &dyn Tool, root: &Value, input: Map<String, Value>) -> Map<String, Value> {
    let mut named = Map::new();
    for (name, value) in input {
        let alias = tool.aliases().iter().find(|it| it.0 == name).map(|it| it.1.to_owned());
        let name = alias.filter(|it| !named.contains_key(it)).unwrap_or(name);
        let kind = property(root, &name).and_then(|it| it.get("type"));
        let knows_null = kind.is_none_or(|it| match it {
            Value::Array(kinds) => kinds.iter().any(|it| it == "null"),
            kind => kind == "null",
        });
        if !value.is_null() || knows_null {
            named.insert(name, value);
        }
    }
    named
}
