//! The helper that holds programs for hosts that do not start themselves again for that.

use std::{
    env,
    io::{self, Write as _},
    process::ExitCode,
};

use prowess_sandbox::Launcher;

fn main() -> ExitCode {
    Launcher::hook();
    if env::args().nth(1).is_some_and(|it| it == "--version") {
        let written = writeln!(io::stdout(), "prowess-launcher {}", env!("CARGO_PKG_VERSION"));
        return if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let about = "prowess-launcher is started by programs that run others in a sandbox; there is \
                 nothing to type. `prowess sandbox` shows what this machine supports.";
    let _ = writeln!(io::stderr(), "{about}");
    ExitCode::from(2)
}
