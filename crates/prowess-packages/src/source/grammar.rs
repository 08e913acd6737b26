//! Reads the text of a source.

use std::path::PathBuf;

use url::{Host, Url};

use super::{
    git::{GitSource, KnownHost},
    page,
    text::{
        self, Refusal, check_reference, decoded, has_secret, names, relative_path, without_secrets,
    },
};
use crate::source::{SkillSource, SourceKind, SourceSyntaxError};

/// The words before a colon that are known.
const PREFIXES: &str = "the prefixes are github:, gitlab:, clawhub: and npm:";

/// What is behind `#`.
#[derive(Debug, Clone, Default)]
pub(super) struct Fragment {
    pub(super) reference: Option<String>,
    pub(super) skills: Vec<String>,
}

/// Reads a source; the first form that fits decides.
pub(super) fn parse(text: &str) -> Result<SkillSource, SourceSyntaxError> {
    read(text.trim()).map_err(|it| it.about(text))
}

fn read(text: &str) -> Result<SkillSource, Refusal> {
    text::check(text)?;
    if let Some(source) = local(text)? {
        return Ok(source);
    }
    refuse_helper(text)?;
    let (base, fragment) = match text.split_once('#') {
        Some((base, fragment)) => (base, Some(Fragment::parse(fragment, base)?)),
        None => (text, None),
    };
    if base.contains('\\') {
        return Err(Refusal::new(
            "it contains `\\`",
            format!("write `{}`", text.replace('\\', "/")),
        ));
    }
    if let Some((scheme, rest)) = base.split_once("://") {
        return by_scheme(scheme, rest, base, fragment);
    }
    match prefix(base) {
        Some(("github", rest)) => shorthand(rest, fragment, "github:owner/repository"),
        Some(("skills-sh", rest)) => skills_sh(rest, fragment),
        Some(("gitlab", rest)) => {
            let is_named = rest.split('/').count() > 1 && !rest.starts_with('/');
            if !is_named {
                return Err(Refusal::new(
                    "it has no repository",
                    "write `gitlab:group/repository`",
                ));
            }
            refuse_up(rest)?;
            page::parse(&format!("https://gitlab.com/{rest}"), fragment, false)
        }
        Some(("clawhub", rest)) => without_reference(clawhub(None, rest)?, fragment),
        Some(("npm", rest)) => without_reference(npm(rest)?, fragment),
        Some(("file", _)) => {
            Err(Refusal::new("the URL has no `//`", "write `file:///path/to/repository.git`"))
        }
        Some((host, rest)) => scp_like(host, rest, fragment),
        None => short_form(base, fragment),
    }
}

impl Fragment {
    /// Reads what is behind `#`: a branch, tag or commit, and names behind `@`.
    fn parse(text: &str, base: &str) -> Result<Self, Refusal> {
        if text.is_empty() {
            let hint = format!("write `{base}`, or a branch, tag or commit behind `#`");
            return Err(Refusal::new("there is nothing behind `#`", without_secrets(&hint)));
        }
        let (reference, skills) = match text.split_once('@') {
            Some((reference, skills)) => (reference, names(skills, true)?),
            None => (text, Vec::new()),
        };
        let reference = Some(decoded(reference)).filter(|it| !it.is_empty());
        reference.as_deref().map(check_reference).transpose()?;
        Ok(Self { reference, skills })
    }

    /// Returns its names, or those that were written elsewhere.
    pub(super) fn skills_or(self, others: Vec<String>) -> Result<Vec<String>, Refusal> {
        match (self.skills.is_empty(), others.is_empty()) {
            (true, _) => Ok(others),
            (_, true) => Ok(self.skills),
            _ => Err(Refusal::new(
                "it names skills twice",
                format!("write `@{}` once", [others, self.skills].concat().join(",")),
            )),
        }
    }
}

