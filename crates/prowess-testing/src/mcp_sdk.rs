//! The official MCP SDK for Python, and a server on it.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, LazyLock, Mutex},
    thread,
};

use crate::world::launcher;

/// The program of the server.
pub const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/servers/sdk.py");

/// The folder of the SDK; it is fetched by the first test that needs it.
pub static SDK: LazyLock<PathBuf> = LazyLock::new(|| {
    let target = Path::new(launcher()).ancestors().nth(2).unwrap();
    let folder = target.join("mcp-sdk-2.3.0");
    if !folder.exists() {
        let making = target.join("mcp-sdk-new");
        let mut pip = Command::new(python());
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]);
        let output = pip.arg(&making).arg("mcp==2.3.0").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::rename(making, &folder).unwrap();
    }
    folder.canonicalize().unwrap()
});

/// Returns the Python of the system.
pub fn python() -> &'static str {
    let places = ["/usr/local/bin/python3", "/usr/bin/python3", "/bin/python3"];
    places.into_iter().find(|it| Path::new(it).exists()).expect("there is a Python")
}

/// The server, listening on this machine. Ended when dropped.
#[derive(Debug)]
pub struct SdkServer {
    child: Child,
    pub port: u16,
    lines: Arc<Mutex<Vec<String>>>,
}

impl SdkServer {
    pub fn new(options: &[&str]) -> Self {
        let mut command = Command::new(python());
        command.arg(SERVER).args(options).env("SITE", &*SDK);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let port = said.next().expect("it says its port").parse().unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let own = lines.clone();
        thread::spawn(move || said.for_each(|it| own.lock().unwrap().push(it)));
        Self { child, port, lines }
    }

    /// Returns its requests so far.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

impl Drop for SdkServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
