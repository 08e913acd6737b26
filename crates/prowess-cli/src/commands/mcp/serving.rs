//! The transport and the access control of the server.

use std::{
    env,
    io::{self, IsTerminal as _},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use anyhow::Result;
use prowess_mcp::server::{Http, HttpServer, ServeError, SkillServer, serve_stdio};
use prowess_runtime::text::hex;
use tokio::runtime::Runtime;

use crate::{
    cli_error::CliError, host::stop_signal, key_file::read_key_file, printer::Printer,
    sys::raise_file_limit,
};

/// The default address.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PORT: u16 = 8765;
/// The variable with the token.
const TOKEN: &str = "PROWESS_MCP_TOKEN";
/// The most concurrent readers of files.
const READERS: usize = 32;
/// The files that may be open beside connections.
const OTHERS: u64 = 256;

/// The options of serving.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "HTTP")]
pub(crate) struct ServeArgs {
    /// Serve any number of clients over HTTP instead [default address: 127.0.0.1:8765]
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1", value_parser = parse_address)]
    pub(crate) http: Option<SocketAddr>,
    /// File with the token that clients must send, unless PROWESS_MCP_TOKEN is set. Without a token, everyone on
    /// this machine is served; with `--run`, a token is generated and printed
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
    /// Accept requests from this website, such as `https://example.com` or `http://localhost:6274`; repeatable
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,
    /// Accept requests to this host name; repeatable
    #[arg(long, value_name = "NAME", requires = "http")]
    allow_host: Vec<String>,
}

impl ServeArgs {
    /// Serves until the client leaves or the program is ended. A server that runs skills does so
    /// for holders of the token, and generates one if none is set.
    pub(crate) fn serve(
        &self,
        server: SkillServer,
        runs: bool,
        printer: &mut Printer,
    ) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(READERS)
            .enable_all()
            .build()?;
        if self.http.is_none() && io::stdin().is_terminal() {
            printer.note("waiting for a client on standard input, until Ctrl-C; `prowess mcp install` registers this server in a client");
        }
        let served = match self.http {
            None => {
                runtime.block_on(async { anyhow::Ok(serve_stdio(server, stop_signal()?).await?) })
            }
            Some(address) => self.serve_http(address, server, runs, &runtime, printer),
        };
        // Open requests must not keep the program from ending.
        runtime.shutdown_background();
        served
    }

    fn serve_http(
        &self,
        address: SocketAddr,
        server: SkillServer,
        runs: bool,
        runtime: &Runtime,
        printer: &mut Printer,
    ) -> Result<()> {
        let given = self.token()?;
        let is_made = runs && given.is_none() && address.ip().is_loopback();
        let token = if is_made { Some(generate_token()?) } else { given };
        let http = Http {
            token: token.clone(),
            origins: self.allow_origin.clone(),
            hosts: self.allow_host.clone(),
            ..Http::default()
        };
        let http = Http { connections: http.connections.min(connection_limit()), ..http };
        runtime.block_on(async {
            let stop = stop_signal()?;
            let http = HttpServer::bind(address, http).await.map_err(|error| match error {
                ServeError::Open(_) => CliError::new(error.to_string())
                    .hint(format!("use `--token-file FILE`, or set `{TOKEN}`"))
                    .into(),
                error => anyhow::Error::new(error),
            })?;
            let url = http.url();
            printer.note(&format!("serving at {url}"));
            if let Some(token) = token.filter(|_| is_made) {
                printer.note(&format!(
                    "`--run` needs a token, so one was generated for this run; use \
                     `--token-file` or `{TOKEN}` for a permanent one. Add a client with:"
                ));
                let header = format!("--header \"Authorization: Bearer {token}\"");
                printer.stderr_line(&format!(
                    "claude mcp add --transport http prowess {url} {header}"
                ));
                // The server is of no use without the token, so it is printed with `-q` too.
                printer.stderr_raw(format!("token: {token}\n").as_bytes());
            }
            http.serve(server, stop).await;
            Ok(())
        })
    }

    fn token(&self) -> Result<Option<String>, CliError> {
        let Some(path) = &self.token_file else {
            let set = env::var(TOKEN).ok().map(|it| it.trim().to_owned());
            return Ok(set.filter(|it| !it.is_empty()));
        };
        read_key_file(path).map(Some).map_err(|error| {
            let fault = CliError::new(format!("`{}`: {error}", path.display()));
            error.hint(path).into_iter().fold(fault, CliError::hint)
        })
    }
}

/// Generates a random token.
fn generate_token() -> Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes)?;
    Ok(hex(bytes))
}

/// Returns the number of connections that may be open. Each is an open file, which the system
/// limits.
fn connection_limit() -> usize {
    let most = raise_file_limit().saturating_sub(OTHERS).max(OTHERS);
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// Parses an address: `8765`, `127.0.0.1`, `localhost:8765`, `[::1]:8765`.
fn parse_address(typed: &str) -> Result<SocketAddr, String> {
    let named = typed.strip_prefix("localhost").map(|rest| format!("{ADDRESS}{rest}"));
    let typed = named.as_deref().unwrap_or(typed);
    if let Ok(port) = typed.trim_start_matches(':').parse() {
        return Ok(SocketAddr::new(ADDRESS, port));
    }
    let bare = typed.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(typed);
    if let Ok(address) = bare.parse() {
        return Ok(SocketAddr::new(address, PORT));
    }
    typed.parse().map_err(|_| "must be an address and a port, such as 127.0.0.1:8765".to_owned())
}