/// Reads a path that begins like one.
fn local(text: &str) -> Result<Option<SkillSource>, Refusal> {
    let (path, skills) = match text.rsplit_once("#@") {
        Some((path, skills)) => (path, Some(skills)),
        None => (text, None),
    };
    let is_drive =
        matches!(path.as_bytes(), [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic());
    let is_dotted = matches!(path, "." | "..") || path.starts_with("./") || path.starts_with("../");
    // Windows writes it with backslashes, but it is to be read everywhere.
    let is_backward = [".\\", "..\\", "~\\"].iter().any(|it| path.starts_with(it));
    if path.starts_with("\\\\") || path.starts_with("//") {
        return Err(Refusal::new(
            "folders of other machines are not opened",
            "copy it to this machine, or map it to a drive",
        ));
    }
    let is_home = path == "~" || path.starts_with("~/");
    if path.starts_with('~') && !is_home && !is_backward {
        return Err(Refusal::new(
            "only `~/` stands for a home directory",
            "write the whole path of the folder",
        ));
    }
    if !(path.starts_with('/') || is_drive || is_dotted || is_backward || is_home) {
        return Ok(None);
    }
    let skills = skills.map(|it| names(it, true)).transpose()?.unwrap_or_default();
    let path = if is_backward { path.replace('\\', "/") } else { path.to_owned() };
    let path = if is_drive { path } else { tidy(&path) };
    let kind = match page::is_download(&path) && !path.ends_with(['/', '\\']) {
        true => SourceKind::File(PathBuf::from(path)),
        false => SourceKind::Folder(PathBuf::from(path)),
    };
    Ok(Some(SkillSource { kind, skills }))
}

/// Returns a path without empty names and needless dots.
fn tidy(path: &str) -> String {
    let is_absolute = path.starts_with('/');
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        let is_needless = name.is_empty() || (name == "." && (is_absolute || !names.is_empty()));
        if !is_needless {
            names.push(name);
        }
    }
    // A folder may be called like an archive.
    let is_folder = (path.ends_with('/') || path.ends_with("/."))
        && names.last().is_some_and(|it| page::is_download(it) || it.trim_end() != *it);
    let root = if is_absolute { "/" } else { "" };
    let end = if is_folder { "/" } else { "" };
    let tidy = format!("{root}{}{end}", names.join("/"));
    // `./a` is not `a`.
    if tidy.is_empty() { ".".to_owned() } else { tidy }
}

/// Refuses `ext::…` and the like, for which git runs a program.
fn refuse_helper(text: &str) -> Result<(), Refusal> {
    let Some((before, _)) = text.split_once("::") else { return Ok(()) };
    if before.is_empty() || before.contains(['/', '#', '@', '[', ']']) {
        return Ok(());
    }
    Err(Refusal::new(
        format!("git would run the program `git-remote-{before}` for it"),
        "write the URL of the repository, such as `https://example.com/team/skills.git`",
    ))
}

/// Refuses a path that leads out of a repository, which `Url` would shorten.
fn refuse_up(text: &str) -> Result<(), Refusal> {
    let path = text.split(['?', '#']).next().unwrap_or_default();
    match path.split(['/', '\\']).any(|it| it == ".." || decoded(it) == "..") {
        false => Ok(()),
        true => Err(Refusal::new(
            "its path contains `..`",
            "write the path from the top of the repository",
        )),
    }
}

/// Returns the word before a colon, and what follows it; none if the colon is in a path.
fn prefix(text: &str) -> Option<(&str, &str)> {
    // An address such as `git@[::1]:path` has colons of its own.
    let end = match text.split_once("]:") {
        Some((host, _)) if host.contains('[') && !host.contains('/') => host.len() + 1,
        _ => text.find(':')?,
    };
    let (word, rest) = (&text[..end], &text[end + 1..]);
    (!word.contains('/')).then_some((word, rest))
}

