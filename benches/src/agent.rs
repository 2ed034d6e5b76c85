//! An agent that only records its turns: it reads its prompt, answers with a unique line, and appends the start and the end of the turn
//! to a file, in nanoseconds of the monotonic clock.

#![expect(clippy::print_stdout, reason = "an agent answers")]

use std::error::Error;
use std::fs::File;
use std::io::{self, Write};

use rustix::time::{ClockId, Timespec, clock_gettime};

fn main() -> Result<(), Box<dyn Error>> {
    let began = clock_gettime(ClockId::Monotonic);
    let path = std::env::args_os().nth(1).ok_or("usage: agent FILE")?;
    let mut file = File::options().append(true).create(true).open(path)?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    println!("There is more to be done after {}.{}.", began.tv_sec, began.tv_nsec);
    let ended = clock_gettime(ClockId::Monotonic);
    file.write_all([began, ended].map(to_nanosecond_bytes).as_flattened())?;
    Ok(())
}

fn to_nanosecond_bytes(time: Timespec) -> [u8; 8] {
    (time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()).to_le_bytes()
}
