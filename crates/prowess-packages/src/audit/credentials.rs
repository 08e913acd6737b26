//! Credentials of other programs.

use super::pattern::{E, I, Scope::Code, W, patterns};

patterns! {
    CREDENTIAL_ACCESS Code(E, Some(W)), ["dump-keychain", "export-keychain"],
        r"\bsecurity\s{1,4}(?:dump-keychain|export)\b[^\n]{0,80}",
        "the command reads the whole keychain";
    CREDENTIAL_ACCESS Code(W, Some(I)), ["find-generic-password", "find-internet-password", "secret-tool", "cmdkey", "vaultcmd"],
        r"\b(?:security\s{1,4}find-(?:generic|internet)-password[^\n]{0,120}\s-\w{0,4}w|secret-tool\s{1,4}(?:lookup|search)|cmdkey\s{1,4}/list|vaultcmd\s{1,4}/list)",
        "the command reads a password of the system's store";
    CREDENTIAL_ACCESS Code(E, Some(W)), ["login data", "cookies", "key4.db", "logins.json", "local state"],
        r#"(?:google[/\\]{1,2}chrome|google-chrome|chromium|bravesoftware|microsoft[/\\]{1,2}edge|firefox|mozilla)[^\n]{0,160}(?:login data|cookies(?:\.sqlite)?\b|key4\.db|logins\.json|local state)"#,
        "the code reads passwords or cookies of a browser";
    CREDENTIAL_ACCESS Code(E, Some(W)), ["keystore", "wallet", "solana", "electrum", "exodus", "nkbihfbeogaeaoehlefnkodbefgpgknn"],
        r#"(?:\.ethereum[/\\]{1,2}keystore|wallet\.dat\b|\.electrum[/\\]|exodus\.wallet|nkbihfbeogaeaoehlefnkodbefgpgknn|\.config/solana/id\.json[^\n]{0,80}\bopen\()"#,
        "the code reads the keys of a wallet";
    CREDENTIAL_ACCESS Code(E, Some(W)), ["mimikatz", "sekurlsa", "lsass", "lazagne"],
        r"\b(?:invoke-mimikatz|mimikatz(?:\.exe)?|sekurlsa::|lazagne(?:\.py|\.exe)?\s|(?:procdump|comsvcs)[^\n]{0,80}lsass)",
        "the command takes passwords from memory";
    CREDENTIAL_ACCESS Code(W, Some(I)), ["id_rsa", "id_ed25519", "id_ecdsa", "id_dsa"],
        r#"(?:\b(?:cat|cp|base64|tar|less|head|xxd|readfilesync|readfile|open)\b[\s("'`]{1,4}[^\n]{0,60}\.ssh[/"',\s]{1,6}id_(?:rsa|ed25519|ecdsa|dsa)(?:[^.\w]|$)|["']\.ssh["'][^\n]{0,20}id_(?:rsa|ed25519|ecdsa|dsa)[^\n]{0,10}read)"#,
        "the code reads a private SSH key";
    CREDENTIAL_ACCESS Code(W, Some(I)), [".aws/credentials", ".netrc", ".git-credentials", ".pypirc", "gh/hosts", ".docker/config.json", ".kube/config", "/etc/shadow", ".claude/.credentials", ".codex/auth", "_history"],
        r#"\b(?:cat|cp|base64|tar|head|open|readfilesync|readfile|read_text|path)\b[\s("'`]{1,4}[^\n]{0,60}(?:\.aws/credentials|\.netrc\b|\.git-credentials|\.pypirc|gh/hosts|\.docker/config\.json|\.kube/config|/etc/shadow|\.claude/\.credentials|\.codex/auth|\.(?:bash|zsh)_history)"#,
        "the code reads credentials of another program";
    CREDENTIAL_ACCESS Code(W, Some(I)), ["169.254.169.254", "metadata.google.internal"],
        r"https?://(?:169\.254\.169\.254|metadata\.google\.internal)/[^\s]{0,40}(?:security-credentials|token|service-accounts)",
        "the code reads the credentials of a cloud machine";
}