fn by_scheme(
    scheme: &str,
    rest: &str,
    base: &str,
    fragment: Option<Fragment>,
) -> Result<SkillSource, Refusal> {
    let lower = scheme.to_ascii_lowercase();
    match &*lower {
        "https" | "http" => page_or_skills_sh(base, fragment, false),
        "git+https" | "git+http" => {
            page_or_skills_sh(&format!("{}://{rest}", &lower["git+".len()..]), fragment, true)
        }
        "clawhub+https" | "clawhub+http" => {
            let scheme = &lower["clawhub+".len()..];
            let (registry, skill) = clawhub_registry(rest).ok_or_else(|| {
                Refusal::new(
                    "it has no name of a skill behind the registry",
                    format!("write `clawhub+{scheme}://{}/name`", without_slash(rest)),
                )
            })?;
            let mut registry = web_url(&format!("{scheme}://{registry}"))?;
            let path = without_slash(registry.path()).to_owned();
            registry.set_path(&path);
            if registry.query().is_some() || registry.path().contains("//") {
                return Err(Refusal::new(
                    "the URL of a registry has neither `?` nor `//`",
                    format!("write `clawhub+{scheme}://host/name`"),
                ));
            }
            without_reference(clawhub(Some(registry), skill)?, fragment)
        }
        "ssh" | "git+ssh" | "ssh+git" => ssh(&format!("ssh://{rest}"), fragment),
        "file" | "git+file" => file(rest, fragment),
        "git" => {
            let url = Url::parse(base).ok();
            if url.is_some_and(|it| is_loopback_name(it.host_str().unwrap_or_default())) {
                return plain_url("git://", rest, fragment);
            }
            Err(Refusal::new(
                "the protocol of `git://` is neither encrypted nor signed",
                format!("write `https://{rest}`"),
            ))
        }
        _ => Err(Refusal::new(
            format!("`{scheme}://` is not known"),
            "use https://, ssh:// or file://",
        )),
    }
}

fn without_slash(text: &str) -> &str {
    text.trim_end_matches('/')
}

/// Reads a URL of the web, of which pages of skills.sh stand for repositories on GitHub.
fn page_or_skills_sh(
    text: &str,
    fragment: Option<Fragment>,
    is_git: bool,
) -> Result<SkillSource, Refusal> {
    refuse_up(text.split_once("://").map_or(text, |it| it.1))?;
    let page = ["https://skills.sh/", "https://www.skills.sh/"];
    let behind = page.iter().find_map(|it| text.strip_prefix(it)).filter(|_| !is_git);
    let is_skill = |it: &&str| {
        let names: Vec<&str> = without_slash(it).split('/').collect();
        matches!(names[..], [owner, name, skill] if page::is_owner(owner) && page::is_repository(name) && page::is_repository(skill))
    };
    match behind.filter(is_skill) {
        Some(behind) => skills_sh(without_slash(behind), fragment),
        None => page::parse(text, fragment, is_git),
    }
}

/// Reads `owner/repository/skill`, as skills.sh names them.
fn skills_sh(text: &str, fragment: Option<Fragment>) -> Result<SkillSource, Refusal> {
    let names: Vec<&str> = text.split('/').collect();
    let [owner, name, skill] = names[..] else {
        return Err(Refusal::new(
            "it is not the name of a skill on skills.sh",
            "write `owner/repository@skill`",
        ));
    };
    shorthand(&format!("{owner}/{name}@{skill}"), fragment, "owner/repository@skill")
}

