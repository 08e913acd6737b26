//! A table of the manifest's fields about the skill itself, with how each is read and written.

use super::manifest::Manifest;

/// An optional field of a manifest.
pub(crate) struct ManifestField {
    /// The canonical key.
    pub(crate) key: &'static str,
    /// Who reads it.
    pub(crate) support: FieldSupport,
    /// Its value.
    pub(crate) content: Content,
}

/// The support for a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldSupport {
    /// In the specification.
    Specified,
    /// Read by the clients that have added it.
    Vendor(&'static str),
    /// Read by Prowess, also under `metadata`.
    Movable,
    /// Unknown, but a misspelling of this one.
    Misspelt(&'static str),
    /// Unknown.
    Unknown,
}

/// The value of a field.
pub(crate) enum Content {
    /// A text, and where the manifest has it.
    Text { get: fn(&Manifest) -> Option<&str>, place: fn(&mut Manifest) -> &mut Option<Box<str>> },
    /// The type of the skill.
    Type,
    /// Its status.
    Status,
    /// Its tags.
    Tags,
    /// Whether it requires an approval.
    RequiresApproval,
}

/// A field with a text.
macro_rules! text {
    ($key:literal, $field:ident, $support:expr) => {
        ManifestField {
            key: $key,
            support: $support,
            content: Content::Text {
                get: |manifest| manifest.$field.as_deref(),
                place: |manifest| &mut manifest.$field,
            },
        }
    };
}

/// The optional fields, in the order in which they are written. Those that the specification does
/// not define are written under `metadata`, where every validator accepts them, and read there and
/// at the top level. A text is one row here; if it has rules of its own, they are in
/// `check/validate/fields.rs`.
pub(crate) static FIELDS: &[ManifestField] = &[
    ManifestField { key: "type", support: FieldSupport::Movable, content: Content::Type },
    ManifestField { key: "status", support: FieldSupport::Movable, content: Content::Status },
    text!("version", version, FieldSupport::Vendor("catalogs")),
    text!("author", author, FieldSupport::Vendor("catalogs")),
    ManifestField {
        key: "tags",
        support: FieldSupport::Vendor("catalogs"),
        content: Content::Tags,
    },
    text!("source", source, FieldSupport::Movable),
    text!("created-by", created_by, FieldSupport::Movable),
    ManifestField {
        key: "requires-approval",
        support: FieldSupport::Movable,
        content: Content::RequiresApproval,
    },
    text!("license", license, FieldSupport::Specified),
    text!("compatibility", compatibility, FieldSupport::Specified),
];

impl ManifestField {
    /// Whether it is also read under `metadata`, and written there.
    pub(crate) fn is_in_metadata(&self) -> bool {
        self.support != FieldSupport::Specified
    }
}

/// Returns the optional field with a canonical key.
pub(crate) fn manifest_field(key: &str) -> Option<&'static ManifestField> {
    FIELDS.iter().find(|it| it.key == key)
}
