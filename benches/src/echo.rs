//! The least that answers a request over standard streams: reads a line, finds its id and its parameters, and gives them
//! back. The floor for calls of tools.

use std::error::Error;
use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Request<'a> {
    id: u64,
    #[serde(borrow)]
    params: &'a RawValue,
}

#[derive(Serialize)]
struct Response<'a> {
    jsonrpc: &'a str,
    id: u64,
    result: &'a RawValue,
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let (mut line, mut answer) = (String::new(), Vec::new());
    while input.read_line(&mut line)? > 0 {
        let Request { id, params } = serde_json::from_str(&line)?;
        serde_json::to_writer(&mut answer, &Response { jsonrpc: "2.0", id, result: params })?;
        answer.push(b'\n');
        output.write_all(&answer)?;
        output.flush()?;
        line.clear();
        answer.clear();
    }
    Ok(())
}
