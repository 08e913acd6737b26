//! Commands that harm the machine.

use super::pattern::{E, I, Scope::Code, W, patterns};

patterns! {
    REVERSE_SHELL Code(E, Some(E)), ["/dev/tcp/", "/dev/udp/"],
        r"(?:(?:ba|z|k)?sh\s{1,4}-i\b[^\n]{0,30}/dev/(?:tcp|udp)/|/dev/(?:tcp|udp)/[^\n]{0,60}(?:0>&1|<&\d|\|\s{0,3}(?:ba)?sh|while\s{1,3}read))",
        "the command gives a shell to another machine";
    REVERSE_SHELL Code(E, Some(E)), ["nc ", "ncat", "netcat", "socat"],
        r"\b(?:nc|ncat|netcat)\b[^\n|;]{0,80}\s-\w{0,5}[ec]\s{1,3}\S{0,40}(?:sh|cmd(?:\.exe)?|powershell)\b|\bsocat\b[^\n]{0,120}exec:[^\n]{0,30}sh\b|\bmkfifo\b[^\n]{0,120}\bsh\s{1,3}-i\b[^\n]{0,60}\b(?:nc|ncat|openssl)\b",
        "the command gives a shell to another machine";
    REVERSE_SHELL Code(E, Some(E)), ["dup2", "tcpclient", "pty.spawn"],
        r"(?s-u:socket\b.{0,500}\bdup2\s{0,2}\(.{0,200}(?:subprocess|pty|exec)|net\.sockets\.tcpclient.{0,400}(?:iex|invoke-expression|getstream)|socket\b.{0,400}pty\.spawn\()",
        "the code gives a shell to another machine";
    DANGEROUS_COMMAND Code(E, Some(W)), ["rmtree", "rmsync", "rm(", "rimraf"],
        r#"(?:rmtree|rmsync|rimraf(?:\.sync)?|fs\.rm)\(\s{0,3}(?:["'](?:/|~/?|/home/?|c:\\\\)["']|os\.path\.expanduser\(\s{0,2}["']~/?["']\s{0,2}\)|(?:pathlib\.)?path\.home\(\)|os\.homedir\(\)|process\.env\.home|os\.environ\[["']home["']\])\s{0,3}[,)]"#,
        "the code deletes the home directory or the root";
    DANGEROUS_COMMAND Code(E, Some(W)), ["remove-item", "format-volume", "vssadmin", "cipher", "del /", "rd /s"],
        r#"(?:remove-item\b[^\n]{0,60}(?:c:\\(?:["'\s*]|$)|\$env:userprofile["'\s]|\$home["'\s])|\bformat-volume\b|\bvssadmin\b[^\n]{0,20}delete\s{1,3}shadows|\b(?:del|rd)\b[^\n]{0,20}/s[^\n]{0,20}\sc:\\(?:["'\s*]|$))"#,
        "the command deletes a disk, a profile or its backups";
    DANGEROUS_COMMAND Code(W, Some(I)), ["xmrig", "minerd", "stratum+tcp", "cryptonight"],
        r"\b(?:xmrig|minerd|stratum\+tcp://|cryptonight)\b",
        "the command mines a currency";

    SECURITY_DISABLED Code(E, Some(W)), ["spctl", "csrutil", "set-mppreference", "setenforce", "gatekeeper"],
        r"\b(?:spctl\s{1,3}--(?:master|global)-disable|csrutil\s{1,3}disable|set-mppreference\b[^\n]{0,60}-(?:disable|exclusion)\w{1,40}|setenforce\s{1,3}0)\b",
        "the command turns off a protection of the system";
    SECURITY_DISABLED Code(W, Some(W)), ["com.apple.quarantine", "xattr -c"],
        r"\bxattr\b[^\n]{0,20}\s-\w{0,3}[dc]\w{0,2}\b[^\n]{0,80}",
        "the command removes the mark that makes macOS check a download";
    SECURITY_DISABLED Code(W, Some(I)), ["ufw", "iptables", "firewall", "apparmor", "auditd", "histfile", "history -c", "clamav", "defender", "execution"],
        r"\b(?:ufw\s{1,3}disable|iptables\s{1,3}-f\b|netsh\s{1,3}advfirewall[^\n]{0,40}\soff|systemctl\s{1,3}(?:stop|disable)\s[^\n]{0,20}(?:apparmor|firewalld|auditd|clamav)|unset\s{1,3}histfile|history\s{1,3}-c\b|set-executionpolicy\s{1,3}(?:-\w{1,20}\s{1,3})?(?:unrestricted|bypass))",
        "the command turns off a protection or a record of the system";

    PRIVILEGE_ESCALATION Code(E, Some(W)), ["chmod", "install -m"],
        r"\b(?:chmod|install\s{1,3}-m)\s{1,3}(?:-\w{1,3}\s{1,3})?(?:0?[4-7][0-7]{3}|[ugo]{0,3}a?\+[rwx]{0,3}s)\b[^\n]{0,60}",
        "the command makes a program run with the rights of its owner";
    PRIVILEGE_ESCALATION Code(E, Some(W)), ["nopasswd", "/etc/sudoers"],
        r"(?:nopasswd\s{0,2}:[^\n]{0,60}(?:>>|tee|/etc/sudoers)|(?:>>?|tee(?:\s{1,3}-a)?)\s{0,3}/etc/sudoers)",
        "the command gives rights of root without a password";
}
