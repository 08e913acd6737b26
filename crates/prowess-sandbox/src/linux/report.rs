//! The sandbox features of a machine, and advice if they are insufficient.

use std::{fs, io, os::unix::net::UnixStream, path::Path, process::Stdio};

use super::{
    messages::{Component, Enforcement, MachineFeatures, Reply, StartFailure, receive, send},
    start::{GREETING, Greeting, Start, no_greeting, start},
    supervisor::LOOK,
};
use crate::{
    error::SandboxError,
    launcher::Launcher,
    level::SandboxLevel,
    limits::RunLimits,
    order::Order,
    support::{FeatureCheck, SandboxSupport},
    work::Work,
};

/// Tries both levels without a program.
pub(crate) fn probe(launcher: &Launcher) -> SandboxSupport {
    let tried = try_level(launcher, SandboxLevel::Strong)
        .and_then(|it| Ok((it, try_level(launcher, SandboxLevel::Landlock)?)));
    let (strong, landlock) = match tried {
        Ok(tried) => tried,
        Err(error) => return no_launcher(launcher, &error),
    };
    let level = match (&strong, &landlock) {
        (Ok(_), _) => SandboxLevel::Strong,
        (_, Ok(_)) => SandboxLevel::Landlock,
        _ => SandboxLevel::None,
    };
    SandboxSupport { level, checks: checks(&strong, &landlock) }
}

/// Reports that nothing could be tried.
fn no_launcher(launcher: &Launcher, error: &io::Error) -> SandboxSupport {
    let check = FeatureCheck {
        name: "launcher",
        supported: Some(false),
        detail: format!("cannot run the launcher `{}`: {error}", launcher.path().display()),
        remedy: None,
    };
    SandboxSupport { level: SandboxLevel::None, checks: vec![check] }
}

/// Tries a level; fails if that could not be tried.
fn try_level(
    launcher: &Launcher,
    level: SandboxLevel,
) -> io::Result<Result<MachineFeatures, StartFailure>> {
    Ok(match launch_nothing(launcher, level)? {
        Reply::Ended(ended) => Ok(ended.features),
        Reply::Failed(failure) => Err(failure),
        Reply::Unavailable(missing) => {
            let missing = missing.into_iter().next().map(|it| it.1);
            Err(missing.unwrap_or_else(|| {
                Component::Process.failed("try any level")(io::Error::other("no level to try"))
            }))
        }
    })
}

/// Starts the launcher without a program; returns its reply.
fn launch_nothing(launcher: &Launcher, level: SandboxLevel) -> io::Result<Reply> {
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
    let Start { mut command, mut control } = start(launcher, &order)?;
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    drop(command);
    let reply = ask(&mut control, &order);
    if reply.is_err() {
        let _ = child.kill();
    }
    drop(control);
    child.wait()?;
    reply
}

/// Sends the order, and returns the reply that follows the greeting.
fn ask(control: &mut UnixStream, order: &Order) -> io::Result<Reply> {
    control.set_read_timeout(Some(GREETING))?;
    let sent = send(control, order);
    receive::<Greeting>(control).map_err(no_greeting)?.check()?;
    sent?;
    control.set_read_timeout(None)?;
    receive(control)
}

/// Returns a check for each component, in the order of the attempts, from the results of both
/// levels.
fn checks(
    strong: &Result<MachineFeatures, StartFailure>,
    landlock: &Result<MachineFeatures, StartFailure>,
) -> Vec<FeatureCheck> {
    let best = strong.as_ref().or(landlock.as_ref()).ok();
    let version = best.map_or(0, |it| it.rules);
    let rules = format!(
        "version {version}; without namespaces, scripts can still list files outside and read \
         their metadata, and have no shared memory"
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
        limits_check(best),
        FeatureCheck {
            name: "notifications",
            supported: best.map(|_| listener),
            detail: "outcomes name refused system calls".to_owned(),
            remedy: None,
        },
    ]
}

/// Returns the check of a component, from the results of the levels that need it.
fn check(
    name: &'static str,
    component: Component,
    levels: &[&Result<MachineFeatures, StartFailure>],
    detail: &str,
) -> FeatureCheck {
    let failure =
        levels.iter().find_map(|it| it.as_ref().err().filter(|it| it.component == component));
    if let Some(failure) = failure {
        return FeatureCheck {
            name,
            supported: Some(false),
            detail: format!("cannot {}: {}", failure.what, cause(failure)),
            remedy: Some(remedy(failure, &Machine::inspect())),
        };
    }
    // An earlier step may have failed.
    let is_reached = levels.iter().any(|it| it.is_ok());
    let detail = if is_reached { detail } else { "not reached" };
    FeatureCheck {
        name,
        supported: is_reached.then_some(true),
        detail: detail.to_owned(),
        remedy: None,
    }
}

/// Returns the check of how limits of memory and processes are enforced.
fn limits_check(best: Option<&MachineFeatures>) -> FeatureCheck {
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
    FeatureCheck { name: "limits", supported: way.map(|_| true), detail, remedy }
}

/// Returns the error that no level is available, with advice.
pub(crate) fn unavailable(missing: &[(SandboxLevel, StartFailure)]) -> SandboxError {
    let reasons: Vec<String> = missing
        .iter()
        .map(|(level, it)| format!("`{level}` cannot {}: {}", it.what, cause(it)))
        .collect();
    let machine = Machine::inspect();
    // The first is the stronger level, so its advice is better.
    let remedy = missing.first().map_or_else(String::new, |it| remedy(&it.1, &machine));
    SandboxError::Unavailable { reason: reasons.join("; "), remedy }
}

fn cause(failure: &StartFailure) -> String {
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
    fn inspect() -> Self {
        Self {
            apparmor_restricts: setting("kernel/apparmor_restrict_unprivileged_userns") == Some(1),
            no_user_namespaces: setting("user/max_user_namespaces") == Some(0),
            no_clone: setting("kernel/unprivileged_userns_clone") == Some(0),
            container: ["/.dockerenv", "/run/.containerenv"]
                .iter()
                .any(|it| Path::new(it).exists()),
        }
    }
}

/// Returns a setting of the kernel.
fn setting(name: &str) -> Option<u64> {
    fs::read_to_string(Path::new("/proc/sys").join(name)).ok()?.trim().parse().ok()
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
            "allow the container to create user namespaces and mount /proc (in Docker: \
             `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`), or start \
             it with a seccomp profile that allows Landlock"
        }
        Component::Namespaces | Component::Root => {
            "allow unprivileged user namespaces, on Linux 5.12 or newer"
        }
        Component::Rules if failure.errno == Some(libc::EOPNOTSUPP) => {
            "use Linux 6.7 or newer, and boot it with `landlock` in `lsm=`"
        }
        Component::Rules => {
            "use Linux 6.7 or newer with Landlock; in a container, make sure it is not blocked"
        }
        Component::Filter => {
            "use a kernel with seccomp filters; in a container, make sure they are not blocked"
        }
        Component::Process | Component::Job | Component::Group => {
            "check that the program can be run and that its temporary directory is writable"
        }
    };
    if advice.contains(" or newer") {
        // A container has the kernel of its host.
        let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
        return format!("{advice} (this is {kernel})");
    }
    advice.to_owned()
}
