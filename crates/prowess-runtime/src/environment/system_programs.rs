//! Programs outside of package registries, with the system packages that provide them.

use serde::Serialize;

/// The packages that provide a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SystemPackages {
    /// The package of Debian and Ubuntu.
    pub debian: &'static str,
    /// The formula or cask of Homebrew.
    pub homebrew: &'static str,
}

/// A program with the packages that provide it, and the Python packages that wrap it.
struct SystemProgram {
    name: &'static str,
    debian: &'static str,
    homebrew: &'static str,
    wrappers: &'static [&'static str],
}

const fn row(
    name: &'static str,
    debian: &'static str,
    homebrew: &'static str,
    wrappers: &'static [&'static str],
) -> SystemProgram {
    SystemProgram { name, debian, homebrew, wrappers }
}

/// The table, sorted by name.
const PROGRAMS: &[SystemProgram] = &[
    row("aria2c", "aria2", "aria2", &[]),
    row("chromium", "chromium", "chromium", &[]),
    row("cmake", "cmake", "cmake", &[]),
    row("convert", "imagemagick", "imagemagick", &[]),
    row("curl", "curl", "curl", &[]),
    row("djvutxt", "djvulibre-bin", "djvulibre", &[]),
    row("dot", "graphviz", "graphviz", &["graphviz", "pydot"]),
    row("ebook-convert", "calibre", "calibre", &[]),
    row("exiftool", "libimage-exiftool-perl", "exiftool", &["pyexiftool"]),
    row("fc-list", "fontconfig", "fontconfig", &[]),
    row("ffmpeg", "ffmpeg", "ffmpeg", &["ffmpeg-python", "pydub"]),
    row("ffprobe", "ffmpeg", "ffmpeg", &[]),
    row("fzf", "fzf", "fzf", &[]),
    row("gcc", "gcc", "gcc", &[]),
    row("gh", "gh", "gh", &[]),
    row("git", "git", "git", &["gitpython"]),
    row("git-lfs", "git-lfs", "git-lfs", &[]),
    row("gs", "ghostscript", "ghostscript", &["camelot-py"]),
    row("identify", "imagemagick", "imagemagick", &[]),
    row("inkscape", "inkscape", "inkscape", &[]),
    row("java", "default-jre", "openjdk", &["tabula-py"]),
    row("jq", "jq", "jq", &[]),
    row("latexmk", "latexmk", "mactex", &[]),
    row("libreoffice", "libreoffice", "libreoffice", &[]),
    row("lilypond", "lilypond", "lilypond", &[]),
    row("lynx", "lynx", "lynx", &[]),
    row("magick", "imagemagick", "imagemagick", &["wand"]),
    row("make", "make", "make", &[]),
    row("mediainfo", "mediainfo", "media-info", &[]),
    row("mutool", "mupdf-tools", "mupdf-tools", &[]),
    row("mysql", "default-mysql-client", "mysql-client", &[]),
    row("optipng", "optipng", "optipng", &[]),
    row("pandoc", "pandoc", "pandoc", &["pypandoc"]),
    row("pdfimages", "poppler-utils", "poppler", &[]),
    row("pdfinfo", "poppler-utils", "poppler", &[]),
    row("pdflatex", "texlive-latex-base", "mactex", &[]),
    row("pdfseparate", "poppler-utils", "poppler", &[]),
    row("pdftk", "pdftk-java", "pdftk-java", &[]),
    row("pdftocairo", "poppler-utils", "poppler", &[]),
    row("pdftohtml", "poppler-utils", "poppler", &[]),
    row("pdftoppm", "poppler-utils", "poppler", &["pdf2image"]),
    row("pdftotext", "poppler-utils", "poppler", &[]),
    row("pdfunite", "poppler-utils", "poppler", &[]),
    row("pngquant", "pngquant", "pngquant", &[]),
    row("psql", "postgresql-client", "libpq", &[]),
    row("qpdf", "qpdf", "qpdf", &[]),
    row("rg", "ripgrep", "ripgrep", &[]),
    row("rsvg-convert", "librsvg2-bin", "librsvg", &[]),
    row("rsync", "rsync", "rsync", &[]),
    row("shellcheck", "shellcheck", "shellcheck", &[]),
    row("soffice", "libreoffice", "libreoffice", &["unoconv", "unoserver"]),
    row("sox", "sox", "sox", &["sox"]),
    row("sqlite3", "sqlite3", "sqlite", &[]),
    row("tesseract", "tesseract-ocr", "tesseract", &["ocrmypdf", "pytesseract"]),
    row("tmux", "tmux", "tmux", &[]),
    row("unrar", "unrar", "rar", &["rarfile"]),
    row("unzip", "unzip", "unzip", &[]),
    row("wget", "wget", "wget", &[]),
    row("wkhtmltoimage", "wkhtmltopdf", "wkhtmltopdf", &["imgkit"]),
    row("wkhtmltopdf", "wkhtmltopdf", "wkhtmltopdf", &["pdfkit"]),
    row("xelatex", "texlive-xetex", "mactex", &[]),
    row("xmllint", "libxml2-utils", "libxml2", &[]),
    row("yt-dlp", "yt-dlp", "yt-dlp", &[]),
    row("zip", "zip", "zip", &[]),
];

