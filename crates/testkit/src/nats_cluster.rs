//! Three NATS servers that keep streams together.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::nats_server::{NatsServer, POLL_INTERVAL};

const SERVER_COUNT: usize = 3;
/// How long servers may take to elect a leader.
const ELECTION_TIMEOUT: Duration = Duration::from_secs(60);

/// A cluster. Dropping it ends its processes.
pub struct NatsCluster {
    servers: Vec<ClusterMember>,
}

/// A server of a cluster. Its name is its index.
struct ClusterMember {
    server: NatsServer,
    /// The port of its reports over HTTP.
    report_port: u16,
}

impl NatsCluster {
    /// Starts three servers, and waits until they agree; none if the server is not installed. They do not sync each message: a
    /// killed process loses nothing that it has written.
    pub fn start() -> Option<Self> {
        Self::start_with("")
    }

    /// Starts three servers with lines of a configuration file, such as `jetstream { sync_interval: always }`.
    pub fn start_with(configuration: &str) -> Option<Self> {
        let ports = find_free_ports(SERVER_COUNT);
        let routes: Vec<String> = ports.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let mut servers = Vec::new();
        for (index, route) in routes.iter().enumerate() {
            let configuration = format!("server_name: n{index}\n{configuration}\n");
            let arguments = ["--cluster_name", "windlass", "--cluster", route, "--routes", &routes.join(",")];
            let mut arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
            arguments.extend(["--http_port", "-1", "--jetstream"].map(str::to_owned));
            let mut server = NatsServer::start_on(0, &configuration, &arguments)?;
            let report_port = server.await_port("monitoring");
            servers.push(ClusterMember { server, report_port });
        }
        let cluster = Self { servers };
        cluster.await_health();
        Some(cluster)
    }

    /// Returns the address of a project's log on these servers.
    pub fn log_address(&self, project: &str) -> String {
        let servers: Vec<_> = self.servers.iter().map(|member| format!("127.0.0.1:{}", member.server.port())).collect();
        format!("nats://{}/{project}", servers.join(","))
    }

    /// Returns the index of the server that leads a stream. Waits until there is one.
    pub fn find_leader(&self, stream: &str) -> usize {
        let began = Instant::now();
        loop {
            for member in &self.servers {
                let report = fetch_report(member.report_port, "/jsz?streams=true").unwrap_or_default();
                let streams = report["account_details"][0]["stream_detail"].as_array().cloned().unwrap_or_default();
                let found = streams.iter().find(|found| found["name"] == stream);
                let leader =
                    found.and_then(|found| found["cluster"]["leader"].as_str()?.strip_prefix('n')?.parse().ok());
                if let Some(leader) = leader {
                    return leader;
                }
            }
            assert!(began.elapsed() < ELECTION_TIMEOUT, "no server leads {stream}");
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Kills a server as `kill -9` does.
    pub fn kill_server(&mut self, index: usize) {
        self.servers[index].server.stop();
    }

    /// Starts a killed server again, and waits until it has what it missed.
    pub fn restart_server(&mut self, index: usize) {
        self.restart_servers(&[index]);
    }

    /// Starts killed servers again, and waits until all servers have what they missed.
    pub fn restart_servers(&mut self, indices: &[usize]) {
        for index in indices {
            let member = &mut self.servers[*index];
            member.server.restart();
            member.report_port = member.server.await_port("monitoring");
        }
        self.await_health();
    }

    /// Returns the ports of clients.
    pub fn ports(&self) -> Vec<u16> {
        self.servers.iter().map(|member| member.server.port()).collect()
    }

    /// Waits until all servers have what they should have, and the leader of the cluster hears from all of them.
    fn await_health(&self) {
        let began = Instant::now();
        while !self.servers.iter().all(ClusterMember::is_healthy)
            || !self.servers.iter().any(ClusterMember::hears_others)
        {
            assert!(began.elapsed() < ELECTION_TIMEOUT, "the servers do not agree");
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl ClusterMember {
    fn is_healthy(&self) -> bool {
        fetch_report(self.report_port, "/healthz").is_some_and(|report| report["status"] == "ok")
    }

    /// Returns whether the server leads the cluster and hears from the other ones.
    fn hears_others(&self) -> bool {
        let report = fetch_report(self.report_port, "/jsz").unwrap_or_default();
        let others = report["meta_cluster"]["replicas"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_there = |other: &&Value| other["current"] == true && other["offline"] != true;
        others.iter().filter(is_there).count() == SERVER_COUNT - 1
    }
}

/// Returns ports that were free just now.
pub fn find_free_ports(count: usize) -> Vec<u16> {
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("this machine has free ports");
    let listeners: Vec<_> = (0..count).map(|_| bind()).collect();
    listeners.iter().map(|listener| listener.local_addr().expect("it is bound").port()).collect()
}

/// Reads a report of a server, if it gives one.
fn fetch_report(port: u16, path: &str) -> Option<Value> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    serde_json::from_str(body).ok()
}
