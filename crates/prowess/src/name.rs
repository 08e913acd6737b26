//! Names that no skill can have, whoever reads it.

use unicode_normalization::UnicodeNormalization as _;

/// What Windows takes for a device, in any folder.
const DEVICES: &[&str] = &["con", "prn", "aux", "nul", "conin$", "conout$"];

/// Why a name cannot be that of a skill: as the name of a folder it would lead elsewhere, or to a device.
pub(crate) fn unfit(name: &str) -> Option<String> {
    let normal: String = name.trim().nfkc().collect();
    let is_break = |it: char| matches!(it, '\u{2028}' | '\u{2029}') || it.is_control();
    if normal.contains(is_break) {
        Some("the name has line breaks or control characters".to_owned())
    } else if normal.contains(['/', '\\']) {
        Some(format!("the name `{normal}` is a path"))
    } else if matches!(&*normal, "." | "..") {
        Some(format!("the name `{normal}` means a folder"))
    } else if is_device(&normal) {
        Some(format!("the name `{normal}` is that of a device on Windows"))
    } else {
        None
    }
}

/// Whether Windows takes a name for that of a device, whatever it ends in.
pub(crate) fn is_device(name: &str) -> bool {
    let stem = name.split(['.', ':']).next().unwrap_or_default().trim_end();
    let numbered = || match stem.as_bytes() {
        [a, b, c, b'1'..=b'9'] => {
            [b"com", b"lpt"].iter().any(|it| it.eq_ignore_ascii_case(&[*a, *b, *c]))
        }
        _ => false,
    };
    DEVICES.iter().any(|it| it.eq_ignore_ascii_case(stem)) || numbered()
}
