//! Finds changes that stay behind, and skills that spread.

use super::pattern::{
    E, I,
    Scope::{Code, Words},
    W, patterns,
};

patterns! {
    STARTUP_PERSISTENCE Code(E, Some(E)), ["bashrc", "zshrc", ".profile", "bash_profile", "zprofile", "zshenv"],
        r#"\b(?:curl|wget|base64|nc|/dev/tcp)\b[^\n]{0,200}(?:>>|tee\s{1,3}-a)\s{0,3}["']?(?:~|\$home|\$\{home\})?/?\.(?:bashrc|zshrc|profile|bash_profile|zprofile|zshenv)"#,
        "the command makes every shell run a download";
    STARTUP_PERSISTENCE Code(W, Some(I)), ["bashrc", "zshrc", ".profile", "bash_profile", "zprofile", "zshenv"],
        r#"(?:(?:>>|>|tee\s{1,3}-a|tee)\s{0,3}["']?(?:~|\$home|\$\{home\})/\.(?:bashrc|zshrc|profile|bash_profile|zprofile|zshenv)|\.(?:bashrc|zshrc|bash_profile|zprofile|zshenv)["'][^\n]{0,40}(?:["']a\+?["']|append))"#,
        "the command changes what every shell runs";
    STARTUP_PERSISTENCE Code(E, Some(E)), ["crontab"],
        r"\b(?:curl|wget|base64|nc|python3?\s{1,3}-c)\b[^\n]{0,200}\|\s{0,3}(?:sudo\s{1,3})?crontab\s{1,3}-",
        "the command runs a download on schedule";
    STARTUP_PERSISTENCE Code(W, Some(I)), ["crontab", "/etc/cron", "launchctl", "launchagents", "systemctl", "schtasks", "currentversion\\run", "/etc/rc.local", ".git/hooks/", "start menu"],
        r#"(?:\|\s{0,3}crontab\s{1,3}-|\bcrontab\s{1,3}/|(?:>>?|tee|cp\s[^\n]{1,80})\s{0,3}/etc/cron|\blaunchctl\s{1,3}(?:load|bootstrap|enable)\b|(?:>|cp|mv|tee|write\w{0,10})[^\n]{0,80}library/launchagents/|\bsystemctl\s{1,3}(?:--user\s{1,3})?enable\b|\bschtasks\b[^\n]{0,20}/create|currentversion\\+run\b|(?:>>?|tee)\s{0,3}/etc/rc\.local|(?:>|cp|mv|tee|ln)\s[^\n]{0,80}\.git/hooks/\w)"#,
        "the command makes something start by itself";
    STARTUP_PERSISTENCE Code(E, Some(W)), ["authorized_keys"],
        r"(?:>>?|tee(?:\s{1,3}-a)?)\s{0,3}[\x22']?\S{0,40}\.ssh/authorized_keys",
        "the command lets another key log in";

    AGENT_SETTINGS_WRITE Code(E, Some(W)), ["bypasspermissions"],
        r#"["']?(?:defaultmode|permission_?mode)["']?\s{0,3}[\]:=]{1,2}\s{0,3}["']bypasspermissions["']"#,
        "the setting lets an agent act without approvals";
    AGENT_SETTINGS_WRITE Code(E, Some(E)), [".md", "cursorrules", "copilot-instructions"],
        r#"\b(?:never|without|don'?t|do not|skip|always)\b[^\n]{0,120}\b(?:ask|approv\w{1,6}|confirm\w{0,7}|permission|tell|mention|load)\b[^\n]{0,120}(?:>>?|tee(?:\s{1,3}-a)?)\s{0,3}["']?\S{0,80}(?:claude|agents|gemini|soul|memory|identity|user)\.md"#,
        "the command writes instructions to the file that an agent always reads";
    AGENT_SETTINGS_WRITE Code(W, Some(I)), ["claude.md", "agents.md", "gemini.md", "soul.md", "cursorrules", "copilot-instructions", ".claude/settings", ".codex/config", ".claude.json", ".mcp.json"],
        r#"(?:(?:>>?|\btee(?:\s{1,3}-a)?)\s{0,3}["']?|\b(?:cp|mv|sed\s{1,3}-i)\s[^\n]{0,120}\s["']?|\b(?:open|writefilesync|appendfilesync|writefile)\(\s{0,2}[^\n]{0,60})\S{0,80}(?:claude\.md|agents\.md|gemini\.md|soul\.md|\.cursorrules|copilot-instructions\.md|\.claude/settings(?:\.local)?\.json|\.codex/config\.toml|\.claude\.json|\.mcp\.json)(?:["'][^\n]{0,20}["'][aw]|["'\s]|$)"#,
        "the code writes instructions or settings of an agent";
    AGENT_SETTINGS_WRITE Code(W, Some(I)), ["dangerously-skip-permissions", "dangerously-bypass-approvals", "dangerously-allow"],
        r"--dangerously-(?:skip-permissions|bypass-approvals[\w-]{0,30}|allow[\w-]{0,20})",
        "the command starts an agent without approvals";
    AGENT_SETTINGS_WRITE Words(E), ["skill"],
        r"\b(?:append|add|insert|inject|write|copy|prepend)\b[^\n]{0,160}\b(?:skill\.md|skill files?|instructions)\b[^\n]{0,60}\b(?:every|all|each)\W{1,3}(?:of the )?(?:other|installed)\W{1,3}skills?\b",
        "the text has other skills changed";

    SELF_REPLICATION Code(W, None), ["/skills"],
        r#"(?s-u:(?:__file__|__dirname|bash_source|\$0|skill_dir).{0,400}\.(?:claude|codex|agents|cursor|gemini|openclaw)/skills.{0,120}\.(?:claude|codex|agents|cursor|gemini|openclaw)/skills)"#,
        "the code copies its folder to the skills of several agents";
}
