//! A headless Chromium, shared by all tests and driven over its debugging pipe. It ends with the
//! tests, however these end.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value as Json, json};

/// The timeout of a page on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

static BROWSER: LazyLock<Mutex<Browser>> = LazyLock::new(|| Mutex::new(Browser::start()));

#[derive(Debug)]
struct Browser {
    to: File,
    from: BufReader<File>,
    last: u64,
    /// It ends when its input pipe is closed, which the system does at our end.
    _process: Child,
}

/// The open page. Only one is open at a time.
#[derive(Debug)]
pub struct Page {
    browser: MutexGuard<'static, Browser>,
    session: String,
}

impl Browser {
    fn start() -> Self {
        let installed = Path::new("/usr/bin/chromium").exists();
        assert!(installed, "`chromium` is missing; `scripts/test` installs it and runs the tests");
        let folder = tempfile::tempdir().unwrap().keep();
        let script = r#"
            trap 'rm -rf "$0"' EXIT
            mkfifo "$0/to" "$0/from"
            : > "$0/ready"
            chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
                --hide-scrollbars --user-data-dir="$0/profile" --remote-debugging-pipe \
                about:blank 3< "$0/to" 4> "$0/from"
        "#;
        let process = Command::new("sh")
            .args(["-c", script])
            .arg(&folder)
            .env("HOME", &folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let start = Instant::now();
        while !folder.join("ready").exists() {
            assert!(start.elapsed() < PATIENCE, "the browser does not start");
            thread::sleep(Duration::from_millis(5));
        }
        let to = fs::OpenOptions::new().write(true).open(folder.join("to")).unwrap();
        let from = BufReader::new(File::open(folder.join("from")).unwrap());
        Self { to, from, last: 0, _process: process }
    }

    /// Sends a command to the browser, or to one of its pages, and returns the answer.
    fn say(&mut self, method: &str, params: Json, session: Option<&str>) -> Json {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).unwrap();
            assert!(!bytes.is_empty(), "the browser has ended");
            bytes.pop();
            let answer: Json = serde_json::from_slice(&bytes).unwrap();
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
        }
    }
}

impl Page {
    /// Opens a file, at 1400 × 900, in the light scheme.
    pub fn open(path: &Path) -> Self {
        let mut browser = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
        let target = browser.say("Target.createTarget", json!({"url": "about:blank"}), None);
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.say("Target.attachToTarget", attach, None);
        let session = attached["sessionId"].as_str().unwrap().to_owned();
        let mut page = Self { browser, session };
        page.look(1400, 900, "light");
        page.say("Page.navigate", json!({"url": format!("file://{}", path.display())}));
        page.wait("document.readyState === 'complete' && location.protocol === 'file:'");
        page
    }

    /// Changes the size of the screen, and the colour scheme.
    pub fn look(&mut self, width: u32, height: u32, scheme: &str) {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.say("Emulation.setDeviceMetricsOverride", metrics);
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.say("Emulation.setEmulatedMedia", json!({"features": [feature]}));
    }

    /// Returns the value of an expression in the page.
    pub fn eval(&mut self, expression: &str) -> Json {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.say("Runtime.evaluate", params);
        let thrown = &answer["exceptionDetails"];
        assert!(thrown.is_null(), "{expression}: {thrown:#}");
        answer["result"]["value"].clone()
    }

    pub fn text(&mut self, expression: &str) -> String {
        let value = self.eval(expression);
        value.as_str().unwrap_or_else(|| panic!("`{expression}` is {value}")).to_owned()
    }

    pub fn is(&mut self, expression: &str) -> bool {
        self.eval(expression) == true
    }

    /// Presses a key.
    pub fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => 0,
        };
        let mut down = json!({"type": "keyDown", "key": key, "windowsVirtualKeyCode": code});
        if code == 0 {
            down["text"] = json!(key);
        }
        self.say("Input.dispatchKeyEvent", down);
        let up = json!({"type": "keyUp", "key": key, "windowsVirtualKeyCode": code});
        self.say("Input.dispatchKeyEvent", up);
    }

    pub fn type_text(&mut self, text: &str) {
        self.say("Input.insertText", json!({"text": text}));
    }

    fn wait(&mut self, expression: &str) {
        let start = Instant::now();
        while !self.is(expression) {
            assert!(start.elapsed() < PATIENCE, "not yet: {expression}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn say(&mut self, method: &str, params: Json) -> Json {
        self.browser.say(method, params, Some(&self.session))
    }
}
