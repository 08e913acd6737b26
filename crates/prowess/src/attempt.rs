//! Decodes arbitrary bytes as cached data; only for tests and fuzzers.

use std::path::PathBuf;

use crate::{
    finding::rule::Profile,
    index::{index_of, search_in},
    read::{
        gather::SourceFolder,
        parse::parse,
        scan_cache::{CachedSkill, ScanCache},
        source::{Cache, VisitMarks},
    },
};

/// Returns the cached form of some texts: as visits, and as an index.
pub fn encode_cached(texts: &[&str]) -> [Vec<u8>; 2] {
    let recall = ScanCache::new(&[], &Cache::new(""));
    for (source, text) in texts.iter().enumerate() {
        let parsed = parse(text.as_bytes(), None, Profile::Spec);
        let skill = CachedSkill {
            size: text.len() as u64,
            modified: Some(std::time::SystemTime::UNIX_EPOCH),
            resources: Some(Vec::new()),
            manifest: parsed.manifest,
            findings: parsed.findings,
            state: Some([7; 16]),
        };
        let place = SourceFolder { source, folder: PathBuf::from("folder"), depth: 1, links: 0 };
        recall.keep_skill(&place, &VisitMarks::default(), &skill);
    }
    [recall.updated_bytes(0).unwrap_or_default(), index_of(texts)]
}

/// Decodes bytes as cached visits, and as an index that is searched and rebuilt. Returns the number
/// of visits and whether there was an index.
pub fn attempt(bytes: &[u8]) -> (usize, bool) {
    let visits = ScanCache::new(bytes, &Cache::new("")).count_decodable();
    (visits, search_in(bytes.to_vec()))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::Index};

    use super::*;

    const TEXTS: [&str; 3] = [
        "---\nname: one\ndescription: about alpha\nmetadata: {a: [1, {b: c}]}\n---\nalpha beta\n",
        "---\nname: two\ndescription: about beta\nhooks: x\ntriggers: [y]\n---\nbeta beta gamma\n",
        "---\nname: [\n---\n",
    ];

    #[test]
    fn what_is_kept_is_told_again() {
        let [visits, index] = encode_cached(&TEXTS);
        assert_eq!(attempt(&visits), (3, false));
        assert_eq!(attempt(&index), (0, true));
    }

    proptest! {
        #[test]
        fn no_bytes_can_do_any_harm(
            which in 0..2_usize, changes in vec((any::<Index>(), any::<u8>()), 1..6), cut in any::<Option<Index>>(),
        ) {
            let mut bytes = encode_cached(&TEXTS)[which].clone();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(cut.map_or(bytes.len(), |it| it.index(bytes.len())));
            attempt(&bytes);
        }
    }
}
