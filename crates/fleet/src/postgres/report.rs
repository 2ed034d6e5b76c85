//! The description of a service.

use std::time::Instant;

use jiff::Timestamp;
use windlass_store::SequencerError;

use super::connection::{PostgresConnection, QueryError};
use crate::failure::unreachable;
use crate::service::{ServiceLog, ServiceReport, measure_clock_skew};

impl PostgresConnection {
    pub async fn inspect_service(&self, project: &str) -> Result<ServiceReport, SequencerError> {
        let query = "SELECT current_setting('server_version'), (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
            current_setting('fsync'), current_setting('synchronous_commit'), current_setting('synchronous_standby_names')";
        let asked = Instant::now();
        let rows = self.run_query(query, &[]).await.map_err(QueryError::of_request)?;
        let round_trip = asked.elapsed();
        let row = rows.first().ok_or_else(|| unreachable("the server's answer is empty"))?;
        let time = Timestamp::from_millisecond(row.get(1)).map_err(unreachable)?;
        let clock_skew_millis = measure_clock_skew(time, asked);
        let version: String = row.get(0);
        Ok(ServiceReport {
            // Some distributions write their own version behind it.
            name: format!("PostgreSQL {}", version.split(' ').next().unwrap_or_default()),
            log: self.describe_log(project).await?,
            weaknesses: list_weaknesses(row.get(2), row.get(3), row.get(4)),
            clock_skew_millis,
            round_trip,
        })
    }

    async fn describe_log(&self, project: &str) -> Result<Option<ServiceLog>, SequencerError> {
        if !self.has_log(project).await? {
            return Ok(None);
        }
        // Sequences have no gaps.
        let last_sequence = self.find_last_sequence(project).await?;
        Ok(Some(ServiceLog { messages: last_sequence, last_sequence, replicas: None }))
    }
}

fn list_weaknesses(fsync: &str, synchronous_commit: &str, standby_names: &str) -> Vec<String> {
    let mut weaknesses = Vec::new();
    if fsync == "off" {
        weaknesses.push("PostgreSQL has `fsync = off`: a power failure can destroy the log.".to_owned());
    }
    if synchronous_commit == "off" {
        let text = "PostgreSQL has `synchronous_commit = off` for this user: a crash loses acknowledged messages.";
        weaknesses.push(text.to_owned());
    }
    if standby_names.trim().is_empty() {
        let text = "PostgreSQL has no `synchronous_standby_names`: a lost server loses acknowledged messages.";
        weaknesses.push(text.to_owned());
    } else if synchronous_commit == "local" {
        let text = "PostgreSQL has `synchronous_commit = local` for this user, so a commit does not wait for other servers: \
                    a lost server loses acknowledged messages.";
        weaknesses.push(text.to_owned());
    }
    weaknesses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weaknesses_name_setting_that_loses_messages() {
        for (settings, expected) in [
            (("on", "on", "ANY 1 (*)"), &[][..]),
            (("on", "remote_apply", "b"), &[]),
            (("on", "on", ""), &["synchronous_standby_names"]),
            (("on", "local", "b"), &["local"]),
            (("off", "off", ""), &["fsync", "synchronous_commit", "synchronous_standby_names"]),
        ] {
            let found = list_weaknesses(settings.0, settings.1, settings.2);
            assert_eq!(found.len(), expected.len(), "{found:?}");
            assert!(found.iter().zip(expected).all(|(text, word)| text.contains(word)), "{found:?}");
        }
    }
}
