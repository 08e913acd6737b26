//! Text tables that are searched as they are: sorted lines.

/// Where the first line begins that is not before `key`.
pub(crate) fn seek(table: &str, key: &str) -> usize {
    let (mut low, mut high) = (0, table.len());
    while low < high {
        let middle = table.floor_char_boundary(low + (high - low) / 2);
        let start = table[..middle].rfind('\n').map_or(0, |it| it + 1);
        let end = table[start..].find('\n').map_or(table.len(), |it| start + it);
        if &table[start..end] < key {
            low = (end + 1).min(table.len());
        } else {
            high = start;
        }
    }
    low
}
