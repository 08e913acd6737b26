//! Names that are never valid for a skill, under any profile.

use unicode_normalization::UnicodeNormalization as _;

use crate::spec::MAX_NAME;

/// Names that Windows treats as devices, in any folder.
const DEVICES: &[&str] = &["con", "prn", "aux", "nul", "conin$", "conout$"];

/// Returns why a name cannot be a skill's: as a folder name it would lead elsewhere, or to a
/// device.
pub(crate) fn unfit_reason(name: &str) -> Option<String> {
    let normal: String = name.trim().nfkc().collect();
    if normal.contains(|it: char| matches!(it, '\u{2028}' | '\u{2029}') || it.is_control()) {
        Some("the name has line breaks or control characters".to_owned())
    } else if normal.contains(['/', '\\']) {
        Some(format!("the name `{normal}` is a path"))
    } else if matches!(&*normal, "." | "..") {
        Some(format!("the name `{normal}` is a reserved folder name"))
    } else if is_device(&normal) {
        Some(format!("the name `{normal}` is a reserved device name on Windows"))
    } else {
        None
    }
}

/// Whether Windows treats a name as a device, regardless of its extension.
fn is_device(name: &str) -> bool {
    let stem = name.split(['.', ':']).next().unwrap_or_default().trim_end();
    let is_numbered = match stem.as_bytes() {
        [a, b, c, b'1'..=b'9'] => {
            [b"com", b"lpt"].iter().any(|it| it.eq_ignore_ascii_case(&[*a, *b, *c]))
        }
        _ => false,
    };
    is_numbered || DEVICES.iter().any(|it| it.eq_ignore_ascii_case(stem))
}

/// Whether no rule could object to a name, except for reserved words: lowercase ASCII words joined
/// by single hyphens, at most 64 bytes, nothing that Windows reserves.
pub fn is_plain_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name
            .bytes()
            .all(|byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
        && !is_reserved_on_windows(name)
}

/// Whether Windows reserves a name, or cannot have a file of that name.
pub(crate) fn is_reserved_on_windows(name: &str) -> bool {
    is_device(name)
        || name.contains(['<', '>', ':', '"', '/', '\\', '|', '?', '*'])
        || name.ends_with(['.', ' '])
}