/// Reads and checks a URL of the web.
pub(super) fn web_url(text: &str) -> Result<Url, Refusal> {
    let mut url = Url::parse(text).map_err(|it| {
        Refusal::new(format!("the URL cannot be read: {it}"), "check its host and port")
    })?;
    let shown = || {
        let mut url = url.clone();
        let _ = (url.set_username(""), url.set_password(None));
        without_secrets(url.as_str())
    };
    let is_host = |it: &str| !it.is_empty() && !it.starts_with('.') && !it.contains("..");
    if !url.host_str().is_some_and(is_host) {
        return Err(Refusal::new("the URL has no host", "write `https://host/path`"));
    }
    let is_azure = url.host_str().map(KnownHost::of) == Some(KnownHost::Azure);
    let is_harmless = url.username().is_empty() || url.username() == "git" || is_azure;
    if url.password().is_some() || !is_harmless {
        return Err(Refusal::new(
            "it contains a user name or password, which the lock file would show",
            format!("write `{}`, and let git or a credential helper know the password", shown()),
        ));
    }
    if url.query().is_some_and(has_secret) {
        return Err(Refusal::new(
            "it contains a token, which the lock file would show",
            "download it, and add the file",
        ));
    }
    let _ = url.set_username("");
    url.set_fragment(None);
    Ok(url)
}

/// Reads `ssh://…`.
fn ssh(text: &str, fragment: Option<Fragment>) -> Result<SkillSource, Refusal> {
    let url = Url::parse(text).map_err(|it| {
        Refusal::new(format!("the URL cannot be read: {it}"), "write `ssh://git@host/path.git`")
    })?;
    if url.password().is_some() {
        return Err(Refusal::new(
            "it contains a password, which the lock file would show",
            "use a key, and leave the password out",
        ));
    }
    let host = url.host_str().unwrap_or_default();
    refuse_odd_host(&decoded(url.username()), host)?;
    if url.query().is_some() {
        return Err(Refusal::new("the URL of a repository has no `?`", "leave it out"));
    }
    let rest = text.strip_prefix("ssh://").unwrap_or(text);
    plain_url("ssh://", rest, fragment)
}

/// Reads `file://…`, a repository on this machine.
fn file(rest: &str, fragment: Option<Fragment>) -> Result<SkillSource, Refusal> {
    let rest =
        rest.strip_prefix("localhost/").map_or_else(|| rest.to_owned(), |it| format!("/{it}"));
    if !rest.starts_with('/') || rest.starts_with("//") {
        return Err(Refusal::new(
            "a `file://` URL names a folder of this machine",
            "write three slashes, as in `file:///home/me/skills.git`",
        ));
    }
    let path = decoded(&rest);
    if page::is_download(&path) {
        let source = SkillSource::new(SourceKind::File(PathBuf::from(tidy(&path))));
        text::check(&path)?;
        return without_reference(source.kind, fragment);
    }
    plain_url("file://", &rest, fragment)
}

