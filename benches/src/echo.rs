//! A minimal JSON-RPC server over standard streams: it reads a line, parses it, and answers with the result from its command line. It
//! is the floor for tool calls. With a store, it also commits a note for each request.
//!
//! Request and result are `serde_json` values, as in a generic server: each request is parsed, and each result is serialized, anew.

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use windlass_engine::{Authority, Command, CommandOrigin, EngineRules, HookRegistry, NoteKind, TaskId, Timestamp};
use windlass_store::{Lifetime, SqliteStore, Store};

#[derive(Serialize)]
struct EchoResponse<'a> {
    jsonrpc: &'a str,
    id: &'a Value,
    result: &'a Value,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let result: Value = serde_json::from_str(&words.next().ok_or("no result to answer with")?)?;
    let mut store = words.next().map(|path| SqliteStore::open(Path::new(&path), Lifetime::Service)).transpose()?;
    let at = Timestamp::from_millis(0);
    let origin = CommandOrigin { by: "ada".to_owned(), at, authority: Authority::Person, run: None, via: None };
    let (rules, mut nonce) = (EngineRules { registry: HookRegistry::with_builtins(), ..EngineRules::default() }, 0);
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let (mut line, mut answer) = (String::new(), Vec::new());
    while input.read_line(&mut line)? > 0 {
        let request: Value = serde_json::from_str(&line)?;
        if request["method"] != "tools/call" {
            return Err("no call".into());
        }
        if let Some(store) = &mut store {
            let text = request["params"]["arguments"]["text"].as_str().ok_or("no text")?.to_owned();
            let note = Command::AddNote { task: Some(TaskId(1)), kind: NoteKind::Learning, text };
            nonce += 1;
            store.execute_command(&rules, &origin, &note, nonce)?;
        }
        serde_json::to_writer(&mut answer, &EchoResponse { jsonrpc: "2.0", id: &request["id"], result: &result })?;
        answer.push(b'\n');
        output.write_all(&answer)?;
        output.flush()?;
        line.clear();
        answer.clear();
    }
    Ok(())
}
