//! The instructions of the server: what a model knows of the skills before it has asked for anything.

use prowess::{Cataloging, Library, catalog};

use crate::served::Telling;

/// Writes the catalog within the budget; nothing when there is no skill to tell of.
pub(crate) fn instructions(library: &Library, telling: &Telling) -> Option<String> {
    let how = Cataloging {
        budget: Some(telling.budget),
        vocabulary: telling.vocabulary,
        ..Cataloging::default()
    };
    Some(catalog(library, &how).text).filter(|it| !it.is_empty())
}
