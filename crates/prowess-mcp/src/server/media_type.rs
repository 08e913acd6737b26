//! Media types of files.

/// The media type of a folder.
pub(crate) const DIRECTORY: &str = "inode/directory";

/// Returns the media type of a file, by its extension, else by whether it is text.
pub(crate) fn media_type(path: &str, is_text: bool) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').map_or("", |it| it.1).to_ascii_lowercase();
    let found = TYPES.iter().find(|it| it.0.contains(&ending.as_str())).map(|it| it.1);
    found.unwrap_or(if is_text { "text/plain" } else { "application/octet-stream" })
}

/// File extensions and their media types.
const TYPES: &[(&[&str], &str)] = &[
    (&["md", "markdown"], "text/markdown"),
    (&["html", "htm"], "text/html"),
    (&["css"], "text/css"),
    (&["csv"], "text/csv"),
    (&["js", "mjs", "cjs"], "text/javascript"),
    (&["ts", "mts"], "text/x-typescript"),
    (&["py"], "text/x-python"),
    (&["rs"], "text/x-rust"),
    (&["rb"], "text/x-ruby"),
    (&["go"], "text/x-go"),
    (&["sh", "bash"], "application/x-sh"),
    (&["sql"], "application/sql"),
    (&["json"], "application/json"),
    (&["yml", "yaml"], "application/yaml"),
    (&["toml"], "application/toml"),
    (&["xml", "xsd"], "application/xml"),
    (&["pdf"], "application/pdf"),
    (&["zip"], "application/zip"),
    (&["gz"], "application/gzip"),
    (&["tar"], "application/x-tar"),
    (&["wasm"], "application/wasm"),
    (&["docx"], "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    (&["xlsx"], "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    (&["pptx"], "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    (&["svg"], "image/svg+xml"),
    (&["png"], "image/png"),
    (&["jpg", "jpeg"], "image/jpeg"),
    (&["gif"], "image/gif"),
    (&["webp"], "image/webp"),
    (&["ico"], "image/vnd.microsoft.icon"),
    (&["ttf"], "font/ttf"),
    (&["otf"], "font/otf"),
    (&["woff"], "font/woff"),
    (&["woff2"], "font/woff2"),
    (&["mp3"], "audio/mpeg"),
    (&["mp4"], "video/mp4"),
];
