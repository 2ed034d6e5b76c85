//! A connection to a server of PostgreSQL: how it opens, how it fails, and queries.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, Row};
use windlass_store::SequencerError;

use super::log::NEWS_CHANNEL;
use super::password_file::find_login;
use super::tls::PostgresTlsConnector;
use crate::failure::{is_tls_failure, refused, unknown_outcome, unreachable};
use crate::service::FleetAccess;

/// How long a query may take, and how long connecting may take with all servers.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long connecting to one server may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A parameter of a query, with its type.
pub type QueryParameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// A connection that was opened.
pub struct PostgresConnection {
    client: Client,
    /// Changes with each message of the project, once the connection listens.
    pub news: watch::Receiver<()>,
    pub is_listening: bool,
    /// The end of the log at the last read that began after the connection listened. None if it has to be read without news.
    pub known_end: Option<u64>,
    /// Whether the log is known to exist.
    pub has_seen_log: bool,
    /// A query was not answered in time, the server has ended the session, or it takes no messages any more.
    is_broken: AtomicBool,
}

/// A query that failed.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    #[error("the server does not answer within {REQUEST_TIMEOUT:?}")]
    NoAnswer,
    #[error("{}", describe_failure(.0))]
    Failure(tokio_postgres::Error),
}

impl PostgresConnection {
    pub async fn open(access: &FleetAccess) -> Result<Self, SequencerError> {
        let config = prepare_config(access)?;
        let is_encrypted = config.get_ssl_mode() == SslMode::Require;
        let tls = PostgresTlsConnector::load(is_encrypted, access.certificates.as_deref()).map_err(refused)?;
        let connected = tokio::time::timeout(REQUEST_TIMEOUT, config.connect(tls)).await;
        let connected = connected.map_err(|_| unreachable("no server answers in time"))?;
        let (client, mut connection) = connected.map_err(connect_error)?;
        let (sender, news) = watch::channel(());
        let project = access.address.project().to_owned();
        tokio::spawn(async move {
            // It ends with the client, or when the connection breaks.
            while let Some(Ok(message)) = std::future::poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notification(note) = message
                    && note.channel() == NEWS_CHANNEL
                    && note.payload() == project
                {
                    sender.send_replace(());
                }
            }
        });
        let is_broken = AtomicBool::new(false);
        Ok(Self { client, news, is_listening: false, known_end: None, has_seen_log: false, is_broken })
    }

    /// Returns whether the connection can be used.
    pub fn is_open(&self) -> bool {
        !self.client.is_closed() && !self.is_broken.load(Ordering::Relaxed)
    }

    /// Runs one statement in a transaction of its own.
    pub async fn run_query(&self, query: &str, parameters: &[QueryParameter<'_>]) -> Result<Vec<Row>, QueryError> {
        self.await_answer(self.client.query_typed(query, parameters)).await
    }

    /// Runs statements without parameters, all in one transaction.
    pub async fn run_statements(&self, statements: &str) -> Result<(), QueryError> {
        self.await_answer(self.client.batch_execute(statements)).await
    }

    async fn await_answer<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, QueryError> {
        let answer = tokio::time::timeout(REQUEST_TIMEOUT, answer).await;
        let outcome = answer.map_or(Err(QueryError::NoAnswer), |answer| answer.map_err(QueryError::Failure));
        if outcome.as_ref().is_err_and(|error| !error.is_refusal() || error.is_read_only()) {
            self.is_broken.store(true, Ordering::Relaxed);
        }
        outcome
    }
}

impl QueryError {
    fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Failure(error) => error.code(),
            Self::NoAnswer => None,
        }
    }

    /// Returns whether the tables are not there.
    pub fn is_missing_table(&self) -> bool {
        [Some(&SqlState::UNDEFINED_TABLE), Some(&SqlState::UNDEFINED_FUNCTION)].contains(&self.code())
    }

    /// Returns whether the tables or the row of the project are not there.
    pub fn is_missing_log(&self) -> bool {
        self.is_missing_table() || self.code() == Some(&SqlState::FOREIGN_KEY_VIOLATION)
    }

    /// Returns whether the server refused the statement, which then had no effect. A server that ends a session is no refusal.
    fn is_refusal(&self) -> bool {
        self.code().is_some_and(|code| !["08", "57", "58", "XX"].iter().any(|class| code.code().starts_with(class)))
    }

    /// Returns whether the same statement may succeed soon: another server becomes the primary one, or two transactions met.
    fn is_passing(&self) -> bool {
        self.is_read_only() || self.code().is_some_and(|code| code.code().starts_with("40"))
    }

    /// Returns whether the server follows another one by now.
    fn is_read_only(&self) -> bool {
        self.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
    }

    /// Returns the error of a query that a caller may repeat.
    pub fn of_request(self) -> SequencerError {
        if self.is_refusal() && !self.is_passing() { refused(self) } else { unreachable(self) }
    }

    /// Returns the error of a message that was published.
    pub fn of_message(self) -> SequencerError {
        match self.is_refusal() {
            true if self.is_passing() => unreachable(self),
            true => refused(self),
            false => unknown_outcome(self),
        }
    }
}

fn prepare_config(access: &FleetAccess) -> Result<Config, SequencerError> {
    let address = &access.address;
    let login = find_login(access).map_err(refused)?;
    let mut config = Config::new();
    config
        .user(login.user)
        .dbname(address.database().expect("an address of PostgreSQL has a database"))
        .application_name("windlass")
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_user_timeout(REQUEST_TIMEOUT)
        // A server that only follows another one cannot take messages.
        .target_session_attrs(TargetSessionAttrs::ReadWrite);
    if let Some(password) = login.password {
        config.password(password);
    }
    for server in address.servers() {
        config.host(&server.host).port(server.port);
    }
    let is_encrypted = address.is_encrypted() || access.certificates.is_some();
    config.ssl_mode(if is_encrypted { SslMode::Require } else { SslMode::Disable });
    Ok(config)
}

fn connect_error(error: tokio_postgres::Error) -> SequencerError {
    let class = error.code().map(|code| code.code()[..2].to_owned());
    let is_refusal = match class.as_deref() {
        // Wrong credentials, no such database.
        Some("28" | "3D") => true,
        Some(_) => false,
        None => is_tls_failure(&error) || !error.is_closed() && !has_io_cause(&error),
    };
    let error = QueryError::Failure(error);
    if is_refusal { refused(error) } else { unreachable(error) }
}

fn has_io_cause(error: &tokio_postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>())
}

/// Returns the text of the server, or of the causes.
fn describe_failure(error: &tokio_postgres::Error) -> String {
    if let Some(answer) = error.as_db_error() {
        return format!("the server answers: {} ({})", answer.message(), answer.code().code());
    }
    let source = std::error::Error::source(error).map(|source| format!(": {source}"));
    format!("{error}{}", source.unwrap_or_default())
}
