//! The messages of a log in a table.

use std::time::{Duration, Instant};

use tokio_postgres::Row;
use tokio_postgres::types::Type;
use windlass_engine::Digest;
use windlass_store::{SequencedMessage, SequencerError};

use super::connection::{PostgresConnection, QueryError};
use crate::failure::{refused, unreachable};

/// The channel on which the server tells the project of a new message.
pub const NEWS_CHANNEL: &str = "windlass_log";
/// The most bytes of messages that are read at once, besides the first one.
const MAX_READ_BYTES: i64 = 8 * 1024 * 1024;

/// Creates the tables. A function takes the lock of a project after the whole message is on the server, and each of its statements
/// sees what was committed before.
const CREATE_TABLES: &str = "
SELECT pg_advisory_xact_lock(hashtextextended('windlass', 0));
CREATE TABLE IF NOT EXISTS windlass_projects (
    project text PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS windlass_log (
    project text NOT NULL REFERENCES windlass_projects,
    sequence bigint NOT NULL,
    digest bytea NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (project, sequence),
    UNIQUE (project, digest)
);
CREATE UNLOGGED TABLE IF NOT EXISTS windlass_beats (
    project text NOT NULL,
    machine text NOT NULL,
    owner text NOT NULL,
    heartbeat text NOT NULL,
    recorded_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (project, machine, owner)
);
CREATE OR REPLACE FUNCTION windlass_publish(text, bytea, bytea) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT pg_advisory_xact_lock(hashtextextended('windlass.' || $1, 0));
    INSERT INTO windlass_log (project, sequence, digest, body)
        SELECT $1, coalesce((SELECT max(sequence) FROM windlass_log WHERE project = $1), 0) + 1, $2, $3
        ON CONFLICT (project, digest) DO NOTHING;
    SELECT pg_notify('windlass_log', $1);
    SELECT sequence FROM windlass_log WHERE project = $1 AND digest = $2;
$$;
";

impl PostgresConnection {
    pub async fn create_log(&self, project: &str) -> Result<(), SequencerError> {
        self.run_statements(CREATE_TABLES).await.map_err(QueryError::of_request)?;
        let last = self.find_last_sequence(project).await?;
        if last > 0 {
            return Err(refused(format!("the log exists already and has {last} messages")));
        }
        let insert = "INSERT INTO windlass_projects (project) VALUES ($1) ON CONFLICT DO NOTHING";
        self.run_query(insert, &[(&project, Type::TEXT)]).await.map(drop).map_err(QueryError::of_request)
    }

    /// Returns the sequence of the last message; 0 if there is none.
    pub async fn find_last_sequence(&self, project: &str) -> Result<u64, SequencerError> {
        let query = "SELECT coalesce(max(sequence), 0) FROM windlass_log WHERE project = $1";
        let rows = self.run_query(query, &[(&project, Type::TEXT)]).await.map_err(QueryError::of_request)?;
        rows.first().map_or(Ok(0), |row| read_sequence(row, 0))
    }

    pub async fn publish_message(&self, project: &str, body: &[u8]) -> Result<u64, SequencerError> {
        // The table knows a repeated message by its digest.
        let digest = Digest::of_bytes(body);
        let digest: &[u8] = &digest.0;
        let parameters = [(&project as _, Type::TEXT), (&digest as _, Type::BYTEA), (&body as _, Type::BYTEA)];
        let rows = self
            .run_query("SELECT windlass_publish($1, $2, $3)", &parameters)
            .await
            .map_err(|error| if error.is_missing_log() { refused(no_log(project)) } else { error.of_message() })?;
        rows.first().map_or_else(|| Err(unreachable("the server's answer is empty")), |row| read_sequence(row, 0))
    }

    /// Returns whether the project has a log.
    pub async fn has_log(&self, project: &str) -> Result<bool, SequencerError> {
        let query = "SELECT project FROM windlass_projects WHERE project = $1";
        match self.run_query(query, &[(&project, Type::TEXT)]).await {
            Ok(rows) => Ok(!rows.is_empty()),
            Err(error) if error.is_missing_table() => Ok(false),
            Err(error) => Err(error.of_request()),
        }
    }

    pub async fn read_messages(
        &mut self,
        project: &str,
        after: u64,
        most: usize,
    ) -> Result<Vec<SequencedMessage>, SequencerError> {
        let query = "SELECT sequence, body FROM (
                SELECT sequence, body, sum(octet_length(body)) OVER (ORDER BY sequence) - octet_length(body) AS bytes_before
                FROM (SELECT sequence, body FROM windlass_log WHERE project = $1 AND sequence > $2 ORDER BY sequence LIMIT $3) a
            ) b WHERE bytes_before <= $4 ORDER BY sequence";
        let (after, most) = (i64::try_from(after).unwrap_or(i64::MAX), i64::try_from(most).unwrap_or(i64::MAX));
        let parameters = [
            (&project as _, Type::TEXT),
            (&after as _, Type::INT8),
            (&most as _, Type::INT8),
            (&MAX_READ_BYTES as _, Type::INT8),
        ];
        let rows = self
            .run_query(query, &parameters)
            .await
            .map_err(|error| if error.is_missing_table() { refused(no_log(project)) } else { error.of_request() })?;
        self.has_seen_log = self.has_seen_log || !rows.is_empty() || self.has_log(project).await?;
        if !self.has_seen_log {
            return Err(refused(no_log(project)));
        }
        let read = |row: &Row| Ok(SequencedMessage { sequence: read_sequence(row, 0)?, body: row.get(1) });
        let messages: Vec<SequencedMessage> = rows.iter().map(read).collect::<Result<_, _>>()?;
        let length: i64 = messages.iter().map(|message| message.body.len() as i64).sum();
        // A long answer may lack the last messages.
        let is_whole = self.is_listening && (messages.len() as i64) < most && length <= MAX_READ_BYTES;
        self.known_end = is_whole.then(|| messages.last().map_or(after.unsigned_abs(), |last| last.sequence));
        Ok(messages)
    }

    /// Makes the server tell of each new message.
    pub async fn listen_for_news(&mut self) -> Result<(), SequencerError> {
        if !self.is_listening {
            self.run_statements(&format!("LISTEN {NEWS_CHANNEL}")).await.map_err(QueryError::of_request)?;
            self.is_listening = true;
        }
        Ok(())
    }

    /// Reads the messages after a place when the server has told of one. None if the connection does not listen.
    pub async fn receive_messages(
        &mut self,
        project: &str,
        after: u64,
        patience: Duration,
    ) -> Result<Option<Vec<SequencedMessage>>, SequencerError> {
        if !self.is_listening {
            return Ok(None);
        }
        let until = Instant::now() + patience;
        loop {
            let is_known = self.known_end.is_some_and(|end| end <= after);
            if !is_known || self.news.has_changed().unwrap_or(true) {
                self.news.mark_unchanged();
                let messages = self.read_messages(project, after, usize::MAX).await?;
                if !messages.is_empty() {
                    return Ok(Some(messages));
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Some(Vec::new()));
            }
            if tokio::time::timeout(left, self.news.changed()).await.is_ok() {
                self.known_end = None;
            }
        }
    }
}

fn no_log(project: &str) -> String {
    format!("the database has no log of the project `{project}`")
}

fn read_sequence(row: &Row, column: usize) -> Result<u64, SequencerError> {
    let sequence: Option<i64> = row.get(column);
    let sequence = sequence.and_then(|sequence| u64::try_from(sequence).ok());
    sequence.ok_or_else(|| refused("the table of the log has a sequence below zero"))
}