/// Messages of libraries about a missing program, with its name.
const LIBRARY_MESSAGES: &[(&str, &str)] = &[
    ("Is poppler installed", "pdftoppm"),
    ("tesseract is not installed", "tesseract"),
    ("No pandoc was found", "pandoc"),
    ("failed to execute PosixPath('dot')", "dot"),
    ("No wkhtmltopdf executable found", "wkhtmltopdf"),
    ("Couldn't find ffmpeg", "ffmpeg"),
    ("Couldn't find ffprobe", "ffprobe"),
];

/// The maximum length of a program's name.
const MAX_NAME: usize = 64;

/// Returns the packages that provide a program, if known.
pub fn system_packages(program: &str) -> Option<SystemPackages> {
    let found = PROGRAMS.binary_search_by_key(&program, |it| it.name).ok()?;
    let SystemProgram { debian, homebrew, .. } = PROGRAMS[found];
    Some(SystemPackages { debian, homebrew })
}

/// Returns a sentence on how to install missing programs; `None` if no package is known.
pub fn install_system_programs(programs: &[&str]) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    let (mut debian, mut homebrew): (Vec<&str>, Vec<&str>) = Default::default();
    for name in programs {
        let Some(packages) = system_packages(name) else { continue };
        let name = format!("`{name}`");
        if !names.contains(&name) {
            names.push(name);
        }
        if !debian.contains(&packages.debian) {
            debian.push(packages.debian);
        }
        if !homebrew.contains(&packages.homebrew) {
            homebrew.push(packages.homebrew);
        }
    }
    let is = if names.len() == 1 { "is" } else { "are" };
    let (names, debian, homebrew) = (names.join(", "), debian.join(" "), homebrew.join(" "));
    (!names.is_empty()).then(|| {
        format!("{names} {is} not installed; on Debian: `apt install {debian}`; with Homebrew: `brew install {homebrew}`")
    })
}

/// Returns the program that a Python package wraps.
pub(super) fn program_of_wrapper(package: &str) -> Option<&'static str> {
    PROGRAMS.iter().find(|it| it.wrappers.contains(&package)).map(|it| it.name)
}

/// Finds the name of a missing program in the output of a script: from its shell, its interpreter
/// or a library.
pub fn program_not_found(printed: &str) -> Option<&str> {
    let parsers = [missing_in_library, missing_in_shell, missing_in_node, missing_in_python];
    printed
        .lines()
        .rev()
        .find_map(|line| parsers.iter().find_map(|it| it(line)).filter(|it| is_name(it)))
}

fn missing_in_library(line: &str) -> Option<&str> {
    LIBRARY_MESSAGES.iter().find(|it| line.contains(it.0)).map(|it| it.1)
}

fn missing_in_shell(line: &str) -> Option<&str> {
    let line = line.trim_end();
    if let Some(before) = line.strip_suffix(": command not found") {
        return before.rsplit(": ").next();
    }
    // `sh: 1: x: not found`, but no other messages that end like this.
    let (rest, name) = line.strip_suffix(": not found")?.rsplit_once(": ")?;
    let number = rest.rsplit(": ").next()?;
    number.parse::<u32>().is_ok().then_some(name)
}

fn missing_in_node(line: &str) -> Option<&str> {
    let (before, _) = line.split_once(" ENOENT")?;
    let found = before.rsplit_once("spawn ").or_else(|| before.rsplit_once("spawnSync "));
    found.map(|it| it.1)
}

fn missing_in_python(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("No such file or directory: ")?;
    let name = rest.trim().trim_matches(['\'', '"']);
    // The message may also be about a file.
    system_packages(name).map(|_| name)
}

/// Whether a text can be the name of a program.
fn is_name(text: &str) -> bool {
    (1..=MAX_NAME).contains(&text.len())
        && text.chars().all(|c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c))
        && !text.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_says_how_to_install() {
        assert!(PROGRAMS.is_sorted_by_key(|it| it.name));
        assert_eq!(
            install_system_programs(&["pdftoppm"]).as_deref(),
            Some(
                "`pdftoppm` is not installed; on Debian: `apt install poppler-utils`; with Homebrew: `brew install poppler`"
            )
        );
        let said = install_system_programs(&["pdftoppm", "own", "pdfinfo", "soffice"]).unwrap();
        assert!(said.starts_with("`pdftoppm`, `pdfinfo`, `soffice` are not installed"), "{said}");
        assert!(said.contains("`apt install poppler-utils libreoffice`"), "{said}");
        assert_eq!(install_system_programs(&["own"]), None);
        assert_eq!(program_of_wrapper("pytesseract"), Some("tesseract"));
    }

    #[test]
    fn a_program_that_was_not_found_is_known_by_what_was_printed() {
        let table = [
            ("a.sh: line 3: pdftoppm: command not found", Some("pdftoppm")),
            ("sh: 1: own-tool: not found", Some("own-tool")),
            ("zsh:1: command not found: x", None),
            ("Error: spawn ffmpeg ENOENT", Some("ffmpeg")),
            ("Error: spawnSync ffmpeg ENOENT\n  at x", Some("ffmpeg")),
            (
                "FileNotFoundError: [Errno 2] No such file or directory: 'pdftoppm'",
                Some("pdftoppm"),
            ),
            ("FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'", None),
            ("PDFInfoNotInstalledError: Is poppler installed and in PATH?", Some("pdftoppm")),
            ("error: 404: page: not found", Some("page")),
            ("error: page: not found", None),
            ("a.sh: line 1: \u{1b}[2Jx: command not found", None),
            ("a.sh: line 1: `x`: command not found", None),
            ("", None),
        ];
        for (printed, expected) in table {
            assert_eq!(program_not_found(printed), expected, "{printed}");
        }
    }
}
