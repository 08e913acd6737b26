//! Pages of a list: each begins after the last item of the previous one, whatever was added or
//! removed since.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use rmcp::ErrorData;

/// The maximum number of items that are examined for a page. Some clients request at most 64 pages.
const MAX_ITEMS: usize = 500;
/// The cost of its items at which a page is full.
const MAX_COST: usize = 2 * 1024 * 1024;

/// A page of a list.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// The cursor of the next page; `None` for the last.
    pub(crate) next: Option<String>,
}

/// Returns a page of a list whose items are sorted by their unique keys.
///
/// `make` returns an item and its approximate size in bytes, or `None` to skip it.
pub(crate) fn page<K: AsRef<str>, I, T>(
    list: &str,
    cursor: Option<&str>,
    all: impl Iterator<Item = (K, I)>,
    mut make: impl FnMut(I) -> Option<(T, usize)>,
) -> Result<Page<T>, ErrorData> {
    let after = cursor.map(|it| read(list, it)).transpose()?;
    let mut page = Page { items: Vec::new(), next: None };
    let (mut looked_at, mut cost) = (0, 0);
    let mut last = None;
    let rest = all.skip_while(|it| after.as_deref().is_some_and(|after| it.0.as_ref() <= after));
    for (key, item) in rest {
        if looked_at == MAX_ITEMS || cost >= MAX_COST {
            page.next = last.map(|it: K| write(list, it.as_ref()));
            break;
        }
        looked_at += 1;
        last = Some(key);
        if let Some((item, bytes)) = make(item) {
            cost += bytes;
            page.items.push(item);
        }
    }
    Ok(page)
}

/// Rejects a cursor for a list with a single page, which never returned one. Some clients begin
/// with an empty one, which is accepted.
pub(crate) fn reject_cursor(cursor: Option<&str>) -> Result<(), ErrorData> {
    cursor.filter(|it| !it.is_empty()).map_or(Ok(()), |_| Err(unknown()))
}

/// Encodes a cursor: the list that it belongs to, and the last key that was listed.
fn write(list: &str, last: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(format!("{list}\n{last}"))
}

fn read(list: &str, cursor: &str) -> Result<String, ErrorData> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok();
    let text = bytes.and_then(|it| String::from_utf8(it).ok());
    let last = text.as_ref().and_then(|it| it.strip_prefix(list)?.strip_prefix('\n'));
    last.map(str::to_owned).ok_or_else(unknown)
}

fn unknown() -> ErrorData {
    ErrorData::invalid_params("unknown cursor", None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(from: usize, to: usize) -> Vec<String> {
        (from..to).map(|it| format!("{it:05}")).collect()
    }

    fn page_of(names: &[String], cursor: Option<&str>) -> Page<String> {
        page("names", cursor, names.iter().map(|it| (it, it)), |it| Some((it.clone(), 1))).unwrap()
    }

    #[test]
    fn pages_make_the_list() {
        let names = names(0, 1100);
        let mut all = Vec::new();
        let mut cursor = None;
        loop {
            let page = page_of(&names, cursor.as_deref());
            all.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(all, names);
        assert_eq!(page_of(&names[..500], None).next, None);
    }

    #[test]
    fn an_added_or_removed_item_does_not_move_the_next_page() {
        let before = names(0, 1100);
        let first = page_of(&before, None);
        assert_eq!(first.items.last().map(String::as_str), Some("00499"));
        let mut after = names(600, 1100);
        after.insert(0, "00000-new".to_owned());
        assert_eq!(page_of(&after, first.next.as_deref()).items, names(600, 1100));
    }

    #[test]
    fn costly_items_make_small_pages() {
        let names = names(0, 10);
        let items = names.iter().map(|it| (it, it));
        let page = page("names", None, items, |it| Some((it, MAX_COST / 2))).unwrap();
        assert_eq!(page.items.len(), 2);
        assert!(page.next.is_some());
    }

    #[test]
    fn a_cursor_of_another_list_is_refused() {
        let cursor = write("others", "00001");
        for cursor in [&cursor, "", "%%%", "bmFtZXM", "AAAA", "\u{e9}"] {
            let names = names(0, 10);
            let page =
                page("names", Some(cursor), names.iter().map(|it| (it, it)), |it| Some((it, 1)));
            assert_eq!(page.unwrap_err().code.0, -32602, "{cursor}");
        }
    }
}
