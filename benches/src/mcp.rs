//! The latency of `prowess mcp`, and its cost with many clients.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value as Json, json};

use crate::{
    corpus::Corpus,
    load::number,
    measure::{milliseconds, peak_kib_of},
    metrics::percentile,
    options::Options,
    sandbox::program,
};

/// The number of requests for the figures of finding.
const REQUESTS: usize = 1000;
/// The number of starts of a server; the median counts.
const ROUNDS: usize = 5;
/// The number of clients that open sessions at the same time.
const HANDS: usize = 16;
/// The number of sessions tried beyond the limit.
const TOO_MANY: usize = 10_000;

/// The words of the requests.
const WORDS: &[&str] = &[
    "review", "deploy", "query", "render", "parse", "table", "image", "cloud", "server", "client",
    "report", "branch", "commit", "schema", "vector", "prompt", "invoice", "search",
];

/// The peers, as measured for 17 skills, and one of them for 735.
const PEERS: &str = "\
| skillz | 17 | 2750 | 520 | | | | 95 |
| skillz | 735 | 5450 | 680 | | | | 109 |
| skillport-mcp | 17 | 5870 | | 26 | | | 251 |";

/// Measures servers of several sizes over standard input and output, and one of many clients over
/// HTTP.
pub(crate) fn mcp(options: &Options<'_>) -> Result<()> {
    let program = program(options)?;
    let sizes = options.get("--sizes").unwrap_or("17,10000").split(',');
    let sessions = options.get("--sessions").map_or(Ok(1000), number)?;
    println!(
        "| server | skills | spawn to `initialize` ms | `tools/list` ms | first find ms | find p50 | p99 | peak MB |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for size in sizes {
        let corpus = Corpus {
            skills: number(size)?,
            from: options.get("--from").map(PathBuf::from),
            distinct: true,
            resources: true,
        };
        let library = corpus.make()?;
        let mut rounds = (0..ROUNDS)
            .map(|_| spoken(&program, &library.root))
            .collect::<Result<Vec<[f64; 6]>>>()?;
        let figures: Vec<String> = (0..6)
            .map(|figure| {
                rounds.sort_by(|one, other| one[figure].total_cmp(&other[figure]));
                format!("{:.1}", rounds[ROUNDS / 2][figure])
            })
            .collect();
        println!("| prowess | {size} | {} |", figures.join(" | "));
    }
    println!("{PEERS}\n");
    let library = Corpus { skills: 1000, from: None, distinct: true, resources: true }.make()?;
    crowded(&program, &library.root, sessions)
}

/// Starts a server, and sends it requests one after the other. The times are in milliseconds, the
/// memory in megabytes.
fn spoken(program: &Path, skills: &Path) -> Result<[f64; 6]> {
    let start = Instant::now();
    let mut server = Server::start(program, skills)?;
    server.ask(
        "initialize",
        json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "benches", "version": "1"}}),
    )?;
    let initialized = milliseconds(start.elapsed());
    let listed = timed(|| server.ask("tools/list", json!({})))?;
    let first = timed(|| server.ask("tools/call", find(0)))?;
    let mut times = (1..=REQUESTS)
        .map(|it| timed(|| server.ask("tools/call", find(it))))
        .collect::<Result<Vec<f64>>>()?;
    times.sort_by(f64::total_cmp);
    let peak = peak_kib_of(server.child.id())? as f64 / 1024.0;
    Ok([initialized, listed, first, percentile(&times, 50), percentile(&times, 99), peak])
}

