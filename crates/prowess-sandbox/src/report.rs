//! The sandbox features of a machine, and advice if they are insufficient.

use std::{fs, io, path::Path, process::Stdio};

use crate::{
    error::SandboxError,
    launcher::Launcher,
    level::SandboxLevel,
    limits::RunLimits,
    order::{Component, Enforcement, MachineFeatures, Order, Reply, StartFailure, receive, send},
    supervisor::LOOK,
    support::{FeatureCheck, SandboxSupport},
    work::Work,
};

/// Tries both levels without a program.
pub(crate) fn probe(launcher: &Launcher) -> SandboxSupport {
    let tried =
        [SandboxLevel::Strong, SandboxLevel::Landlock].map(|it| (it, attempt(launcher, it)));
    let reached = tried.iter().find(|it| it.1.is_ok()).map(|it| it.0);
    let [(_, strong), (_, landlock)] = tried;
    SandboxSupport {
        level: reached.unwrap_or(SandboxLevel::None),
        checks: checks(&strong, &landlock),
    }
}

fn attempt(launcher: &Launcher, level: SandboxLevel) -> Result<MachineFeatures, StartFailure> {
    let start = |launcher: &Launcher| -> io::Result<Reply> {
        let work = Work::new()?;
        let order = Order {
            argv: Vec::new(),
            env: [].into(),
            directory: work.path().into(),
            interactive: false,
            has_stdin: false,
            path: Vec::new(),
            home: None,
            reads: Vec::new(),
            writes: Vec::new(),
            layered: Vec::new(),
            hidden: Vec::new(),
            withheld: Vec::new(),
            links: Vec::new(),
            base: work.base().into(),
            limits: RunLimits::default(),
            network: None,
            levels: vec![level],
        };
        let (mut command, mut control) = launcher.command()?;
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let reply = send(&mut control, &order).and_then(|()| receive(&mut control));
        drop(control);
        child.wait()?;
        reply
    };
    match start(launcher).map_err(Component::Process.failed("start the launcher"))? {
        Reply::Ended(ended) => Ok(ended.given),
        Reply::Failed(failure) => Err(failure),
        Reply::Unavailable(missing) => {
            let missing = missing.into_iter().next().map(|it| it.1);
            Err(missing
                .unwrap_or_else(|| Component::Process.failed("try")(io::Error::other("nothing"))))
        }
    }
}

/// Returns a check for each component, in the order of the attempts, from the results of both
/// levels.
fn checks(
    strong: &Result<MachineFeatures, StartFailure>,
    landlock: &Result<MachineFeatures, StartFailure>,
) -> Vec<FeatureCheck> {
    let best = strong.as_ref().or(landlock.as_ref()).ok();
    let check = |name,
                 component: Component,
                 needed: &[&Result<MachineFeatures, StartFailure>],
                 detail: &str| {
        let failed =
            needed.iter().find_map(|it| it.as_ref().err().filter(|it| it.component == component));
        // An earlier step may have failed.
        let given = if failed.is_some() {
            Some(false)
        } else {
            needed.iter().any(|it| it.is_ok()).then_some(true)
        };
        let detail = match failed {
            Some(failure) => format!("cannot {}: {}", failure.what, why(failure)),
            None if given.is_none() => "not reached".to_owned(),
            None => detail.to_owned(),
        };
        FeatureCheck { name, given, detail, remedy: failed.map(|it| remedy(it, &Machine::look())) }
    };
    let version = best.map_or(0, |it| it.rules);
    let rules = format!(
        "version {version}; without namespaces a script still sees which files there are outside, \
         and their metadata, and has no shared memory"
    );
    let listener = best.is_some_and(|it| it.listener);
    vec![
        check(
            "namespaces",
            Component::Namespaces,
            &[strong],
            "user, mount, pid, net, ipc, uts, cgroup",
        ),
        check("root", Component::Root, &[strong], "a minimal root by pivot_root"),
        check("landlock", Component::Rules, &[landlock], &rules),
        check("seccomp", Component::Filter, &[strong, landlock], "a filter of system calls"),
        limits(best),
        FeatureCheck {
            name: "notifications",
            given: best.map(|_| listener),
            detail: "an outcome names the calls that were refused".to_owned(),
            remedy: None,
        },
    ]
}

