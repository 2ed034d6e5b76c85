//! The server: its address, its start, and its end.

use std::fs::File;
use std::io::{self, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use windlass_app::context::CommandContext;
use windlass_app::project::Project;
use windlass_app::web_access::AccessRecords;
use windlass_app::{Failure, FailureCode, execution, hints};
use windlass_engine::Seq;
use windlass_process::{OwnerLock, RunControl};
use windlass_store::Store;

use crate::connection::{CONNECTION_LIMITS, accept_connections};
use crate::pool::StorePool;
use crate::routes::build_router;
use crate::state::{ConfiguredMask, ServerLog, ServerOptions, ServerState, TlsFiles};
use crate::tool_route::build_tool_route;

/// The most tests of hooks at a time.
const MAX_HOOK_TESTS: usize = 2;
/// The threads that read the store and run commands.
const MAX_BLOCKING_THREADS: usize = 16;
/// The interval at which the watch of the log looks whether the server ends.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// A handle that ends a server.
#[derive(Clone)]
pub struct WebServerHandle {
    web: Arc<watch::Sender<bool>>,
    tools: windlass_mcp::StopHandle,
    control: RunControl,
}

impl WebServerHandle {
    pub fn stop_server(&self) {
        self.tools.stop_server();
        self.control.cancel_runs();
        self.web.send_replace(true);
    }
}

/// A server that listens, before it serves.
pub struct WebServer {
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    state: Arc<ServerState>,
    head: watch::Sender<Seq>,
    /// Shows to other processes that the page is served.
    owner: OwnerLock,
    stop: (WebServerHandle, watch::Receiver<bool>),
}

impl WebServer {
    /// Listens at an address. Nothing is served yet.
    pub fn bind(context: &CommandContext, options: ServerOptions) -> Result<Self, Failure> {
        check_exposure(&options)?;
        let acceptor = options.tls.as_ref().map(load_certificate).transpose()?;
        let mut context = context.clone();
        let project = context.find_project()?;
        context.project = Some(project.root.clone());
        let pool = Arc::new(StorePool::new(context.clone()));
        let opened = pool.open_project()?;
        let head = opened.store.head().map_err(hints::store_failure)?;
        let access = AccessRecords::for_project(&project)?;
        access.check_unserved()?;
        let owner = execution::acquire_owner_lock(&project)?;
        let addresses = match options.address {
            Some(address) => vec![address],
            None => [access.find_last_port()?.unwrap_or(0), 0].map(|port| (Ipv4Addr::LOCALHOST, port).into()).to_vec(),
        };
        let (listener, local) = listen_at(&addresses).map_err(|error| listen_failure(addresses[0], &error))?;
        let (sender, receiver) = watch::channel(head);
        let control = RunControl::new();
        let tool_stop = windlass_mcp::StopHandle::new(control.clone());
        let hosts = ["localhost".to_owned(), local.ip().to_string()].into_iter().chain(options.hosts.iter().cloned());
        let log = ServerLog::new(context.front_end.clone());
        let state = ServerState {
            tools: build_tool_route(context, hosts.collect(), tool_stop.clone()),
            pool,
            access,
            options,
            local,
            project: describe_project(&project),
            mask: ConfiguredMask::for_project(&project),
            control: control.clone(),
            hook_tests: Arc::new(Semaphore::new(MAX_HOOK_TESTS)),
            head: receiver,
            log,
        };
        let (stop, stopped) = watch::channel(false);
        let stop = WebServerHandle { web: Arc::new(stop), tools: tool_stop, control };
        let server = Self { listener, acceptor, state: Arc::new(state), head: sender, owner, stop: (stop, stopped) };
        server.access().note_start(&server.url(), server.state.local.port(), server.owner.name())?;
        Ok(server)
    }

    /// Returns the address of the page, without a path.
    pub fn url(&self) -> String {
        let scheme = if self.state.is_encrypted() { "https" } else { "http" };
        match self.state.options.hosts.first() {
            Some(host) if self.state.options.behind_proxy => format!("{scheme}://{host}"),
            Some(host) => format!("{scheme}://{host}:{}", self.state.local.port()),
            None => format!("{scheme}://{}", self.state.local),
        }
    }

    pub fn access(&self) -> &AccessRecords {
        &self.state.access
    }

    pub fn stop_handle(&self) -> WebServerHandle {
        self.stop.0.clone()
    }

    /// Serves until the stop handle ends it.
    pub fn serve_page(self) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::new(FailureCode::System, "cannot serve the page").with_cause(error);
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(MAX_BLOCKING_THREADS)
            .enable_all()
            .build()
            .map_err(failed)?;
        let access = self.state.access.clone();
        let watch = LogWatch { pool: self.state.pool.clone(), head: self.head, stopped: self.stop.1.clone() };
        let watching = thread::Builder::new().name("log".to_owned()).spawn(move || watch.run()).map_err(failed)?;
        let router = build_router(self.state);
        let serving = accept_connections(self.listener, self.acceptor, router, CONNECTION_LIMITS, self.stop.1);
        let served = runtime.block_on(serving);
        drop(self.stop.0);
        // Open streams end with the runtime.
        runtime.shutdown_timeout(Duration::from_millis(500));
        let _ = watching.join();
        access.note_end(self.owner.name())?;
        served.map_err(failed)
    }
}

