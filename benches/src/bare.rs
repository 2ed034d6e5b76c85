//! One SQLite commit and nothing else: open, write two events and a row, close. The floor for `windlass task add`.

#![expect(clippy::print_stdout, reason = "a benchmark's program prints")]

use std::error::Error;

use rusqlite::{Connection, params};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: bare FILE")?;
    let connection = Connection::open(path)?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let id: i64 = connection.query_row("SELECT ifnull(max(id), 0) + 1 FROM tasks", [], |row| row.get(0))?;
    let seq: i64 = connection.query_row("SELECT ifnull(max(seq), 0) + 1 FROM events", [], |row| row.get(0))?;
    let body = [b'x'; 190];
    for offset in 0..2 {
        connection.prepare_cached("INSERT INTO events (seq, type, previous, nonce, body, digest, chain) VALUES (?, 'task_created', 0, ?, ?, ?, ?)")?.execute(params![
            seq + offset,
            [0_u8; 16],
            body,
            [0_u8; 32],
            [0_u8; 32]
        ])?;
    }
    connection
        .prepare_cached("INSERT INTO tasks (id, state, priority, kind, row) VALUES (?, 'ready', 2, 'task', ?)")?
        .execute(params![id, String::from_utf8_lossy(&[b'y'; 280])])?;
    connection.execute_batch("COMMIT")?;
    drop(connection);
    println!("T{id}");
    Ok(())
}
