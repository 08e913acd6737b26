//! Serving over standard input and output: one client, until it leaves.

use std::io;

use rmcp::{
    ServiceExt as _,
    service::ServerInitializeError,
    transport::{async_rw::AsyncRwTransport, io::stdio_pipes},
};

use crate::server::Server;

/// How long a message may be.
const MAX_LINE: usize = 4 * 1024 * 1024;

/// The server ended otherwise than by its client's leaving.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The client and the server did not come to terms.
    #[error("the client did not begin as the protocol asks")]
    Beginning(#[source] Box<ServerInitializeError>),
    /// The server's task broke down.
    #[error("the server broke down")]
    Broken(#[from] io::Error),
}

/// Serves one client over standard input and output, until it leaves.
pub async fn serve_stdio(server: Server) -> Result<(), ServeError> {
    let (input, output) = stdio_pipes();
    let transport = AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_LINE);
    let running = match server.serve(transport).await {
        Ok(running) => running,
        // Whoever looks in and goes has done nothing wrong.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(ServeError::Beginning(Box::new(error))),
    };
    running.waiting().await.map_err(io::Error::other)?;
    Ok(())
}
