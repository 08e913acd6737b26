//! PostgreSQL and MariaDB for tests: one of each, started by the first test that needs it, on
//! loopback and in its own folder. Both end with the tests, however these end.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

use tempfile::NamedTempFile;

/// The timeout for the start of a server on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Server {
    pub(crate) port: u16,
    /// The server ends when its standard input is closed, which only the system does.
    _process: Child,
}

/// Its superuser is `postgres`, without a password.
pub(crate) static POSTGRES: LazyLock<Server> = LazyLock::new(|| {
    Server::start(
        "initdb",
        r#"
        initdb -D "$dir/data" -U postgres -A trust --no-sync --locale=C -E UTF8 >&2
        postgres -D "$dir/data" -p "$port" -c listen_addresses=127.0.0.1 \
            -c unix_socket_directories= -c fsync=off -c max_connections=100 </dev/null >&2 &
        "#,
    )
});

/// Its superuser is `root`, without a password.
pub(crate) static MARIADB: LazyLock<Server> = LazyLock::new(|| {
    Server::start(
        "mariadbd",
        r#"
        mariadb-install-db --no-defaults --datadir="$dir/data" --skip-test-db \
            --auth-root-authentication-method=normal >&2
        echo "GRANT ALL ON *.* TO root@127.0.0.1 WITH GRANT OPTION" > "$dir/init.sql"
        mariadbd --no-defaults --datadir="$dir/data" --port="$port" --bind-address=127.0.0.1 \
            --socket="$dir/socket" --pid-file="$dir/pid" --init-file="$dir/init.sql" \
            --skip-name-resolve --innodb-flush-log-at-trx-commit=0 </dev/null >&2 &
        "#,
    )
});

impl Server {
    /// Starts the server that `script` runs in the background, and waits until it listens.
    fn start(program: &str, script: &str) -> Self {
        let path = path();
        let installed = path.iter().any(|it| it.join(program).exists());
        assert!(installed, "`{program}` is missing; `scripts/test` installs it and runs the tests");
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        // Reading ends with the tests, because only they have the other end of the pipe.
        let script = format!(
            "set -e\ndir=$(mktemp -d)\ntrap 'kill $! 2>/dev/null || :; wait; rm -rf \"$dir\"' EXIT\n{script}\nread -r _ || :\n"
        );
        let log = NamedTempFile::new().unwrap();
        // Neither of them runs as root.
        let mut command = match fs::metadata("/proc/self").unwrap().uid() {
            0 => Command::new("setpriv"),
            _ => Command::new("env"),
        };
        if command.get_program() == "setpriv" {
            command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]);
        }
        let mut child = command
            .args(["sh", "-c", &script])
            .current_dir("/")
            .env("PATH", std::env::join_paths(&path).unwrap())
            .env("port", port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log.reopen().unwrap())
            .spawn()
            .unwrap();
        let start = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let ended = child.try_wait().unwrap().is_some();
            if ended || start.elapsed() > PATIENCE {
                panic!("{program} did not start: {}", fs::read_to_string(log.path()).unwrap());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Self { port, _process: child }
    }
}

/// Returns the directories of programs, including those of administrators.
fn path() -> Vec<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let postgres = versions.map(|it| it.unwrap().path().join("bin"));
    let usual = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];
    postgres.chain(usual.map(PathBuf::from)).collect()
}