/// Reads a URL that is kept as it is, but for `//path` behind the repository.
fn plain_url(scheme: &str, rest: &str, fragment: Option<Fragment>) -> Result<SkillSource, Refusal> {
    refuse_up(rest)?;
    if rest.contains(char::is_whitespace) || decoded(rest).contains(char::is_control) {
        return Err(Refusal::new(
            "it contains spaces or control characters",
            "write a space as `%20`",
        ));
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (path, skills, folder) = repository_path(path)?;
    if path.is_empty() {
        return Err(Refusal::new(
            "it has no path to a repository",
            format!("write `{scheme}{}/owner/repository.git`", without_slash(authority)),
        ));
    }
    git(format!("{scheme}{authority}/{path}"), folder, skills, fragment)
}

/// Reads `git@host:path`.
fn scp_like(host: &str, rest: &str, fragment: Option<Fragment>) -> Result<SkillSource, Refusal> {
    if rest.split('/').next().is_some_and(|it| it.contains('@') && it.contains(':')) {
        return Err(Refusal::new(
            "it contains a password, which the lock file would show",
            "use a key, and leave the password out",
        ));
    }
    let (user, name) = host.rsplit_once('@').map_or(("", host), |it| it);
    let has_user = !user.is_empty();
    let is_fit = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_');
    let inner = name.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let is_host = match inner {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => name.starts_with(|c: char| c != '.') && name.chars().all(is_fit),
    };
    // A word that is no host would send ssh to whoever has that name.
    let path = rest.split("//").next().unwrap_or_default();
    let path = path.rsplit_once('@').map_or(path, |it| it.0);
    let is_meant = has_user || name.contains('.') || without_slash(path).ends_with(".git");
    if !is_host || !is_meant || host.starts_with('@') {
        let near = ["github", "gitlab", "clawhub", "npm", "gh"];
        let near = prowess::nearest(&host.to_ascii_lowercase(), near.into_iter());
        let near = near.map(|it| if it == "gh" { "github" } else { it });
        let hint = match near {
            Some(near) => format!("write `{near}:{rest}`; {PREFIXES}"),
            None => format!("{PREFIXES}; a repository over ssh is `git@host:path`"),
        };
        return Err(Refusal::new(format!("`{host}:` is not known"), hint));
    }
    refuse_odd_host(user, name)?;
    if rest.starts_with("//") || rest.starts_with('-') || rest.contains(char::is_whitespace) {
        return Err(Refusal::new(
            "this is not a path on another machine",
            "write `git@host:path/repository.git`",
        ));
    }
    refuse_up(rest)?;
    let (path, skills, folder) = repository_path(rest)?;
    if path.trim_matches('/').is_empty() {
        return Err(Refusal::new(
            "it has no path to a repository",
            format!("write `{host}:owner/repository.git`"),
        ));
    }
    git(format!("{host}:{path}"), folder, skills, fragment)
}

/// Splits a path at `//`, and at the `@` of its last name.
fn repository_path(text: &str) -> Result<(&str, Vec<String>, Option<String>), Refusal> {
    let is_rooted = text.starts_with('/');
    let inner = text.strip_prefix('/').unwrap_or(text);
    let (path, folder) = match inner.split_once("//") {
        Some((path, folder)) => {
            let names: Vec<String> = folder.split('/').map(decoded).collect();
            (path, relative_path(names.iter().map(String::as_str))?)
        }
        None => (inner, None),
    };
    let path = without_slash(path);
    let path = &text[..path.len() + usize::from(is_rooted && !path.is_empty())];
    let last = path.rfind('/').map_or(0, |it| it + 1);
    match path[last..].split_once('@') {
        Some((name, skills)) if !name.is_empty() => {
            Ok((&path[..last + name.len()], names(skills, false)?, folder))
        }
        _ => Ok((path, Vec::new(), folder)),
    }
}

/// Refuses a user or host that ssh would take for an option.
fn refuse_odd_host(user: &str, host: &str) -> Result<(), Refusal> {
    let is_odd = |it: &str| {
        it.starts_with('-') || it.contains(|c: char| c.is_whitespace() || c.is_control())
    };
    match host.is_empty() || is_odd(host) || is_odd(user) || user.contains([':', '@']) {
        false => Ok(()),
        true => Err(Refusal::new(
            "its host or user is not a name",
            "write `git@host:path/repository.git`",
        )),
    }
}

/// Reads what has no prefix and no scheme: `owner/repository`, or a host without `https://`.
fn short_form(base: &str, fragment: Option<Fragment>) -> Result<SkillSource, Refusal> {
    let (first, rest) = base.split_once('/').unwrap_or((base, ""));
    let host = first.to_ascii_lowercase();
    if KnownHost::of(&host) != KnownHost::Other
        || matches!(&*host, "gist.github.com" | "raw.githubusercontent.com")
    {
        refuse_up(rest)?;
        return page::parse(&format!("https://{base}"), fragment, false);
    }
    if rest.is_empty() {
        return Err(one_word(first));
    }
    // No owner on GitHub has a dot in its name.
    if first.contains('.') && !first.starts_with('.') {
        let end = if rest.trim_end_matches('/').ends_with(".git") { "" } else { ".git" };
        return Err(Refusal::new(
            format!("no owner on GitHub is called `{first}`"),
            format!(
                "for a repository on another host write `https://{}{end}`, for a folder `./{base}`",
                without_slash(base)
            ),
        ));
    }
    shorthand(base, fragment, "owner/repository")
}

/// The refusal of a single word.
fn one_word(word: &str) -> Refusal {
    if word.contains('@') {
        let (name, _) = word.split_once('@').unwrap_or((word, ""));
        let name = if name.is_empty() { "skill" } else { name };
        return Refusal::new(
            "it does not say where it is",
            format!(
                "write the repository of the marketplace, as in `owner/repository@{name}`, or `npm:{word}`"
            ),
        );
    }
    Refusal::new(
        "it has no owner",
        format!(
            "write `owner/{word}` for a repository on GitHub, `./{word}` for a folder, or `clawhub:{word}`"
        ),
    )
}

/// Reads `owner/repository`, `owner/repository@skill` and `owner/repository/path`.
fn shorthand(text: &str, fragment: Option<Fragment>, form: &str) -> Result<SkillSource, Refusal> {
    let hint = || format!("write `{form}`");
    if text.starts_with('@') {
        return Err(Refusal::new(
            "no owner on GitHub begins with `@`",
            format!(
                "write `npm:{text}` for an npm package, `clawhub:{text}` for a skill of ClawHub"
            ),
        ));
    }
    let (owner, rest) = text.split_once('/').unwrap_or((text, ""));
    let (name, behind) = rest.find(['/', '@']).map_or((rest, ""), |at| rest.split_at(at));
    let name = page::without_git(name);
    if owner.is_empty() || name.is_empty() {
        return Err(Refusal::new("the owner or the repository is empty", hint()));
    }
    if !page::is_owner(owner) {
        let why = format!("no owner on GitHub can be called `{owner}`");
        return Err(Refusal::new(why, hint()));
    }
    if !page::is_repository(name) {
        let why = format!("no repository on GitHub can be called `{name}`");
        return Err(Refusal::new(why, hint()));
    }
    let mut skills = Vec::new();
    let mut path = None;
    if let Some(behind) = behind.strip_prefix('@') {
        skills = names(behind, false)?;
    } else if let Some(folder) = behind.strip_prefix("//") {
        let names: Vec<String> = folder.split('/').map(decoded).collect();
        path = relative_path(names.iter().map(String::as_str))?;
    } else if let Some(folder) = behind.strip_prefix('/') {
        let last = folder.rfind('/').map_or(0, |it| it + 1);
        // A name such as `@acme` is a folder.
        let at = folder[last..].char_indices().skip(1).find(|it| it.1 == '@');
        let folder = match at {
            Some((at, _)) => {
                skills = names(&folder[last + at + 1..], false)?;
                &folder[..last + at]
            }
            None => folder,
        };
        path = relative_path(folder.split('/'))?;
    }
    let path = match path {
        Some(it) if it == "SKILL.md" => None,
        Some(it) => Some(it.strip_suffix("/SKILL.md").unwrap_or(&it).to_owned()),
        None => None,
    };
    git(format!("https://github.com/{owner}/{name}"), path, skills, fragment)
}

fn git(
    url: String,
    path: Option<String>,
    skills: Vec<String>,
    fragment: Option<Fragment>,
) -> Result<SkillSource, Refusal> {
    let fragment = fragment.unwrap_or_default();
    let reference = fragment.reference.clone();
    let kind = SourceKind::Git(GitSource { url, reference, path });
    Ok(SkillSource { kind, skills: fragment.skills_or(skills)? })
}

/// Makes a source of what has no branches.
fn without_reference(kind: SourceKind, fragment: Option<Fragment>) -> Result<SkillSource, Refusal> {
    let fragment = fragment.unwrap_or_default();
    match fragment.reference {
        None => Ok(SkillSource { kind, skills: fragment.skills }),
        Some(reference) => Err(Refusal::new(
            "only git repositories have branches and tags",
            format!("write a version as `@version`, and leave `#{reference}` out"),
        )),
    }
}

/// Splits a URL of a registry, without its scheme, from the skill behind it.
fn clawhub_registry(rest: &str) -> Option<(&str, &str)> {
    let rest = without_slash(rest);
    let last = rest.rfind('/')?;
    let owner = rest[..last].rfind('/').filter(|at| rest[at + 1..].starts_with('@'));
    let at = owner.unwrap_or(last);
    Some((without_slash(&rest[..at]), &rest[at + 1..]))
        .filter(|it| !it.0.is_empty() && !it.1.is_empty())
}

/// Reads `slug`, `slug@version`, `owner/slug` and `@owner/slug@version`.
pub(super) fn clawhub(registry: Option<Url>, text: &str) -> Result<SourceKind, Refusal> {
    let hint = "write `clawhub:name`, `clawhub:@owner/name` or `clawhub:name@1.2.0`";
    let (owner, rest) = match text.split_once('/') {
        Some((owner, rest)) => (Some(owner.strip_prefix('@').unwrap_or(owner)), rest),
        None => (None, text),
    };
    let (slug, version) = rest.split_once('@').map_or((rest, None), |it| (it.0, Some(it.1)));
    let is_name = |it: &str| {
        it.len() <= 200
            && it.starts_with(|c: char| c.is_ascii_alphanumeric())
            && it.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.'))
    };
    if !is_name(slug) || owner.is_some_and(|it| !is_name(it)) {
        return Err(Refusal::new("it is not the name of a skill of ClawHub", hint));
    }
    let is_version = |it: &str| {
        (1..=128).contains(&it.len())
            && it
                .bytes()
                .all(|it| it.is_ascii_graphic() && !matches!(it, b'/' | b'#' | b'@' | b'?'))
    };
    if version.is_some_and(|it| !is_version(it)) {
        return Err(Refusal::new("there is no version behind `@`", hint));
    }
    Ok(SourceKind::ClawHub {
        registry,
        owner: owner.map(str::to_owned),
        slug: slug.to_owned(),
        version: version.map(str::to_owned),
    })
}

/// Reads `name`, `@scope/name` and both with `@range`.
pub(super) fn npm(text: &str) -> Result<SourceKind, Refusal> {
    let hint = "write `npm:name`, `npm:@scope/name` or `npm:name@1.2.0`";
    let at = text.char_indices().skip(1).find(|it| it.1 == '@').map(|it| it.0);
    let (name, range) = match at {
        Some(at) => (&text[..at], Some(text[at + 1..].trim())),
        None => (text, None),
    };
    let is_part = |it: &str| {
        !it.is_empty()
            && !it.starts_with('.')
            && it
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.' | b'~'))
    };
    let is_name = match name.strip_prefix('@') {
        Some(scoped) => scoped.split_once('/').is_some_and(|it| is_part(it.0) && is_part(it.1)),
        None => is_part(name),
    };
    if !is_name || name.len() > 214 {
        return Err(Refusal::new("it is not the name of an npm package", hint));
    }
    let is_range = |it: &str| {
        (1..=200).contains(&it.len())
            && it.bytes().all(|it| it.is_ascii_alphanumeric() || b" .-_+^~<>=|*".contains(&it))
    };
    if range.is_some_and(|it| !is_range(it)) {
        return Err(Refusal::new("there is no version behind `@`", hint));
    }
    Ok(SourceKind::Npm { name: name.to_owned(), range: range.map(str::to_owned) })
}

/// Whether a URL without more is read as a git repository of this URL.
pub(super) fn is_read_as_git(url: &str) -> bool {
    matches!(
        page::parse(url, None, false),
        Ok(SkillSource { kind: SourceKind::Git(git), .. })
            if git.url == url && git.reference.is_none() && git.path.is_none()
    )
}

/// Whether a URL is one of this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => is_loopback_name(name),
        None => false,
    }
}

fn is_loopback_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let address = name.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    name == "localhost" || name.ends_with(".localhost") || address.is_ok_and(|it| it.is_loopback())
}
