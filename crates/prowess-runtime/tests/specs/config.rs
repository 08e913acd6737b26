//! Settings: what holds, and who said so.

use std::{path::PathBuf, time::Duration};

use prowess::{ContextWindow, Matching, Options, Scope};
use prowess_runtime::{
    Config, ConfigError, ConfigProblem, Decision, Places, Policy, RunLimits, UnlistedCommands,
};

use crate::world::World;

/// What a host reads from a file of this text, which lies in `project/`.
fn load(toml: impl AsRef<[u8]>) -> Result<Config, ConfigError> {
    let world = World::new().file("project/prowess.toml", toml);
    let only = Some(world.path("project/prowess.toml"));
    Config::load(&Places { only, home: Some(PathBuf::from("/home/me")), ..Places::default() })
}

/// The faults of a text, as `LINE: MESSAGE; HINT`.
fn faults(toml: impl AsRef<[u8]>) -> Vec<String> {
    let said = |it: &ConfigProblem| {
        let (line, hint) = (it.line.unwrap_or_default(), it.hint.as_deref().unwrap_or_default());
        format!("{line}: {}; {hint}", it.message)
    };
    load(toml).unwrap_err().faults.iter().map(said).collect()
}

mod what_is_wrong_is_said_with_its_line {
    use super::*;

    #[test]
    fn what_is_not_toml_is_told_with_its_line() {
        for (toml, line) in [
            (&b"[skill]\ndepth = \n"[..], "2: this is not TOML"),
            (b"[skill]\ndepth = 1\ndepth = 2\n", "3: this is not TOML"),
            (b"[skill]\n\ninclude = [\"a\"\n", "3: this is not TOML"),
            (b"[skill]\nskills_dir = \"\xff\"\n", "2: this is not UTF-8"),
        ] {
            let faults = faults(toml);
            assert_eq!(faults.len(), 1);
            assert!(faults[0].starts_with(line), "{faults:?}");
        }
        // What editors put at the start and at the end of lines is no fault.
        let config = load("\u{feff}[skill]\r\ndepth = 2\r\n").unwrap();
        assert_eq!(config.skill.depth.value.get(), 2);
    }

    #[test]
    fn the_sandbox_cannot_be_switched_off_by_a_file() {
        let faults = faults("[sandbox]\nlevel = \"none\"\n");
        assert!(faults[0].contains("must be typed for the one run"), "{faults:?}");
        assert_eq!(
            load("[sandbox]\nlevel = \"strong\"\n").unwrap().sandbox.level.value.as_str(),
            "strong"
        );
    }

    #[test]
    fn thresholds_that_contradict_each_other_are_told() {
        let faults = faults("[matching]\nmax_active = 1\n[disclosure]\nfull_at = 0.1\n");
        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with("4: `disclosure.brief_at` is 0.15"), "{faults:?}");
        assert!(load("[disclosure]\nbrief_at = 0\nfull_at = 0\n").is_ok());
    }

    #[test]
    fn a_command_that_stands_for_every_program_is_told() {
        for pattern in ["*", "* -l", "py*", "/bin/?"] {
            let faults = faults(format!("[policy]\ncommands = [\"ls\", \"{pattern}\"]\n"));
            assert_eq!(faults.len(), 1);
            assert!(faults[0].starts_with("2: ") && faults[0].contains("names no program"));
            assert!(faults[0].contains("list each program"), "{faults:?}");
        }
        for pattern in ["git * log", "git * *", "* *", ":*"] {
            let faults = faults(format!("[policy]\ncommands = [\"{pattern}\"]\n"));
            assert!(faults.len() == 1 && faults[0].contains(pattern.trim_end_matches(" *")));
        }
    }

    #[test]
    fn a_star_at_the_end_of_a_command_is_what_it_is_without() {
        let toml = "[policy]\ncommands = [\"ls *\", \"git log:*\", \"git diff *\", \"cat\"]\n";
        let policy = load(toml).unwrap().policy("/".as_ref());
        assert_eq!(policy.commands, ["ls", "git log", "git diff", "cat"]);
    }
}

mod a_host_reads_settings_with_types {
    use super::*;

    #[test]
    fn times_and_sizes_are_written_as_people_write_them() {
        let config = load(
            "[limits]\ntimeout = \"5m\"\nidle = 30\ncpu = \"1500ms\"\noutput = \"1 MiB\"\nmemory = 1048576\n\
             file = \"10KB\"\nwork = \"0.5 GiB\"\nprocesses = 8\ndescriptors = 9\n",
        );
        let limits = config.unwrap().limits();
        let wanted = RunLimits {
            timeout: Duration::from_secs(300),
            idle: Some(Duration::from_secs(30)),
            cpu: Duration::from_millis(1500),
            output: 1 << 20,
            memory: 1 << 20,
            file: 10_000,
            work: 1 << 29,
            processes: 8,
            descriptors: 9,
        };
        assert_eq!(limits, wanted);
    }

    #[test]
    fn defaults_are_those_of_the_parts() {
        let config = Config::load(&Places::default()).unwrap();
        let (matching, default) = (config.matching(), Matching::default());
        assert_eq!(
            (matching.strategy, matching.max_active),
            (default.strategy, default.max_active)
        );
        assert_eq!(matching.threshold, default.threshold);
        assert_eq!(
            (config.window(), config.limits()),
            (ContextWindow::default(), RunLimits::default())
        );
        assert_eq!(config.thresholds(), prowess::Thresholds::default());
        // Where people set something, there is somebody who can be asked.
        let (policy, default) = (config.policy("/".as_ref()), Policy::default());
        assert_eq!((default.writes, policy.writes), (Decision::Allow, Decision::Ask));
        assert_eq!((default.secret_reads, policy.secret_reads), (Decision::Allow, Decision::Ask));
        assert_eq!((default.sends, policy.sends), (Decision::Allow, Decision::Ask));
        assert_eq!(default.unlisted_commands, UnlistedCommands::Deny);
        assert_eq!(policy.unlisted_commands, UnlistedCommands::Ask);
        let (options, default) = (config.options(), Options::default());
        // What is set is set by people, whose skills are larger and lie deeper than a library takes unasked.
        assert_eq!(options.limits.max_file_size, 10 * 1024 * 1024);
        assert_eq!(options.limits.max_skill_size, 64 * 1024 * 1024);
        assert_eq!((options.limits.depth, options.watch), (prowess::DEEPEST, default.watch));
        assert!(options.directories.is_empty() && options.sources.is_empty());
        let below = load("[skill]\ndirectories = [\"a\", \"/b\", \"~/c\"]\n").unwrap();
        let directories = below.directories();
        assert!(directories[0].path.ends_with("project/a") && directories[0].path.is_absolute());
        assert_eq!(directories[1].path, PathBuf::from("/b"));
        assert_eq!(
            (directories[2].path.to_str(), directories[2].scope),
            (Some("/home/me/c"), Scope::User)
        );
    }
}
