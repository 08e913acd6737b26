//! Converts fields to a typed manifest.

use prowess_frontmatter::{Field, Kind, Scalar, Value};

use super::SplitDocument;
use crate::{
    finding::{
        Position, Report,
        rule::{self, Profile, Rule},
    },
    read::{
        manifest::{AllowedTools, Dialect, Manifest, Status, Type},
        manifest_field::{Content, FieldSupport, ManifestField, manifest_field},
        name::unfit_reason,
    },
};

impl SplitDocument<'_> {
    /// Returns the manifest; `None`, with a finding, if the fields do not make a skill.
    pub(crate) fn manifest(&self, folder: Option<&str>, report: &mut Report) -> Option<Manifest> {
        let fields = self.fields.as_deref()?;
        self.note_duplicates(fields, report);
        let mut typing =
            ManifestBuilder { reading: self, report, manifest: Manifest::default(), usable: true };
        let mut unknown = Vec::new();
        for (number, field) in fields.iter().enumerate() {
            let first =
                !fields[..number].iter().any(|it| canonical(&it.key) == canonical(&field.key));
            // Of several fields about an approval, one that requires it wins.
            let is_taken = match canonical(&field.key) {
                "requires-approval" if !first => typing.take(field) || !first,
                _ => !first || typing.take(field),
            };
            if !is_taken {
                unknown.push(field.clone().into_owned());
            }
        }
        typing.take_nested(fields);
        typing.require(folder);
        let ManifestBuilder { mut manifest, usable, .. } = typing;
        manifest.unknown = unknown.into_boxed_slice();
        usable.then_some(manifest)
    }

    fn note_duplicates(&self, fields: &[Field<'_>], report: &mut Report) {
        for (number, field) in fields.iter().enumerate() {
            if fields[..number].iter().any(|it| canonical(&it.key) == canonical(&field.key)) {
                report.note(
                    &rule::DUPLICATE_KEY,
                    Position::line(self.line(field)),
                    || match canonical(&field.key) {
                        "requires-approval" => {
                            format!(
                                "`{}` appears twice; approval is required if either says so",
                                field.key
                            )
                        }
                        _ => format!("`{}` appears twice; the first one is used", field.key),
                    },
                    "keep one of them",
                );
            }
            self.note_nested_duplicates(&field.value, report);
        }
    }

    fn note_nested_duplicates(&self, value: &Value<'_>, report: &mut Report) {
        match value {
            Value::Map(fields) => self.note_duplicates(fields, report),
            Value::List(items) => {
                items.iter().for_each(|it| self.note_nested_duplicates(it, report));
            }
            Value::Scalar(_) | Value::Empty => {}
        }
    }

    /// Returns the value of a field as written.
    fn source_text(&self, field: &Field<'_>) -> Option<&str> {
        self.document.frontmatter?.text.get(field.span.clone()).filter(|it| !it.is_empty())
    }
}

/// Alternative spellings of fields, and the canonical key of each.
pub(crate) const SPELLINGS: &[(&str, &str)] = &[
    ("allowedTools", "allowed-tools"),
    ("allowed_tools", "allowed-tools"),
    ("created_by", "created-by"),
    ("requiresApproval", "requires-approval"),
    ("requires_approval", "requires-approval"),
    ("user-invokable", "user-invocable"),
    ("when-to-use", "when_to_use"),
];

/// Returns the canonical key of a spelling.
pub(crate) fn canonical(key: &str) -> &str {
    SPELLINGS.iter().find(|it| it.0 == key).map_or(key, |it| it.1)
}

/// Whether a field under `metadata` belongs to the manifest, and is not an author's note that
/// happens to have the same key.
pub(crate) fn is_own(nested: &Field<'_>) -> bool {
    take_own(nested, &mut Manifest::default())
}

