//! The traffic of `CONNECT`: TLS for the requested host, and nothing else.

use std::io;

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    time::{Duration, timeout},
};

use super::{
    hello::{Fault, Hello},
    target::Target,
    upstream::Upstream,
};

/// The TLS alert for a client that asks for another server: `unrecognized_name`.
const ALERT: [u8; 7] = [21, 3, 1, 0, 2, 2, 112];

/// Passes bytes both ways until one side ends, or both are idle for too long.
pub(super) async fn relay(
    client: Upgraded,
    target: Target,
    mut upstream: Upstream,
    idle: Duration,
) -> io::Result<()> {
    let mut client = TokioIo::new(client);
    let meter = upstream.meter();
    let hello = match timeout(idle, read_hello(&mut client, &target)).await {
        Ok(Ok(hello)) => hello,
        Ok(Err(why)) => {
            meter.record.refuse(&why);
            client.write_all(&ALERT).await?;
            return client.shutdown().await;
        }
        Err(_) => {
            meter.record.refuse("no TLS handshake was received in time");
            return Ok(());
        }
    };
    upstream.write_all(&hello).await?;
    tokio::select! {
        passed = copy_bidirectional(&mut client, &mut upstream) => passed.map(drop),
        () = meter.wait_idle(idle) => {
            meter.record.refuse("the connection was idle for too long");
            Ok(())
        }
    }
}

/// Reads the hello of a client, if it is for the requested host.
async fn read_hello(client: &mut TokioIo<Upgraded>, target: &Target) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    loop {
        match Hello::read(&bytes) {
            Hello::Partial => {}
            Hello::Refused(fault) => return Err(fault.to_string()),
            Hello::Name(name) if name.as_deref() == target.name() => return Ok(bytes),
            Hello::Name(None) => return Err("the TLS handshake names no server".to_owned()),
            Hello::Name(Some(name)) => {
                let host = &target.host;
                return Err(format!("the TLS handshake names the server `{name}`, not `{host}`"));
            }
        }
        match client.read_buf(&mut bytes).await {
            Ok(0) | Err(_) => return Err(Fault::NotTls.to_string()),
            Ok(_) => {}
        }
    }
}
