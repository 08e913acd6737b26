//! Finds programs and texts that are downloaded.

use super::pattern::{
    E, I,
    Scope::{Code, Words},
    W, patterns,
};

/// A shell or interpreter behind a pipe.
macro_rules! into_shell {
    () => {
        r"\|\s{0,4}(?:sudo\s{1,3}(?:-\w{1,3}\s{1,3}){0,3})?(?:env\s{1,3})?(?:/(?:usr/)?(?:local/)?bin/)?(?:(?:ba|z|da|k|fi)?sh\b|(?:python3?|node|perl|ruby|php|osascript)\b(?:\s{1,3}-)?\s{0,3}(?:$|[\n`'\x22;&|)>]))"
    };
}
/// A URL that nobody can trust: an address, no encryption, a paste or a short link.
macro_rules! bad_url {
    () => {
        r#"(?:(?:https?://|\s)\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}[/:]|https?://(?:[\w-]{1,40}\.){0,3}(?:pastebin\.com|paste\.ee|rentry\.(?:co|org)|glot\.io|hastebin\.com|0x0\.st|transfer\.sh|termbin\.com|bit\.ly|tinyurl\.com|is\.gd|t\.co|cutt\.ly|ngrok(?:-free)?\.(?:io|app)|trycloudflare\.com|serveo\.net|files\.catbox\.moe|anonfiles?\.\w{2,5}|webhook\.site)\b)"#
    };
}

