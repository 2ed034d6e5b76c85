//! Heartbeats of owners: one row per owner, in a table without a write-ahead log, which a crash of the server empties.

use std::time::Duration;

use tokio_postgres::types::Type;
use windlass_store::SequencerError;

use super::connection::{PostgresConnection, QueryError};
use crate::service::{HeartbeatList, OwnerHeartbeat};

impl PostgresConnection {
    pub async fn record_heartbeat(
        &self,
        project: &str,
        heartbeat: &OwnerHeartbeat,
        lifetime: Duration,
    ) -> Result<(), SequencerError> {
        // Another process may remove the same rows.
        let query = "WITH forgotten AS (
                DELETE FROM windlass_beats WHERE ctid IN (
                    SELECT ctid FROM windlass_beats
                    WHERE project = $1 AND expires_at < clock_timestamp() AND (machine, owner) <> ($2, $3)
                    FOR UPDATE SKIP LOCKED
                )
            )
            INSERT INTO windlass_beats (project, machine, owner, heartbeat, recorded_at, expires_at)
            VALUES ($1, $2, $3, $4, clock_timestamp(), clock_timestamp() + $5 * interval '1 second')
            ON CONFLICT (project, machine, owner) DO UPDATE SET
                heartbeat = excluded.heartbeat, recorded_at = excluded.recorded_at, expires_at = excluded.expires_at";
        let text = serde_json::to_string(heartbeat).expect("a heartbeat has string keys");
        // As NATS: whole seconds, and at least one.
        let seconds = i64::try_from(lifetime.as_millis().div_ceil(1000).max(1)).unwrap_or(i64::from(i32::MAX));
        let parameters = [
            (&project as _, Type::TEXT),
            (&heartbeat.machine as _, Type::TEXT),
            (&heartbeat.owner as _, Type::TEXT),
            (&text as _, Type::TEXT),
            (&seconds as _, Type::INT8),
        ];
        self.run_query(query, &parameters).await.map(drop).map_err(QueryError::of_request)
    }

    pub async fn list_heartbeats(&self, project: &str) -> Result<HeartbeatList, SequencerError> {
        let query = "SELECT heartbeat, (extract(epoch FROM clock_timestamp() - recorded_at) * 1000000)::bigint
            FROM windlass_beats WHERE project = $1 AND expires_at > clock_timestamp()";
        let rows = match self.run_query(query, &[(&project, Type::TEXT)]).await {
            Ok(rows) => rows,
            Err(error) if error.is_missing_table() => return Ok(HeartbeatList::default()),
            Err(error) => return Err(error.of_request()),
        };
        let read = rows.iter().filter_map(|row| {
            // Another version of the program may have written one that this one does not know.
            let heartbeat = serde_json::from_str(row.get(0)).ok()?;
            let age: i64 = row.get(1);
            Some((heartbeat, Duration::from_micros(u64::try_from(age).unwrap_or(0))))
        });
        let heartbeats = read.collect();
        // A server that was not shut down empties the table when it starts.
        let query = "SELECT (extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) * 1000000)::bigint";
        let rows = self.run_query(query, &[]).await.map_err(QueryError::of_request)?;
        let age: i64 = rows.first().map_or(0, |row| row.get(0));
        Ok(HeartbeatList { heartbeats, kept_for: Duration::from_micros(u64::try_from(age).unwrap_or(0)) })
    }

    pub async fn remove_heartbeat(&self, project: &str, machine: &str, owner: &str) -> Result<(), SequencerError> {
        let query = "DELETE FROM windlass_beats WHERE project = $1 AND machine = $2 AND owner = $3";
        let parameters = [(&project as _, Type::TEXT), (&machine as _, Type::TEXT), (&owner as _, Type::TEXT)];
        match self.run_query(query, &parameters).await {
            Err(error) if !error.is_missing_table() => Err(error.of_request()),
            _ => Ok(()),
        }
    }
}
