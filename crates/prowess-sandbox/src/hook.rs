//! Makes the running program its own launcher.

use crate::launcher::Launcher;

impl Launcher {
    /// Becomes the launcher and never returns, if this program was started as one. To be called
    /// first thing in `main`, before there are threads.
    pub fn hook() -> Self {
        #[cfg(all(feature = "run", target_os = "linux"))]
        if crate::linux::is_launcher() {
            std::process::exit(if crate::linux::launch().is_ok() { 0 } else { 1 });
        }
        Self::own()
    }
}