patterns! {
    UNTRUSTED_DOWNLOAD Code(E, Some(E)), ["curl", "wget", "irm", "iwr", "invoke-", "downloadstring", "urlopen", "requests.get"],
        concat!(r#"\b(?:curl|wget|irm|iwr|invoke-\w{1,20}|downloadstring)\b[^\n|]{0,200}?"#, bad_url!(), r#"[^\n]{0,200}(?:"#, into_shell!(), r#"|\|\s{0,3}iex|&&\s{0,3}(?:sudo\s{1,3})?(?:ba|z)?sh\b|&&\s{0,3}chmod\s{1,3}\S{0,3}\+?x|\)["']?\s{0,2}$)"#),
        "the command runs a download from an address that nobody can trust";
    UNTRUSTED_DOWNLOAD Code(E, Some(W)), ["http://"],
        concat!(r#"\b(?:curl|wget)\b[^\n|]{0,200}?\bhttp://[a-z][\w.-]{0,100}\.[a-z]{2,}[^\n|]{0,100}"#, into_shell!()),
        "the command runs a download that anyone on the way can change";
    UNTRUSTED_DOWNLOAD Code(E, Some(E)), ["$(curl", "<(curl", "$(wget", "<(wget", "`curl"],
        concat!(r#"(?:\b(?:ba|z|da)?sh\b|\beval\b|\bsource\b)[^\n]{0,20}?(?:\$\(|<\(|`)\s{0,3}(?:curl|wget)\b[^\n]{0,160}?"#, bad_url!()),
        "the command runs a download from an address that nobody can trust";
    UNTRUSTED_DOWNLOAD Words(E), ["glot.io", "rentry", "pastebin.com", "paste.ee", "hastebin.com", "controlc.com", "ideone.com", "0x0.st", "dpaste"],
        r"(?:(?:copy|paste|run|execute|terminal|install\w*|command|download)\b[^\n]{0,160}\b(?:glot\.io/|rentry\.(?:co|org)/|pastebin\.com/|paste\.ee/|hastebin\.com/|controlc\.com/|ideone\.com/|0x0\.st/|dpaste\.\w{2,4}/)|\b(?:glot\.io/|rentry\.(?:co|org)/|pastebin\.com/|paste\.ee/|hastebin\.com/|controlc\.com/|ideone\.com/|0x0\.st/|dpaste\.\w{2,4}/)[^\n]{0,160}\b(?:copy|paste|run|execute|terminal|command)\b)",
        "the text has a command taken from a paste site";
    UNTRUSTED_DOWNLOAD Words(E), ["pass", "pwd"],
        r"(?s-u:(?:\bdownload\b|releases?/).{0,260}\b(?:zip|rar|7z|archive|exe|dmg)\b.{0,260}\b(?:(?:archive|zip|extract\w*|unzip|unpack|using|with|the)\W{1,3})pass(?:word|phrase|code|wd)?\b\W{1,8}(?:is\W{1,3})?[`'\x22*]{0,3}\w{3,})",
        "the text has an archive with a password unpacked, which scanners cannot look into";
    UNTRUSTED_DOWNLOAD Words(W), ["download"],
        r"\bdownload\b[^\n]{0,200}(?:\.(?:exe|dmg|pkg|msi|scr|bat)\b|\bexecutable\b)[^\n]{0,160}\b(?:run|execute|launch|double-click)\b",
        "the text has a program downloaded and run";
    UNTRUSTED_DOWNLOAD Code(E, Some(W)), ["pip install", "pip3 install", "npm install", "npm i ", "gem install", "uv pip install"],
        r"\b(?:pip3?|uv pip|npm|gem)\s{1,3}(?:install|i)\b[^\n]{0,100}?\s(?:git\+)?http://(?:[^l1\s]|1[^2])\S{0,200}",
        "the package comes over a connection that anyone on the way can change";
    UNTRUSTED_DOWNLOAD Code(E, Some(E)), ["downloadstring", "webclient", "invoke-webrequest", "iwr", "irm", "frombase64string"],
        r"\bpowershell\b[^\n]{0,80}-w\w{0,10}\s{1,3}(?:h\w{0,5}|1)\b[^\n]{0,300}\b(?:downloadstring|downloadfile|webclient|iwr|irm|invoke-webrequest|frombase64string)",
        "the command downloads and runs code in a hidden window";

    DOWNLOAD_AND_RUN Code(W, Some(W)), ["curl", "wget"],
        concat!(r"\b(?:curl|wget)\b[^\n|]{0,300}", into_shell!()),
        "the command runs a download that nobody has looked at";
    DOWNLOAD_AND_RUN Code(W, Some(W)), ["$(curl", "<(curl", "$(wget", "<(wget", "`curl", "`wget"],
        r"(?:\b(?:ba|z|da)?sh\b(?:\s{1,3}-\w{1,3}){0,2}|\beval\b|\bsource\b|(?:^|\s)\.)\s{0,3}[\x22']?(?:\$\(|<\(|`)\s{0,3}(?:curl|wget)\b[^\n]{0,120}",
        "the command runs a download that nobody has looked at";
    DOWNLOAD_AND_RUN Code(W, Some(W)), ["iex", "invoke-expression"],
        r"\b(?:iex|invoke-expression)\b[^\n]{0,120}\b(?:irm|iwr|invoke-restmethod|invoke-webrequest|downloadstring)\b|\b(?:irm|iwr|invoke-restmethod|invoke-webrequest|downloadstring)\b[^\n|]{0,160}\|\s{0,3}(?:iex|invoke-expression)\b",
        "the command runs a download that nobody has looked at";
    DOWNLOAD_AND_RUN Code(E, Some(E)), ["install\""],
        r#""(?:pre|post)?install"\s{0,3}:\s{0,3}"[^"\n]{0,200}(?:curl|wget|node -e|base64|powershell|sh -c)[^"\n]{0,200}""#,
        "the package runs a download when it is installed";

    UNPINNED_DOWNLOAD Code(I, Some(I)), ["git+http", "install http"],
        r"\b(?:pip3?|uv pip|npm|pipx|uvx?|npx)\s{1,3}[^\n]{0,60}?(?:git\+)?https://\S{4,200}",
        "the package is taken from an address, in whatever version is there";
    UNPINNED_DOWNLOAD Code(I, None), ["npx ", "uvx ", "pipx run", "bunx "],
        r"\b(?:npx|bunx|uvx|pipx run)\s{1,3}(?:(?:-y|--yes|-q|--quiet)\s{1,3}){0,2}(?:@[\w.-]{1,60}/)?[a-z][\w.-]{1,60}(?:$|[\s;&|)`'\x22])",
        "the newest version of the package is fetched each time";
}