/// Returns the check of how limits of memory and processes are enforced.
fn limits(best: Option<&MachineFeatures>) -> FeatureCheck {
    let way = best.map(|it| it.limits);
    let detail = match way {
        None => "not reached".to_owned(),
        Some(Enforcement::CgroupV2) => "memory and process limits: cgroup v2".to_owned(),
        Some(Enforcement::CgroupV1) => "memory and process limits: cgroup v1".to_owned(),
        Some(Enforcement::Counted) => {
            format!("memory and process limits: counted every {} ms", LOOK.as_millis())
        }
    };
    let counted = way == Some(Enforcement::Counted) && Path::new("/run/systemd/system").exists();
    let remedy = counted.then(|| {
        "to have the kernel enforce memory and process limits, start the program with \
         `systemd-run --user --scope`"
            .to_owned()
    });
    FeatureCheck { name: "limits", given: way.map(|_| true), detail, remedy }
}

/// Returns the error that no level is available, with advice.
pub(crate) fn unavailable(missing: &[(SandboxLevel, StartFailure)]) -> SandboxError {
    let reason = |(level, it): &(SandboxLevel, StartFailure)| {
        format!("`{level}` cannot {}: {}", it.what, why(it))
    };
    let reasons: Vec<String> = missing.iter().map(reason).collect();
    let machine = Machine::look();
    // The first is the stronger level, so its advice is better.
    let remedy = missing.first().map_or_else(String::new, |it| remedy(&it.1, &machine));
    SandboxError::Unavailable { reason: reasons.join("; "), remedy }
}

fn why(failure: &StartFailure) -> String {
    let error = failure.error().to_string();
    error.split(" (os error").next().unwrap_or(&error).to_lowercase()
}

/// The settings of a machine that may prevent a sandbox.
#[derive(Debug, Default)]
struct Machine {
    apparmor_restricts: bool,
    no_user_namespaces: bool,
    no_clone: bool,
    container: bool,
}

impl Machine {
    fn look() -> Self {
        let value =
            |path: &str| fs::read_to_string(path).ok().and_then(|it| it.trim().parse().ok());
        let is = |path, number: u64| value(path) == Some(number);
        Self {
            apparmor_restricts: is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1),
            no_user_namespaces: is("/proc/sys/user/max_user_namespaces", 0),
            no_clone: is("/proc/sys/kernel/unprivileged_userns_clone", 0),
            container: ["/.dockerenv", "/run/.containerenv"]
                .iter()
                .any(|it| Path::new(it).exists()),
        }
    }
}

/// Returns advice about a missing component, in one line.
fn remedy(failure: &StartFailure, machine: &Machine) -> String {
    let advice = match failure.component {
        Component::Namespaces | Component::Root if machine.no_user_namespaces => {
            "run `sysctl user.max_user_namespaces=10000` as root"
        }
        Component::Namespaces | Component::Root if machine.no_clone => {
            "run `sysctl kernel.unprivileged_userns_clone=1` as root"
        }
        Component::Namespaces | Component::Root if machine.apparmor_restricts => {
            "give the program an AppArmor profile that allows `userns`, or run \
             `sysctl kernel.apparmor_restrict_unprivileged_userns=0` as root"
        }
        Component::Namespaces | Component::Root if machine.container => {
            "start the container so that it may make user namespaces and mount /proc (in Docker: \
             `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`), or with a \
             filter that allows Landlock"
        }
        Component::Namespaces | Component::Root => {
            "allow unprivileged user namespaces, on Linux 5.12 or newer"
        }
        Component::Rules if failure.errno == Some(libc::EOPNOTSUPP) => {
            "use Linux 6.7 or newer, and boot it with `landlock` in `lsm=`"
        }
        Component::Rules => "use Linux 6.7 or newer with Landlock, and let no container filter it",
        Component::Filter => "use a kernel with seccomp filters, and let no container forbid them",
        Component::Process | Component::Job | Component::Group => {
            "see whether the program and its temporary directory are usable"
        }
    };
    advice.to_owned()
}
