//! The least rights of a member of a fleet.

/// Returns the statements that let a user work on the logs of a database, after the first log there was created.
pub fn list_grants(user: &str) -> String {
    let user = user.replace('"', "\"\"");
    [
        ("SELECT", "windlass_projects"),
        ("SELECT, INSERT", "windlass_log"),
        ("SELECT, INSERT, UPDATE, DELETE", "windlass_beats"),
    ]
    .map(|(rights, table)| format!("GRANT {rights} ON {table} TO \"{user}\";\n"))
    .concat()
}
