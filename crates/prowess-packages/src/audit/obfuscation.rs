//! Code that hides what it does.

use super::pattern::{E, Scope::Code, W, patterns};

patterns! {
    OBFUSCATED_CODE Code(E, Some(E)), ["base64", "openssl", "xxd", "uudecode", "base32", "gunzip"],
        r"\b(?:base64\s{1,3}(?:-\w{0,3}d|--decode|-d\w{0,3})\b|openssl\s{1,3}(?:enc|base64)\b[^\n|]{0,60}\s-d\b|xxd\s{1,3}(?:-\w{1,3}\s{1,3}){0,3}-\w{0,2}r|uudecode|base32\s{1,3}-d|gunzip\s{1,3}-c)[^\n|]{0,80}(?:\|\s{0,3}(?:gunzip|zcat|rev|tr\b[^\n|]{0,30}|cat)\b[^\n|]{0,20}){0,2}\|\s{0,4}(?:sudo\s{1,3})?(?:/(?:usr/)?bin/)?(?:(?:ba|z|da|k)?sh|python3?|perl|node|ruby|php|osascript)\b",
        "the command decodes a text and runs it";
    OBFUSCATED_CODE Code(E, Some(E)), ["base64", "xxd"],
        r#"(?:\b(?:ba|z|da)?sh\s{1,3}(?:-c\s{1,3}|<<<\s{0,3})["']?|\beval\s{1,3}["']?|\b(?:ba|z)?sh\s{1,3}<\()[^\n]{0,4}(?:\$\(|`)?[^\n]{0,600}\b(?:base64\s{1,3}(?:-\w{0,3}d|--decode)|xxd\s{1,3}-\w{0,4}r)"#,
        "the command decodes a text and runs it";
    OBFUSCATED_CODE Code(E, Some(E)), ["| rev", "|rev", "| tr ", "|tr "],
        r"\|\s{0,3}(?:rev|tr\s{1,3}\S{1,60}\s{1,3}\S{1,60})\s{0,3}\|\s{0,3}(?:ba|z|da)?sh\b",
        "the command rearranges a text and runs it";
    OBFUSCATED_CODE Code(E, Some(W)), ["exec", "eval", "compile"],
        r"\b(?:exec|eval)\s{0,2}\([^\n]{0,100}?(?:b(?:64|32|85)decode|fromhex|unhexlify|zlib\.decompress|lzma\.decompress|marshal\.loads|codecs\.decode|rot.?13)\b",
        "the code decodes a text and runs it";
    OBFUSCATED_CODE Code(E, Some(W)), ["eval", "function("],
        r"\b(?:eval|function)\s{0,2}\([^\n]{0,100}?(?:\batob\s{0,2}\(|buffer\.from\s{0,2}\([^\n]{0,200}(?:base64|hex)|fromcharcode\s{0,2}\(|unescape\s{0,2}\()",
        "the code decodes a text and runs it";
    OBFUSCATED_CODE Code(E, Some(W)), ["fromcharcode"],
        r"(?s-u:fromcharcode\s{0,2}\(\s{0,3}\d{1,3}(?:\s{0,2},\s{0,2}\d{1,3}){3,200}.{0,400}\beval\s{0,2}\()",
        "the code composes a text from numbers and runs it";
    OBFUSCATED_CODE Code(E, Some(W)), ["b64decode", "unhexlify", "fromhex", "zlib.decompress", "marshal.loads"],
        r"(?s-u:(?:b64decode|unhexlify|fromhex|zlib\.decompress|marshal\.loads).{0,300}^[ \t]{0,40}(?:exec|eval)\s{0,2}\()",
        "the code decodes a text and runs it";
    OBFUSCATED_CODE Code(E, Some(W)), [".join(["],
        r#"(?s-u:["']{2}\.join\(\[(?:\s{0,40}["'][^"'\n]{1,14}["']\s{0,3},?){3,40}\s{0,40}\]\).{0,300}(?:os\.system|subprocess|popen|\bexec\s{0,2}\(|\beval\s{0,2}\())"#,
        "the code composes a command of pieces and runs it";
    OBFUSCATED_CODE Code(E, Some(E)), ["frombase64string", "-enc", "-e "],
        r"(?:\bpowershell(?:\.exe)?\b[^\n]{0,80}\s-e\w{0,20}\s{1,3}[a-z0-9+/=]{40,}|\b(?:iex|invoke-expression)\b[^\n]{0,120}frombase64string)",
        "the command decodes a text and runs it";
    OBFUSCATED_CODE Code(E, Some(W)), ["__import__", "chr("],
        r#"(?:__import__\s{0,2}\(\s{0,2}(?:["'][^"'\n]{0,12}["']\s{0,2}\+|chr\(|bytes|["'][^"'\n]{1,30}["']\s{0,2}\[::-1\])|(?:chr\(\s{0,2}\d{1,3}\s{0,2}\)\s{0,2}\+\s{0,2}){4,})"#,
        "the code composes names character by character";
    OBFUSCATED_CODE Code(W, None), ["\\x"],
        r"(?:\\x[0-9a-f]{2}){24,}",
        "the code has a long text of character codes";

    DYNAMIC_CODE Code(E, Some(W)), ["exec", "eval", "function("],
        r"\b(?:exec|eval|function)\s{0,2}\(\s{0,2}(?:compile\s{0,2}\(\s{0,2})?(?:await\s{1,2}\(?)?(?:requests\.get|(?:\w{1,20}\.){0,3}urlopen|httpx\.get|fetch\s{0,2}\(|axios\.get|\(?await fetch)",
        "the code runs what it has just downloaded";
    DYNAMIC_CODE Code(E, Some(W)), ["urlopen", "requests.get", "httpx.get"],
        r"(?s-u:\b(\w{1,30})\s{0,2}=\s{0,2}(?:requests\.get|urllib\.request\.urlopen|urlopen|httpx\.get)\([^\n]{0,200}\n.{0,300}\bexec\s{0,2}\(\s{0,2}\w{1,30}(?:\.(?:text|content|read\(\)))?)",
        "the code runs what it has just downloaded";

    RUNS_DATA_FILE Code(E, Some(E)), ["sh ", "python", "node ", "perl ", "ruby ", "osascript ", "source "],
        r#"(?:^|[\s`"'(;|&])(?:(?:ba|z|da|k)?sh|python3?|node|perl|ruby|osascript)\s{1,3}[\w./~${}-]{0,120}/[\w.-]{1,60}\.(?:txt|md|png|jpe?g|gif|svg|csv|dat|bin|pdf|log|ico|webp|woff2?)(?:$|[\s`"');&|,.])"#,
        "a text, picture or data file is run as a program";
    RUNS_DATA_FILE Code(W, Some(W)), ["exec", "eval"],
        r#"\b(?:exec|eval)\s{0,2}\(\s{0,2}(?:compile\s{0,2}\(\s{0,2})?(?:open|path|fs\.readfilesync)\s{0,2}\([^\n]{0,120}\.(?:txt|md|png|jpe?g|gif|svg|csv|dat|bin|json|log)\b"#,
        "the code runs the text of a data file";
    RUNS_DATA_FILE Code(E, Some(E)), ["cat ", "cat\t"],
        r"\bcat\s{1,3}(?:[\w./*-]{1,80}\s{1,3}){1,20}\|\s{0,3}(?:base64\s[^\n|]{0,20}\|\s{0,3})?(?:ba|z|da)?sh\b",
        "the text of data files is run as a program";
}
