//! Data of the user that goes elsewhere.

use super::pattern::{
    E,
    Scope::{Code, Words},
    W, patterns, secret_file,
};

patterns! {
    EXFILTRATION Words(E), ["send", "upload", "post", "forward", "transmit", "exfiltrate", "append", "submit", "e-mail", "email"],
        concat!(
            r"\b(?:send|upload|post|forward|transmit|exfiltrate|append|submit|e-?mail)(?:s|ing)?\b[^\n]{0,100}?(?:",
            secret_file!(),
            r"|contents? of (?:the |your )?`?\.env\b|environment variables|(?:full |entire )system prompt|conversation(?: history)?\b|every file|(?:the |your )contents of the (?:working|home) directory|contents of the (?:working|home) directory|private keys?|seed phrase|session cookies|clipboard)[^\n]{0,120}?(?:\bto\b|\bat\b|\binto\b|->|→)[^\n]{0,60}?(?:https?://|[\w.+-]{1,64}@[\w-]{1,64}\.\w|webhook|server at)"),
        "the text tells the agent to send secrets or files of the user elsewhere";
    EXFILTRATION Words(E), ["http", "@", "webhook"],
        concat!(
            r"(?:", secret_file!(),
            r"|`?\.env`? (?:file|contents?)|environment variables|private keys?|seed phrase|every file you \w+)[^\n]{0,80}\b(?:and|then)\W{1,3}(?:\w+\W{1,3}){0,2}?(?:send|upload|post|forward|transmit|submit|paste|e-?mail)s?\b[^\n]{0,80}?(?:https?://|[\w.+-]{1,64}@[\w-]{1,64}\.\w|webhook)"),
        "the text tells the agent to send secrets of the user elsewhere";
    EXFILTRATION Words(E), ["every file", "all files", "every message", "every prompt"],
        r"\b(?:send|upload|post|forward|transmit|copy|mirror)\W{1,3}(?:a copy of )?(?:every|all)\W{1,3}(?:files?|messages?|prompts?)\b[^\n]{0,60}\bto\W{1,3}(?:`|<)?https?://",
        "the text tells the agent to send everything elsewhere";
    EXFILTRATION Words(E), ["exfiltrate"],
        r"\bexfiltrate\W{1,3}(?:\w+\W{1,3}){0,3}?(?:environment|variables|secrets?|files?|data|credentials?|keys?|tokens?)\b",
        "the text tells the agent to exfiltrate data";
    EXFILTRATION Words(E), ["!["],
        r"!\[[^\]\n]{0,80}\]\(https?://[^)\s]{1,200}[?&/][^)\s]{0,60}(?:data|\{[^)]{1,40}\}|<[^)]{1,40}>|\[[^)]{1,40}\]|\$\w+)[^)\s]{0,60}\)[^\n]{0,200}\b(?:base64|encoded?|api keys?|secrets?|tokens?|conversation|last message|credentials?)\b",
        "the text makes the agent put data into the address of a picture";

    EXFILTRATION Code(E, Some(E)), ["env", "printenv", "export -p"],
        r"(?:^|[\s;&(`])(?:env|printenv|export -p)\s{0,4}(?:\|[^|\n]{0,60}){0,2}\|\s{0,4}(?:curl|wget|nc|ncat|base64[^|\n]{0,20}\|\s{0,4}curl)\b",
        "the command sends the environment variables elsewhere";
    EXFILTRATION Code(E, Some(E)), ["curl", "wget", "invoke-", "irm", "iwr"],
        concat!(r#"\b(?:curl|wget|invoke-\w{1,20}|irm|iwr)\b[^\n]{0,300}?(?:\s(?:-d|--data[\w-]{0,12}|-f|-t|--form|--upload-file|--post-file|-body|-infile)[\s=]{0,2}[^\n]{0,80}?|<\s{0,3}|\$\(\s{0,3}(?:cat|base64|xxd|tar|gzip)\b[^\n)]{0,60}?)"#, secret_file!()),
        "the command sends a file with secrets elsewhere";
    EXFILTRATION Code(E, Some(E)), ["curl", "wget", "nc ", "ncat", "socat", "netcat"],
        concat!(secret_file!(), r"[^\n]{0,120}?\|[^\n]{0,80}?\b(?:curl|wget|nc|ncat|socat|netcat)\b"),
        "the command sends a file with secrets elsewhere";
    EXFILTRATION Code(E, Some(E)), ["dig ", "nslookup", "host ", "ping "],
        concat!(secret_file!(), r"[^\n]{0,200}\b(?:dig|nslookup|host|ping)\b[^\n]{0,60}\$\{?\w"),
        "the command sends a file with secrets in host names";
    EXFILTRATION Code(E, Some(W)), ["environ", "process.env"],
        r#"(?:json|data|body|params|files)\s{0,3}[=:]\s{0,3}(?:json\.dumps\(|str\(|json\.stringify\(|dict\(|urlencode\(|base64\.\w{1,12}\(){0,3}\s{0,3}(?:os\.environ(?:\.copy\(\)|\.items\(\))?|process\.env)\s{0,2}[),}\n]"#,
        "the code puts all environment variables into a message";
    EXFILTRATION Code(E, Some(W)), ["process.env", "environ"],
        r#"(?:fetch|axios\.\w{1,8}|requests\.\w{1,8}|urlopen|\.write|\.send)\([^\n]{0,200}(?:json\.(?:stringify|dumps)\((?:dict\()?)(?:process\.env|os\.environ)\s{0,2}\)"#,
        "the code sends all environment variables elsewhere";

    EXFILTRATION Code(E, Some(E)), ["pbpaste", "xclip", "xsel", "wl-paste", "get-clipboard", "screencapture"],
        r"\b(?:pbpaste|xclip\b[^\n|]{0,40}-o|xsel\b[^\n|]{0,20}|wl-paste|get-clipboard)[^\n|]{0,40}\|[^\n]{0,60}\b(?:curl|wget|nc|ncat|invoke-\w{1,20})\b",
        "the command sends the clipboard elsewhere";
    COLLECTOR_HOST Code(E, Some(W)), ["webhook.site", "requestbin", "pipedream.net", "requestcatcher", "interact.sh", "oast.", "burpcollaborator", "beeceptor", "hookbin", "dnslog", "canarytokens"],
        r#"\b(?:webhook\.site/[\w-]{4,}|requestbin\.\w{2,}|[\w-]{2,}\.(?:m\.)?pipedream\.net|[\w-]{2,}\.requestcatcher\.com|[\w-]{2,}\.(?:interact\.sh|oast\.\w{2,}|burpcollaborator\.net|oastify\.com|beeceptor\.com|dnslog\.cn))"#,
        "the address belongs to a service that collects requests";
    COLLECTOR_HOST Code(W, None), ["discord.com/api/webhooks", "discordapp.com/api/webhooks", "api.telegram.org/bot"],
        r"(?:discord(?:app)?\.com/api/webhooks/\d|api\.telegram\.org/bot\d)",
        "the code sends to a fixed chat webhook";
}
