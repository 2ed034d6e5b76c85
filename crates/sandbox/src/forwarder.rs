//! A program inside a sandbox with a network of its own, which passes connections to the proxy outside.
//!
//! ```text
//!   client ─► 127.0.0.1:PORT in the sandbox ─► Unix socket ─► NetworkProxy of the caller
//! ```
//!
//! It decides nothing: the proxy checks each connection.

use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::background_process::{report_readiness, start_background_process};
use crate::proxy::stream::{ProxyStream, join_streams};

/// The hidden command of the program that runs a forwarder. Its only argument is a [`ForwarderSetup`] in JSON.
pub const FORWARD_COMMAND: &str = "sandbox-forward";

/// The maximum number of connections at the same time. More of them wait.
const MAX_CONNECTIONS: usize = 512;

/// How long the forwarder waits when there are too many connections or open files.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Where a forwarder listens, and where it passes connections to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForwarderSetup {
    /// The Unix socket of the proxy.
    pub socket: PathBuf,
    /// A port of 127.0.0.1.
    pub port: u16,
}

/// Passes connections on until the process ends. `ready` is called when clients can connect.
pub fn run_forwarder(setup: &ForwarderSetup, ready: impl FnOnce()) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, setup.port))?;
    ready();
    let connections = Arc::new(());
    loop {
        if Arc::strong_count(&connections) > MAX_CONNECTIONS {
            thread::sleep(ACCEPT_RETRY_INTERVAL);
            continue;
        }
        let Ok((client, _)) = listener.accept() else {
            thread::sleep(ACCEPT_RETRY_INTERVAL);
            continue;
        };
        let (socket, connection) = (setup.socket.clone(), connections.clone());
        // If there is no thread, the connection closes.
        _ = thread::Builder::new().name("forwarder".into()).spawn(move || {
            let _connection = connection;
            _ = forward_connection(client, &socket);
        });
    }
}

fn forward_connection(client: TcpStream, socket: &std::path::Path) -> io::Result<()> {
    let (client, proxy) = (ProxyStream::try_from(client)?, ProxyStream::try_from(UnixStream::connect(socket)?)?);
    let outcome = join_streams(&client, &proxy, || Ok(()));
    client.shutdown(Shutdown::Both);
    outcome
}

/// Runs the hidden command: a forwarder that says on its standard output that it listens, and then closes it.
pub fn run_forward_command(setup: &str) -> io::Result<()> {
    let setup: ForwarderSetup = serde_json::from_str(setup)?;
    run_forwarder(&setup, report_readiness)
}

/// Starts a forwarder as a child of this program, and returns when it listens. It stays behind when this process becomes another
/// program, and ends with the sandbox.
pub fn start_forwarder(setup: &ForwarderSetup) -> io::Result<()> {
    start_background_process(FORWARD_COMMAND, &serde_json::to_string(setup)?, Stdio::null())
}
