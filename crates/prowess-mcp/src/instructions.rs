//! The instructions of the server: what a model knows of the skills before it has asked for anything.

use prowess::{Cataloging, Library, Marker, catalog};

use crate::server_state::ServeOptions;

/// Writes the catalog and what its markers mean within the budget; nothing when there is no skill to
/// tell of.
pub(crate) fn instructions(
    library: &Library,
    telling: &ServeOptions,
    marker: &Marker,
) -> Option<String> {
    // However the code is counted, the same skills are told.
    let reserved = Marker::TOKENS + Marker::EXPLANATION_TOKENS;
    let how = Cataloging {
        budget: Some(telling.budget.saturating_sub(reserved)),
        vocabulary: telling.vocabulary,
        ..Cataloging::default()
    };
    let text = catalog(library, &how).fenced(marker);
    (!text.is_empty()).then(|| format!("{text}\n{}\n", marker.explanation()))
}