/// Reads a field under `metadata` into the manifest if it belongs to it and has a valid value.
fn take_own(nested: &Field<'_>, manifest: &mut Manifest) -> bool {
    let text = nested.value.as_text().map(str::trim);
    let text = text.filter(|it| !it.is_empty() && !nested.value.is_null());
    let Some(own) = manifest_field(canonical(&nested.key)).filter(|it| it.is_in_metadata()) else {
        return false;
    };
    match own.content {
        Content::Text { place, .. } => set_value(place(manifest), text.map(Box::from)),
        Content::Type => {
            put_value(&mut manifest.kind, text.and_then(|it| Type::from_word(&normalize_word(it))))
        }
        Content::Status => {
            let status = text.and_then(|it| Status::from_word(&normalize_word(it)));
            set_value(&mut manifest.status, status)
        }
        Content::Tags => {
            let tags = words(&nested.value, |c| c == ',').unwrap_or_default();
            let fits =
                !tags.is_empty() && tags.iter().all(|it| !it.is_empty() && !it.contains(','));
            put_value(&mut manifest.tags, fits.then(|| tags.into_boxed_slice()))
        }
        Content::RequiresApproval => {
            let value = text.and_then(bool_from_word);
            put_value(&mut manifest.requires_approval, value)
        }
    }
}

fn set_value<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    value.map(|it| *place = Some(it)).is_some()
}

fn put_value<T>(place: &mut T, value: Option<T>) -> bool {
    value.map(|it| *place = it).is_some()
}

