//! Programs in the sandbox, from a host of its own: there is no harness, because the launcher is this
//! very program.
#![expect(clippy::unwrap_used, reason = "this is a test")]

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use prowess_sandbox::{
    Job, Launcher, Network, NetworkProxy, ProxySession, RunLimits, RunStatus, Sandbox,
    SandboxError, SandboxLevel, ScriptConnection, Work,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    runtime::Runtime,
    task::spawn_blocking,
};

fn main() {
    let launcher = Launcher::hook();
    let runtime = Runtime::new().unwrap();
    let best = Sandbox::new(launcher, SandboxLevel::Landlock);
    let support = best.probe();
    assert_ne!(support.level, SandboxLevel::None, "nothing can be shown here: {support:#?}");
    for level in
        [SandboxLevel::Strong, SandboxLevel::Landlock].into_iter().filter(|it| *it <= support.level)
    {
        let has_level = level == SandboxLevel::Strong
            || support.checks.iter().any(|it| it.name == "landlock" && it.supported == Some(true));
        if has_level {
            let sandbox = best.clone().at_most(level);
            runtime.block_on(async {
                a_failure_is_a_result(&sandbox, level).await;
                a_limit_ends_a_program(&sandbox).await;
                a_proxy_of_the_host_is_the_only_network(&sandbox).await;
                a_program_is_spoken_with(&sandbox).await;
                a_variable_for_the_loader_is_refused(&sandbox).await;
            });
        }
    }
}

fn job(script: &str) -> Job {
    let argv = ["sh", "-c", script].map(Into::into).to_vec();
    Job::new(argv, Work::new().unwrap(), RunLimits::default())
}

async fn a_failure_is_a_result(sandbox: &Sandbox, level: SandboxLevel) {
    let result = sandbox.run(job("echo out; echo err >&2; echo x > file; exit 3")).await.unwrap();
    assert_eq!((result.status, result.exit_code), (RunStatus::Failed, Some(3)));
    assert_eq!((&*result.stdout.text, &*result.stderr.text), ("out\n", "err\n"));
    assert_eq!((&*result.files, result.level), (&["file".to_owned()][..], level));
    assert_eq!(result.message.as_deref(), Some("exited with code 3"));
}

async fn a_limit_ends_a_program(sandbox: &Sandbox) {
    let limits = RunLimits { timeout: Duration::from_millis(200), ..RunLimits::default() };
    let result = sandbox.run(Job { limits, ..job("sleep 60") }).await.unwrap();
    assert_eq!(result.status, RunStatus::TimedOut, "{result:?}");
}

/// Answers everybody with the same words.
#[derive(Debug)]
struct Greeter;

#[derive(Default)]
struct Greetings(Arc<Mutex<Vec<ScriptConnection>>>);

impl NetworkProxy for Greeter {
    fn session(&self) -> Arc<dyn ProxySession> {
        Arc::new(Greetings::default())
    }
}

impl ProxySession for Greetings {
    fn serve(
        &self,
        socket: TcpListener,
        _: Option<String>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let list = self.0.clone();
        let greet = move || {
            let (mut client, _) = socket.accept().unwrap();
            let mut asked = [0; 4];
            client.read_exact(&mut asked).unwrap();
            let host = String::from_utf8(asked.to_vec()).unwrap();
            let connection = ScriptConnection {
                host,
                port: 80,
                bytes_sent: 4,
                bytes_received: 5,
                refused: None,
            };
            list.lock().unwrap().push(connection);
            client.write_all(b"hello").unwrap();
        };
        Box::pin(async { spawn_blocking(greet).await.unwrap() })
    }

    fn connections(&self) -> (Vec<ScriptConnection>, u64) {
        (self.0.lock().unwrap().clone(), 0)
    }
}

async fn a_proxy_of_the_host_is_the_only_network(sandbox: &Sandbox) {
    let script = "exec perl -MIO::Socket::INET -e '
        my ($host, $port) = $ENV{HTTP_PROXY} =~ m{([0-9.]+):([0-9]+)$};
        my $proxy = IO::Socket::INET->new(PeerAddr => $host, PeerPort => $port) or die;
        print $proxy \"ping\"; $proxy->flush; print <$proxy>'";
    let network = Network::Proxy(Arc::new(Greeter));
    let result = sandbox.run(Job { network, ..job(script) }).await.unwrap();
    assert_eq!(result.stdout.text, "hello", "{result:?}");
    assert_eq!((&*result.connections[0].host, result.connections_omitted), ("ping", 0));
    let result = sandbox.run(job("echo ${HTTP_PROXY-none}")).await.unwrap();
    assert_eq!((&*result.stdout.text, result.connections), ("none\n", Vec::new()));
}

async fn a_program_is_spoken_with(sandbox: &Sandbox) {
    let (program, mut stream) = sandbox.start(job("read line; echo \"$line, too\"")).unwrap();
    stream.write_all(b"you\n").await.unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "you, too\n");
    assert_eq!(program.end().await.unwrap().status, RunStatus::Ok);
    let (program, _stream) = sandbox.start(job("sleep 60")).unwrap();
    assert!(!program.is_over());
    assert_eq!(program.stop(Duration::ZERO).await.unwrap().status, RunStatus::Cancelled);
}

async fn a_variable_for_the_loader_is_refused(sandbox: &Sandbox) {
    let env = [("LD_PRELOAD".to_owned(), "x.so".to_owned())].into();
    let error = sandbox.run(Job { env, ..job("true") }).await.unwrap_err();
    assert!(matches!(error, SandboxError::Variable { .. }), "{error}");
}
