//! The instructions of the server: what a model knows of the skills before it has asked for anything.

use prowess::{Cataloging, Library, Marker, Tokenizer, catalog};

/// Writes the catalog and what its markers mean within the budget, in tokens; nothing when there is
/// no skill.
pub(crate) fn instructions(
    library: &Library,
    budget: usize,
    vocabulary: Tokenizer,
    marker: &Marker,
) -> Option<String> {
    // However the code is counted, the same skills are told.
    let reserved = Marker::TOKENS + Marker::EXPLANATION_TOKENS;
    let how = Cataloging {
        budget: Some(budget.saturating_sub(reserved)),
        vocabulary,
        ..Cataloging::default()
    };
    let text = catalog(library, &how).fenced(marker);
    (!text.is_empty()).then(|| format!("{text}\n{}\n", marker.explanation()))
}
