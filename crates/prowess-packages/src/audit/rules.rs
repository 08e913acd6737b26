//! The rules: a stable code, the usual severity, and a page.

use prowess::{Rule, Severity};

const E: Severity = Severity::Error;
const W: Severity = Severity::Warning;
const I: Severity = Severity::Info;

/// Declares the rules, and the list of them; each has its page in `rules/`. A finding is less
/// severe where the text is only mentioned, and more severe where it is hidden.
macro_rules! rules {
    ($($name:ident $code:literal $severity:ident $summary:literal;)*) => {
        $(pub(super) static $name: Rule = Rule::new(
            $code,
            $summary,
            include_str!(concat!("../../rules/", $code, ".md")),
            $severity,
        );)*

        /// All rules of the audit.
        pub static AUDIT_RULES: &[&Rule] = &[$(&$name),*];
    };
}

rules! {
    // What the words say.
    OVERRIDE_INSTRUCTIONS "override-instructions" E "no text tells the agent to ignore its instructions or policy";
    CONCEAL_FROM_USER "conceal-from-user" E "no text tells the agent to hide what it does from the user";
    SKIP_APPROVAL "skip-approval" W "no text tells the agent to act without the confirmation that is required";
    CLAIMS_EVERY_REQUEST "claims-every-request" W "the description does not claim every request";
    HIDDEN_INSTRUCTIONS "hidden-instructions" E "no instructions are in comments, alternative texts or hidden elements";
    // Its characters.
    INVISIBLE_TEXT "invisible-text" E "no invisible characters carry text or change its direction";
    LOOK_ALIKE_LETTERS "look-alike-letters" W "no word mixes Latin letters with others that look like them";
    // Where data goes.
    EXFILTRATION "exfiltration" E "no secrets or files of the user are sent elsewhere";
    COLLECTOR_HOST "collector-host" W "nothing is sent to a service that collects requests";
    CREDENTIAL_ACCESS "credential-access" W "no credentials of other programs are read";
    // What its commands do.
    DANGEROUS_COMMAND "dangerous-command" E "no command destroys files or disks";
    REVERSE_SHELL "reverse-shell" E "no shell is given to another machine";
    SECURITY_DISABLED "security-disabled" W "no protection of the system is turned off";
    PRIVILEGE_ESCALATION "privilege-escalation" W "no command gains lasting rights";
    // What it brings in.
    DOWNLOAD_AND_RUN "download-and-run" W "no download is run without being looked at";
    UNTRUSTED_DOWNLOAD "untrusted-download" E "nothing comes from addresses, paste sites or archives with a password";
    UNPINNED_DOWNLOAD "unpinned-download" I "packages that are fetched have a version";
    OBFUSCATED_CODE "obfuscated-code" E "no code is decoded or composed and then run";
    DYNAMIC_CODE "dynamic-code" W "no text from elsewhere is run as code";
    RUNS_DATA_FILE "runs-data-file" E "no text, picture or data file is run as a program";
    // What stays.
    STARTUP_PERSISTENCE "startup-persistence" W "nothing is started at login, on schedule or by git";
    AGENT_SETTINGS_WRITE "agent-settings-write" W "no instructions, settings or skills of agents are written";
    SELF_REPLICATION "self-replication" W "the skill does not install copies of itself";
    // What its files are.
    BRINGS_HOOKS "brings-hooks" W "the skill brings no commands that a client runs on events";
    BRINGS_SERVERS "brings-servers" I "the skill brings no MCP servers";
    RUNS_AT_LOAD "runs-at-load" I "no command runs while the skill is loaded";
    EXECUTABLE_FILE "executable-file" W "no file is a compiled program";
    DISGUISED_FILE "disguised-file" E "a program does not have the name of something else";
    ARCHIVE_FILE "archive-file" I "no file is an archive, which is not looked into";
    LINK_OUTSIDE "link-outside" E "no link leads out of the folder";
    NOT_AUDITED "not-audited" W "all files can be audited";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_also_among_those_of_check() {
        let codes = AUDIT_RULES.iter().chain(prowess::RULES).map(|it| it.code);
        let mut codes: Vec<&str> = codes.collect();
        codes.sort_unstable();
        let count = codes.len();
        codes.dedup();
        assert_eq!(codes.len(), count);
    }

    #[test]
    fn a_page_begins_with_the_code_and_the_summary() {
        for rule in AUDIT_RULES {
            let start = format!("# {}\n\n", rule.code);
            let rest = rule.page.strip_prefix(&start).unwrap_or_else(|| panic!("{start}"));
            let summary = rest.lines().next().unwrap_or_default().trim_end_matches('.');
            assert!(summary.eq_ignore_ascii_case(rule.summary), "{}", rule.code);
            assert!(rule.page.contains("\n## Why\n") && rule.page.contains("\n## Fix\n"));
        }
    }
}