/// Parses a boolean in any of the spellings that clients accept.
fn bool_from_word(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// Normalizes the spelling of a word.
fn normalize_word(word: &str) -> String {
    word.trim().to_ascii_lowercase()
}

struct ManifestBuilder<'r, 't> {
    reading: &'r SplitDocument<'t>,
    report: &'r mut Report,
    manifest: Manifest,
    usable: bool,
}

impl ManifestBuilder<'_, '_> {
    /// Reads a field into the manifest; false if it is to be kept as written.
    fn take(&mut self, field: &Field<'_>) -> bool {
        let key = canonical(&field.key);
        if let Some(own) = manifest_field(key) {
            return self.take_optional(field, own);
        }
        match key {
            "name" => self.name(field),
            "description" => self.description(field),
            "metadata" => self.metadata(field),
            "allowed-tools" => self.allowed_tools(field),
            _ => {
                let mut dialect = self.manifest.dialect.take().unwrap_or_default();
                let taken = self.dialect(field, &mut dialect);
                self.manifest.dialect = Some(dialect).filter(|it| **it != Dialect::default());
                taken
            }
        }
    }

    /// Reads an optional field of the manifest; false if it is to be kept as written.
    fn take_optional(&mut self, field: &Field<'_>, own: &ManifestField) -> bool {
        match own.content {
            Content::Text { place, .. } => self.text(field, own.support, place),
            Content::Type => {
                self.word(field, Type::from_word, &Type::ALL.map(Type::as_str), |it| &mut it.kind)
            }
            Content::Status => self.status(field),
            Content::Tags => self.tags(field),
            Content::RequiresApproval => {
                // Anything that is not clearly a no requires approval.
                let value = self.bool(field);
                self.manifest.requires_approval |= value != Some(false);
                value.is_some()
            }
        }
    }

    /// Reads the manifest's fields that are under `metadata` and not at the top level; everything
    /// else there is the author's and is kept.
    fn take_nested(&mut self, fields: &[Field<'_>]) {
        let mut seen: Vec<String> = Vec::new();
        let mut metadata = std::mem::take(&mut self.manifest.metadata).into_vec();
        metadata.retain(|field| {
            let key = canonical(&field.key);
            if !manifest_field(key).is_some_and(ManifestField::is_in_metadata) {
                return true;
            }
            // Anything that is not clearly a no requires approval, at any level.
            if key == "requires-approval" && !field.value.is_null() {
                let value = field.value.as_text().and_then(|it| bool_from_word(it.trim()));
                self.manifest.requires_approval |= value != Some(false);
            }
            let is_first = !seen.iter().any(|it| it == key);
            seen.push(key.to_owned());
            let approval = self.manifest.requires_approval;
            let is_taken = is_first && !is_set(fields, key) && take_own(field, &mut self.manifest);
            self.manifest.requires_approval |= approval;
            !is_taken
        });
        self.manifest.metadata = metadata.into_boxed_slice();
    }

    fn dialect(&mut self, field: &Field<'_>, dialect: &mut Dialect) -> bool {
        match canonical(&field.key) {
            "disable-model-invocation" => {
                set(&mut dialect.disable_model_invocation, self.bool(field))
            }
            "user-invocable" => set(&mut dialect.user_invocable, self.bool(field)),
            "argument-hint" => set(&mut dialect.argument_hint, self.hint(field)),
            "when_to_use" => set(&mut dialect.when_to_use, scalar_text(field)),
            "context" => set(&mut dialect.context, scalar_text(field)),
            "agent" => set(&mut dialect.agent, scalar_text(field)),
            "model" => set(&mut dialect.model, scalar_text(field)),
            "effort" => set(&mut dialect.effort, scalar_text(field)),
            "hooks" => set(&mut dialect.hooks, Some(field.value.clone().into_owned())),
            "paths" => {
                put(&mut dialect.paths, words(&field.value, |c| c == ',' || c.is_whitespace()))
            }
            "requires" => {
                put(&mut dialect.requires, words(&field.value, |c| c == ',' || c.is_whitespace()))
            }
            "triggers" => put(&mut dialect.triggers, words(&field.value, |c| c == ',')),
            _ => false,
        }
    }

    fn name(&mut self, field: &Field<'_>) -> bool {
        match &field.value {
            value if value.is_null() => {}
            Value::Scalar(scalar) if scalar.text.contains(char::is_control) => {
                let hint = "use lowercase letters and digits joined by single hyphens";
                self.reject(&rule::NAME_CHARACTERS, field, "the name has control characters", hint);
            }
            Value::Scalar(scalar) => {
                // The reference library reports invalid characters for a path, and does not check
                // for devices.
                match unfit_reason(&scalar.text) {
                    Some(why) if self.report.profile != Profile::Reference => {
                        let hint = "use lowercase letters and digits joined by single hyphens, such as `create-pr`";
                        self.reject(&rule::NAME_PATH, field, &why, hint);
                    }
                    _ => {
                        self.scalar(field, scalar);
                        self.manifest.name = scalar.text.trim().into();
                    }
                }
            }
            _ => {
                let hint = "write it as a string, such as `name: create-pr`";
                self.reject(&rule::NAME_NOT_TEXT, field, "`name` is not text", hint);
            }
        }
        true
    }

    fn description(&mut self, field: &Field<'_>) -> bool {
        match &field.value {
            value if value.is_null() => {}
            Value::Scalar(scalar) => {
                self.scalar(field, scalar);
                self.manifest.description = scalar.text.trim().into();
            }
            _ => {
                let hint = "write it as a string, in quotes if it begins with a bracket";
                self.reject(&rule::DESCRIPTION_NOT_TEXT, field, "`description` is not text", hint);
            }
        }
        true
    }

    fn tags(&mut self, field: &Field<'_>) -> bool {
        match &field.value {
            value if value.is_null() => {}
            Value::List(items) => {
                let texts: Option<Vec<Box<str>>> =
                    items.iter().map(|it| it.as_text().map(Box::from)).collect();
                match texts {
                    Some(texts) => self.manifest.tags = texts.into_boxed_slice(),
                    None => return self.note_wrong_type(field, "a list of strings"),
                }
            }
            _ => {
                let hint = "write `tags: [one, two]`";
                self.reject(&rule::TAGS_NOT_LIST, field, "`tags` is not a list", hint);
            }
        }
        true
    }

    /// Rejects the skill because of a field.
    fn reject(
        &mut self,
        rule: &'static Rule,
        field: &Field<'_>,
        message: &str,
        hint: &'static str,
    ) {
        self.report.fatal(rule, self.reading.at(field), message, hint);
        self.usable = false;
    }

    fn metadata(&mut self, field: &Field<'_>) -> bool {
        match &field.value {
            Value::Map(fields) => {
                let owned: Vec<Field<'static>> =
                    fields.iter().map(|it| it.clone().into_owned()).collect();
                self.manifest.metadata = owned.into_boxed_slice();
                true
            }
            _ => {
                let at = self.reading.at(field);
                self.report.note(
                    &rule::METADATA_NOT_MAP,
                    at,
                    || "`metadata` is not a map".to_owned(),
                    "write `key: \"value\"` lines under it, or remove it",
                );
                false
            }
        }
    }

    fn allowed_tools(&mut self, field: &Field<'_>) -> bool {
        let tools = match &field.value {
            Value::Scalar(scalar) if scalar.kind() != Kind::Null => {
                Some(AllowedTools::from_text(&scalar.text))
            }
            Value::List(items) => {
                let texts: Option<Vec<&str>> = items.iter().map(Value::as_text).collect();
                texts.map(|texts| {
                    AllowedTools(texts.into_iter().map(|it| it.trim().into()).collect())
                })
            }
            value if value.is_null() => Some(AllowedTools::default()),
            _ => None,
        };
        let Some(tools) = tools else {
            let at = self.reading.at(field);
            self.report.note(
                &rule::ALLOWED_TOOLS_NOT_TEXT,
                at,
                || format!("`{}` is neither a string nor a list of strings", field.key),
                "write `allowed-tools: Read Grep`",
            );
            return false;
        };
        self.manifest.allowed_tools = tools;
        true
    }

    fn text(
        &mut self,
        field: &Field<'_>,
        support: FieldSupport,
        place: fn(&mut Manifest) -> &mut Option<Box<str>>,
    ) -> bool {
        match &field.value {
            value if value.is_null() => true,
            Value::Scalar(scalar) => {
                self.scalar(field, scalar);
                *place(&mut self.manifest) = Some(scalar.text.trim().into());
                true
            }
            Value::Empty => true,
            Value::List(_) | Value::Map(_) => match support {
                // Those of the specification have rules of their own.
                FieldSupport::Specified => false,
                _ => self.note_wrong_type(field, "text"),
            },
        }
    }

    fn word<T>(
        &mut self,
        field: &Field<'_>,
        read: fn(&str) -> Option<T>,
        words: &[&str],
        place: fn(&mut Manifest) -> &mut T,
    ) -> bool {
        let Some(value) = field.value.as_text().map(normalize_word).as_deref().and_then(read)
        else {
            return self.note_wrong_type(field, &format!("one of {}", words.join(", ")));
        };
        *place(&mut self.manifest) = value;
        true
    }

    /// Reads the status. A skill with an unknown status is not in use.
    fn status(&mut self, field: &Field<'_>) -> bool {
        let word = field.value.as_text().map(normalize_word);
        self.manifest.status = match word.as_deref().and_then(Status::from_word) {
            _ if field.value.is_null() || field.value == Value::Empty => None,
            Some(status) => Some(status),
            None => {
                let at = self.reading.at(field);
                let words = Status::ALL.map(Status::as_str).join(", ");
                self.report.note(
                    &rule::FIELD_TYPE,
                    at,
                    || format!("`status` is not one of {words}; the skill is treated as disabled"),
                    "write `status: active` to enable it",
                );
                Some(Status::Disabled)
            }
        };
        true
    }

    /// Reads a boolean in any of the spellings that clients accept.
    fn bool(&mut self, field: &Field<'_>) -> Option<bool> {
        let value = field.value.as_text().and_then(bool_from_word);
        if value.is_none() {
            self.note_wrong_type(field, "true or false");
        }
        value
    }

    /// Reads a hint such as `[file] [line]` as text, although YAML parses it as a list.
    fn hint(&self, field: &Field<'_>) -> Option<Box<str>> {
        match &field.value {
            Value::Scalar(scalar) => Some(scalar.text.as_ref().into()),
            Value::Empty => None,
            Value::List(_) | Value::Map(_) => self.reading.source_text(field).map(Box::from),
        }
    }

    /// Reports a scalar that some readers parse as something other than text. The severity is
    /// higher where the specification requires text.
    fn scalar(&mut self, field: &Field<'_>, scalar: &Scalar<'_>) {
        let what = match scalar.kind() {
            Kind::Text | Kind::Null => return,
            Kind::Bool => "a boolean",
            Kind::Integer | Kind::Float => "a number",
            Kind::Ambiguous => "a date, number or boolean to some readers",
        };
        let rule = match (&*field.key, scalar.kind()) {
            (_, Kind::Ambiguous) => &rule::SCALAR_NOT_TEXT,
            ("name", _) => &rule::NAME_NOT_TEXT,
            ("description", _) => &rule::DESCRIPTION_NOT_TEXT,
            _ => &rule::SCALAR_NOT_TEXT,
        };
        let at = self.reading.at(field);
        self.report.note(
            rule,
            at,
            || format!("`{}` is {what}; it is read as the string `{}`", field.key, scalar.text),
            "put it in quotes",
        );
    }

    fn note_wrong_type(&mut self, field: &Field<'_>, expected: &str) -> bool {
        let at = self.reading.at(field);
        self.report.note(
            &rule::FIELD_TYPE,
            at,
            || format!("`{}` is not {expected}", field.key),
            "see the field's documentation, or remove it",
        );
        false
    }

    fn has_noted(&self, rule: &Rule) -> bool {
        self.report.findings.iter().any(|it| std::ptr::eq(it.rule, rule))
    }

    /// Rejects the skill if it has no name or description.
    fn require(&mut self, folder: Option<&str>) {
        // An empty field is reported at its position, a missing one at the start of the
        // frontmatter.
        let opening =
            self.reading.document.frontmatter.map_or(1, |it| it.line.saturating_sub(1).max(1));
        let place = |key: &str| {
            let field = self.reading.fields.iter().flatten().find(|it| it.key == key);
            let message = if field.is_some() {
                format!("`{key}` is empty")
            } else {
                format!("there is no `{key}`")
            };
            (field.map_or(Position::line(opening), |it| self.reading.at(it)), message)
        };
        let spoilt = [&rule::NAME_NOT_TEXT, &rule::NAME_CHARACTERS, &rule::NAME_PATH]
            .into_iter()
            .any(|it| self.has_noted(it));
        if self.manifest.name.is_empty() && !spoilt {
            match folder.filter(|it| self.report.profile == Profile::Lenient && !it.is_empty()) {
                Some(folder) if unfit_reason(folder).is_some() => {
                    let (at, message) = place("name");
                    let why = unfit_reason(folder).unwrap_or_default();
                    let message = format!("{message}, and the folder's name cannot be used: {why}");
                    self.report.fatal(&rule::NAME_PATH, at, message, "add `name:`");
                    self.usable = false;
                }
                Some(folder) => {
                    self.manifest.name = folder.into();
                    let (at, message) = place("name");
                    self.report.note(
                        &rule::NAME_MISSING,
                        at,
                        || format!("{message}; the folder's name, `{folder}`, is used"),
                        "add `name:`",
                    );
                }
                None => {
                    let (at, message) = place("name");
                    let hint = "add `name:`, the same as the folder's";
                    self.report.fatal(&rule::NAME_MISSING, at, message, hint);
                    self.usable = false;
                }
            }
        }
        if self.manifest.description.is_empty() && !self.has_noted(&rule::DESCRIPTION_NOT_TEXT) {
            let hint = "add `description:`, saying what the skill does and when to use it";
            let (at, message) = place("description");
            self.report.fatal(&rule::DESCRIPTION_MISSING, at, message, hint);
            self.usable = false;
        }
    }
}

/// Whether a field at the top level has a value.
fn is_set(fields: &[Field<'_>], key: &str) -> bool {
    fields.iter().any(|it| canonical(&it.key) == key && !it.value.is_null())
}

fn set<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    *place = value;
    place.is_some()
}

fn put(place: &mut Box<[Box<str>]>, words: Option<Vec<Box<str>>>) -> bool {
    let Some(words) = words else { return false };
    *place = words.into_boxed_slice();
    !place.is_empty()
}

fn scalar_text(field: &Field<'_>) -> Option<Box<str>> {
    field.value.as_text().map(|it| it.trim().into())
}

/// Returns the items of a list, or the parts of a text with separators; `None` for anything else.
fn words(value: &Value<'_>, separates: fn(char) -> bool) -> Option<Vec<Box<str>>> {
    match value {
        Value::List(items) => {
            items.iter().map(|it| it.as_text().map(|text| text.trim().into())).collect()
        }
        Value::Scalar(scalar) => {
            let parts = scalar.text.split(separates).map(str::trim);
            Some(parts.filter(|it| !it.is_empty()).map(Box::from).collect())
        }
        Value::Empty | Value::Map(_) => None,
    }
}