/// Opens many sessions over HTTP at once, each with a stream, and more than the limit.
fn crowded(program: &Path, skills: &Path, sessions: usize) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    let mut server = Command::new(program)
        .args(["mcp", "--http", "127.0.0.1:0", "--dir"])
        .arg(skills)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut said = String::new();
    BufReader::new(server.stderr.take().context("it has a stderr")?).read_line(&mut said)?;
    let port = said.rsplit([':', '/']).nth(1).context("it says where it is")?.parse()?;
    post(port, None, "tools/call", find(0)).ok();
    let begun = Instant::now();
    let clients = open(port, sessions)?;
    let opening = milliseconds(begun.elapsed());
    ensure!(clients.len() == sessions, "only {} sessions were opened", clients.len());
    let each = sessions.div_ceil(HANDS);
    let mut times = thread::scope(|scope| {
        let hands = clients.chunks(each).map(|clients| {
            scope.spawn(|| {
                let asked = clients.iter().enumerate().map(|(number, (session, _))| {
                    timed(|| {
                        let (status, _) = post(port, Some(session), "tools/call", find(number))?;
                        ensure!(status == 200, "a session was told {status}");
                        Ok(())
                    })
                });
                asked.collect::<Result<Vec<f64>>>()
            })
        });
        let hands: Vec<_> = hands.collect();
        let asked = hands.into_iter().map(|it| it.join().expect("nobody panics"));
        asked.collect::<Result<Vec<Vec<f64>>>>()
    })?
    .concat();
    times.sort_by(f64::total_cmp);
    let peak = peak_kib_of(server.id())? as f64 / 1024.0;
    let more = open(port, TOO_MANY - sessions)?.len();
    let (status, _) = post(port, Some(&clients[0].0), "tools/call", find(1))?;
    let full = peak_kib_of(server.id())? as f64 / 1024.0;
    println!(
        "| sessions at once | opening all ms | find p50 ms | p99 | peak MB | of {TOO_MANY} open | peak MB | the first is told |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    let (p50, p99) = (percentile(&times, 50), percentile(&times, 99));
    let all = sessions + more;
    println!(
        "| {sessions} | {opening:.0} | {p50:.1} | {p99:.1} | {peak:.0} | {all} | {full:.0} | {status} |"
    );
    server.kill()?;
    server.wait()?;
    Ok(())
}

/// Opens sessions with a stream each, up to the limit.
fn open(port: u16, sessions: usize) -> Result<Vec<(String, TcpStream)>> {
    thread::scope(|scope| {
        let hands = (0..HANDS).map(|hand| {
            let own = sessions / HANDS + usize::from(hand < sessions % HANDS);
            scope.spawn(move || {
                let mut clients = Vec::new();
                for _ in 0..own {
                    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                        "clientInfo": {"name": "benches", "version": "1"}});
                    let (status, head) = post(port, None, "initialize", params)?;
                    let session = head.lines().find_map(|it| it.strip_prefix("mcp-session-id: "));
                    let Some(session) = session.filter(|_| status == 200) else { continue };
                    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
                    write!(stream, "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n")?;
                    stream.read_exact(&mut [0; 15])?;
                    clients.push((session.to_owned(), stream));
                }
                Ok(clients)
            })
        });
        let hands: Vec<_> = hands.collect();
        let opened = hands.into_iter().map(|it| it.join().expect("nobody panics"));
        Ok(opened.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    })
}

/// Posts one message, and returns the status and the head of the answer.
fn post(port: u16, session: Option<&str>, method: &str, params: Json) -> Result<(u16, String)> {
    let body = message(1, method, &params);
    let session = session.map(|it| format!("Mcp-Session-Id: {it}\r\n")).unwrap_or_default();
    let length = body.len();
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{session}Content-Length: {length}\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    // A server that refuses at once may not have read the request.
    let _ = stream.read_to_string(&mut answer);
    let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
    Ok((status, answer))
}

/// A server on standard input and output.
struct Server {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    asked: usize,
}

impl Server {
    fn start(program: &Path, skills: &Path) -> Result<Self> {
        let mut child = Command::new(program)
            .args(["mcp", "--dir"])
            .arg(skills)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = child.stdin.take().context("it has a stdin")?;
        let stdout = BufReader::new(child.stdout.take().context("it has a stdout")?);
        Ok(Self { child, stdin, stdout, asked: 0 })
    }

    fn ask(&mut self, method: &str, params: Json) -> Result<()> {
        self.asked += 1;
        writeln!(self.stdin, "{}", message(self.asked, method, &params))?;
        let mut answer = String::new();
        self.stdout.read_line(&mut answer)?;
        ensure!(answer.contains("\"result\""), "{method} was answered with {answer}");
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn message(id: usize, method: &str, params: &Json) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn find(number: usize) -> Json {
    let word = |step: usize| WORDS[number / step % WORDS.len()];
    let query = format!("how do I {} a {}", word(1), word(WORDS.len()));
    json!({"name": "find_skills", "arguments": {"query": query}})
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(milliseconds(start.elapsed()))
}
