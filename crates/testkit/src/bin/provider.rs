//! Runs a model provider with a script, so that you can try agents by hand.
//!
//! `provider SCRIPT.yaml [RECORD.jsonl]` prints its address, and writes the requests to the record.
#![allow(clippy::disallowed_methods, reason = "tests read files that they have written")]

use std::env;
use std::error::Error;
use std::fs::{self, File};
use std::io::Write;

use serde_json::json;
use windlass_testkit::provider::ScriptedProvider;

#[expect(clippy::print_stdout, reason = "the program prints its address")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut paths = env::args_os().skip(1);
    let script = paths.next().ok_or("which script? usage: provider SCRIPT.yaml [RECORD.jsonl]")?;
    let provider = ScriptedProvider::start(serde_saphyr::from_str(&fs::read_to_string(script)?)?)?;
    let mut record = paths.next().map(File::create).transpose()?;
    println!("{}", provider.url());
    for number in 0.. {
        let request = provider.request(number);
        if let Some(record) = &mut record {
            let line = json!({"path": request.path, "body": request.body}).to_string() + "\n";
            record.write_all(line.as_bytes())?;
        }
    }
    Ok(())
}
