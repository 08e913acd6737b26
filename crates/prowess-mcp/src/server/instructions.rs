//! The instructions of the server: what a model knows of the skills before its first request.

use prowess::{Cataloging, Library, Marker, Tokenizer, catalog};

/// Returns the catalog and the explanation of its markers within the budget, in tokens; `None` if
/// there are no skills.
pub(crate) fn instructions(
    library: &Library,
    budget: usize,
    vocabulary: Tokenizer,
    marker: &Marker,
) -> Option<String> {
    // The reserve is fixed, so that the same skills are listed whatever the token count of the code
    // is.
    let reserved = Marker::TOKENS + Marker::EXPLANATION_TOKENS;
    let how = Cataloging {
        budget: Some(budget.saturating_sub(reserved)),
        vocabulary,
        ..Cataloging::default()
    };
    let text = catalog(library, &how).fenced(marker);
    (!text.is_empty()).then(|| format!("{text}\n{}\n", marker.explanation()))
}
