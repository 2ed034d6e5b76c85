//! The versions of scopes, and the cursor of a copy of a fleet's log. Both are empty in a store of its own.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};
use windlass_engine::{DecisionScope, Digest, EffectId, RowChange, Seq};

use super::rows::to_signed;

/// The tables of a copy. `copied_to` has one row: the last folded message, where it begins, and its digest.
pub(super) const REPLICA_TABLES_SQL: &str = "
    CREATE TABLE scopes (scope TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE copied_to (sequence INTEGER NOT NULL, before INTEGER NOT NULL, digest BLOB NOT NULL) STRICT;
";

/// The scope of [`DecisionScope::Edges`].
pub(super) const SCOPE_OF_EDGES: &str = "edges";
/// The scope of [`DecisionScope::Ids`].
pub(super) const SCOPE_OF_IDS: &str = "ids";

/// The scope of the whole log: its version is the last event. Only uploaded events read it, because they follow that event or are
/// dead.
pub(super) const SCOPE_OF_LOG: &str = "log";

/// Returns the scope that a change of a row concerns.
pub(super) fn scope_of_change(change: &RowChange) -> Option<DecisionScope> {
    Some(match change {
        RowChange::PutTask(task) => DecisionScope::Task(task.id),
        RowChange::PutSession(session) => DecisionScope::Session(session.name.clone()),
        RowChange::PutEffect(effect) => DecisionScope::PendingEffect(effect.id),
        RowChange::DropEffect(id) => DecisionScope::PendingEffect(*id),
        RowChange::PutConversation(row) => DecisionScope::Conversation(row.caller.clone()),
        RowChange::DropConversation(caller) => DecisionScope::Conversation(caller.clone()),
        RowChange::PutEdge(_) | RowChange::DropEdge(_) => DecisionScope::Edges,
        RowChange::PutConfig { .. } => return None,
    })
}

/// The start of the name of an effect that the commit itself enqueues. Its id has the position of one of the commit's events, which
/// is known only when the commit is accepted, so its name has the index of the event.
const OWN_EFFECT_PREFIX: &str = "effect/+";

/// Returns the name in a message of a scope that its commit moves. `first` is the position of the commit's first event, if no other
/// commit comes before it.
pub(super) fn name_moved_scope(scope: &DecisionScope, first: Seq) -> String {
    match scope {
        DecisionScope::PendingEffect(id) if id.seq >= first => {
            let seq = Seq(id.seq.0 - first.0);
            format!("{OWN_EFFECT_PREFIX}{}", EffectId { seq, ..*id })
        }
        scope => scope.to_string(),
    }
}

/// Returns the scope that a message names in its moves. `first` is the position of its first event.
pub(super) fn resolve_moved_scope(name: String, first: Seq) -> String {
    let own: Option<EffectId> = name.strip_prefix(OWN_EFFECT_PREFIX).and_then(|id| id.parse().ok());
    let Some(own) = own else { return name };
    let seq = Seq(first.0.saturating_add(own.seq.0));
    DecisionScope::PendingEffect(EffectId { seq, ..own }).to_string()
}

/// Returns the version of a scope. One that never moved, or that is gone, has version 0.
pub(super) fn find_version(connection: &Connection, scope: &str) -> rusqlite::Result<u64> {
    let mut query = connection.prepare_cached("SELECT version FROM scopes WHERE scope = ?")?;
    let found = query.query_row([scope], |row| row.get::<_, i64>(0)).optional()?;
    Ok(found.map_or(0, i64::unsigned_abs))
}

pub(super) fn put_version(connection: &Connection, scope: &str, version: u64) -> rusqlite::Result<()> {
    let mut put = connection.prepare_cached("INSERT OR REPLACE INTO scopes (scope, version) VALUES (?, ?)")?;
    put.execute(params![scope, to_signed(version)]).map(drop)
}

pub(super) fn remove_version(connection: &Connection, scope: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM scopes WHERE scope = ?")?.execute([scope]).map(drop)
}

pub(super) fn list_versions(connection: &Connection) -> rusqlite::Result<BTreeMap<String, u64>> {
    let mut query = connection.prepare("SELECT scope, version FROM scopes")?;
    query.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())))?.collect()
}

/// The last message that a copy has folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CopyCursor {
    /// Its place in the order; 0 before the first message.
    pub sequence: u64,
    /// The place after which it begins: a long message has several parts.
    pub before: u64,
    /// The digest of its body.
    pub digest: Digest,
}

impl CopyCursor {
    /// The cursor of a copy that has folded nothing.
    pub const START: Self = Self { sequence: 0, before: 0, digest: Digest::ZERO };
}

/// Returns the last folded message; none in a store of its own.
pub(super) fn read_cursor(connection: &Connection) -> rusqlite::Result<Option<CopyCursor>> {
    let mut query = connection.prepare_cached("SELECT sequence, before, digest FROM copied_to")?;
    let cursor = query.query_row([], |row| {
        let place = |index| row.get::<_, i64>(index).map(i64::unsigned_abs);
        Ok(CopyCursor { sequence: place(0)?, before: place(1)?, digest: Digest(row.get(2)?) })
    });
    cursor.optional()
}

pub(super) fn write_cursor(connection: &Connection, cursor: CopyCursor) -> rusqlite::Result<()> {
    let values = params![to_signed(cursor.sequence), to_signed(cursor.before), cursor.digest.0];
    let mut update = connection.prepare_cached("UPDATE copied_to SET sequence = ?, before = ?, digest = ?")?;
    if update.execute(values)? == 0 {
        connection.execute("INSERT INTO copied_to (sequence, before, digest) VALUES (?, ?, ?)", values)?;
    }
    Ok(())
}

/// Forgets the versions and the cursor.
pub(super) fn clear_tables(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("DELETE FROM scopes; DELETE FROM copied_to;")
}
