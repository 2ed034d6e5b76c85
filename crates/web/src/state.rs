//! What all requests share: the project, the logins, and the way in which the server is reached.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use axum::extract::State;
use tokio::sync::{Semaphore, watch};
use windlass_app::project::Project;
use windlass_app::web_access::{AccessRecords, PageViewer};
use windlass_app::{Failure, FrontEnd, Notice, runner_settings};
use windlass_config::Config;
use windlass_engine::Seq;
use windlass_hooks::SecretMask;
use windlass_process::RunControl;

use crate::pool::StorePool;
use crate::tool_route::ToolRoute;

/// The files of a TLS certificate and its key, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The address to listen at; without one, the port of the last time or any free one, for this machine only.
    pub address: Option<SocketAddr>,
    pub tls: Option<TlsFiles>,
    /// A proxy in front of the server speaks TLS.
    pub behind_proxy: bool,
    /// Further names under which the page is opened.
    pub hosts: Vec<String>,
}

/// The mask of the configured secrets. It follows the configuration; a broken one leaves it as it is.
pub struct ConfiguredMask {
    project: Project,
    known: Mutex<(Option<SystemTime>, Arc<SecretMask>)>,
}

impl ConfiguredMask {
    pub fn for_project(project: &Project) -> Self {
        Self { project: project.clone(), known: Mutex::new((None, Arc::default())) }
    }

    fn current_mask(&self) -> Arc<SecretMask> {
        let changed = self.project.config_file().metadata().and_then(|found| found.modified()).ok();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != changed
            && let Ok(config) = Config::load(&self.project.root)
        {
            *known = (changed, Arc::new(runner_settings::build_secret_mask(&config)));
        }
        known.1.clone()
    }
}

/// The state of the server as a handler takes it.
pub type SharedState = State<Arc<ServerState>>;

/// What requests share.
pub struct ServerState {
    pub(crate) pool: Arc<StorePool>,
    pub(crate) access: AccessRecords,
    pub(crate) options: ServerOptions,
    pub(crate) local: SocketAddr,
    /// The name and the path of the project.
    pub(crate) project: (String, String),
    pub(crate) mask: ConfiguredMask,
    /// Cancelled when the server ends, with the programs of its requests.
    pub(crate) control: RunControl,
    pub(crate) hook_tests: Arc<Semaphore>,
    pub(crate) head: watch::Receiver<Seq>,
    pub(crate) tools: ToolRoute,
    pub(crate) log: ServerLog,
}

/// The output of the server.
pub struct ServerLog {
    front_end: Arc<dyn FrontEnd>,
    /// The last failure, so that many requests show it once.
    shown: Mutex<String>,
}

impl ServerLog {
    pub fn new(front_end: Arc<dyn FrontEnd>) -> Self {
        Self { front_end, shown: Mutex::default() }
    }

    fn show_failure(&self, failure: &Failure) {
        let text = format!("{failure}: {}", failure.causes.join(": "));
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if *shown != text {
            self.front_end.show_notice(Notice::Failure(failure));
            *shown = text;
        }
    }
}

impl ServerState {
    pub fn tools(&self) -> &ToolRoute {
        &self.tools
    }

    pub fn pool(&self) -> &Arc<StorePool> {
        &self.pool
    }

    pub fn access(&self) -> &AccessRecords {
        &self.access
    }

    /// Finds the viewer with a cookie or a token. This reads a file, and shows in the output of the server why it cannot be read.
    pub fn find_viewer(&self, secret: &str) -> Result<Option<PageViewer>, Failure> {
        self.access.find_viewer(secret).inspect_err(|failure| self.log.show_failure(failure))
    }

    /// Returns the mask of the secrets that the configuration names now. This reads a file.
    pub fn mask(&self) -> Arc<SecretMask> {
        self.mask.current_mask()
    }

    /// Returns a watch of the last position in the log.
    pub fn watch_head(&self) -> watch::Receiver<Seq> {
        self.head.clone()
    }

    /// Returns whether the page is opened over TLS.
    pub fn is_encrypted(&self) -> bool {
        self.options.tls.is_some() || self.options.behind_proxy
    }

    /// Returns whether the page may be opened under a name, with or without a port.
    pub fn is_known_host(&self, host: &str) -> bool {
        let name = host.strip_suffix(&format!(":{}", self.local.port())).unwrap_or(host);
        let is_given = self.options.hosts.iter().any(|known| known.eq_ignore_ascii_case(name) || known == host);
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        is_given || name.eq_ignore_ascii_case("localhost") || address == Some(self.local.ip())
    }

    /// Returns whether an origin is the page's own.
    pub fn is_own_origin(&self, origin: &str) -> bool {
        let (scheme, default_port) = if self.is_encrypted() { ("https://", 443) } else { ("http://", 80) };
        let port = self.local.port();
        // A proxy may have any port.
        let is_own_port =
            |host: &str| self.options.behind_proxy || port == default_port || host.ends_with(&format!(":{port}"));
        origin.strip_prefix(scheme).is_some_and(|host| self.is_known_host(host) && is_own_port(host))
    }
}