/// Returns the name and the path of a project.
fn describe_project(project: &Project) -> (String, String) {
    let name = project.root.file_name().map_or_else(|| "/".to_owned(), |name| name.to_string_lossy().into_owned());
    (name, project.root.to_string_lossy().into_owned())
}

/// The thread that watches the log for all streams.
struct LogWatch {
    pool: Arc<StorePool>,
    head: watch::Sender<Seq>,
    stopped: watch::Receiver<bool>,
}

impl LogWatch {
    fn run(self) {
        while !*self.stopped.borrow() {
            // A store that fails or was replaced is opened again.
            if self.watch_store().is_err() {
                thread::sleep(WATCH_INTERVAL);
            }
        }
    }

    /// Watches one store, until it is not the project's any more or the server ends.
    fn watch_store(&self) -> Result<(), Failure> {
        let (opened, identity) = (self.pool.open_project()?, self.pool.file_identity());
        while !*self.stopped.borrow() && self.pool.file_identity() == identity {
            let newest = opened.store.head().map_err(hints::store_failure)?;
            if newest != *self.head.borrow() {
                self.head.send_replace(newest);
            }
            opened.store.wait_for_events(newest, WATCH_INTERVAL).map_err(hints::store_failure)?;
        }
        Ok(())
    }
}

/// Listens at the first address that is free.
fn listen_at(addresses: &[SocketAddr]) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(addresses)?;
    listener.set_nonblocking(true)?;
    let local = listener.local_addr()?;
    Ok((listener, local))
}

/// Refuses an address that other machines reach without TLS.
fn check_exposure(options: &ServerOptions) -> Result<(), Failure> {
    let is_encrypted = options.tls.is_some() || options.behind_proxy;
    if !options.hosts.is_empty() && !is_encrypted {
        return Err(Failure::new(FailureCode::Usage, "cannot serve other names without TLS").with_hint(
            "give --tls-cert and --tls-key with --host, or --behind-proxy if a proxy in front of it has TLS",
        ));
    }
    match options.address.filter(|address| !address.ip().is_loopback()) {
        Some(address) if address.ip().is_unspecified() && options.hosts.is_empty() && is_encrypted => {
            Err(Failure::new(FailureCode::Usage, format!("cannot serve {address} without a name"))
                .with_hint("--host NAME says under which name people open the page"))
        }
        Some(address) if !is_encrypted => {
            let what = format!("cannot serve {address} without TLS: other machines can reach it");
            Err(Failure::new(FailureCode::Usage, what)
                .with_hint("give --tls-cert and --tls-key, or --behind-proxy if a proxy in front of it has TLS"))
        }
        _ => Ok(()),
    }
}

fn load_certificate(files: &TlsFiles) -> Result<TlsAcceptor, Failure> {
    let failure = |file: &PathBuf, cause: &dyn std::fmt::Display| {
        Failure::new(FailureCode::Usage, format!("cannot use `{}`", file.display()))
            .with_cause(cause)
            .with_hint("it has to be a PEM file; `openssl x509 -in FILE -text` shows a certificate")
    };
    let read = |file: &PathBuf| -> Result<BufReader<File>, Failure> {
        windlass_process::file::open_regular_file(file).map(BufReader::new).map_err(|error| failure(file, &error))
    };
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_reader_iter(read(&files.certificate)?).collect();
    let certificates = certificates.map_err(|error| failure(&files.certificate, &error))?;
    let key = PrivateKeyDer::from_pem_reader(read(&files.key)?).map_err(|error| failure(&files.key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(|error| failure(&files.certificate, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn listen_failure(address: SocketAddr, error: &io::Error) -> Failure {
    let failure = Failure::new(FailureCode::System, format!("cannot listen at {address}")).with_cause(error);
    match error.kind() {
        io::ErrorKind::AddrInUse => failure.with_hint("another program listens there; give another port, or 0 for any"),
        io::ErrorKind::PermissionDenied => failure.with_hint("ports below 1024 need privileges; give a higher one"),
        _ => failure.with_hint("give an address of this machine, such as 127.0.0.1:8137"),
    }
}
