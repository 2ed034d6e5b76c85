//! The floors: the disk, and starting a program.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::report::{Report, Times, shown};
use crate::{Effort, Outcome};

pub struct Floors {
    /// Time to run `/bin/true`.
    pub spawn: Duration,
}

/// The approximate length of an event on disk.
const EVENT: usize = 400;
/// The writes of SQLite's log for a commit that changes four pages: a header and the page for each, one call after another.
const FRAMES: [usize; 8] = [24, 4096, 24, 4096, 24, 4096, 24, 4096];
/// The length of the file.
const LENGTH: usize = 4 << 20;

pub fn measure(effort: Effort, report: &mut Report) -> Outcome<Floors> {
    report.section("Floors");
    report.fact("write + `fdatasync` of 400 bytes", event(effort)?.shown());
    report.fact(
        "the same of four pages with their headers, in eight writes as SQLite does",
        written(effort, &FRAMES)?.shown(),
    );
    report.fact(
        "the same of four pages with their headers, in one write",
        written(effort, &[FRAMES.iter().sum()])?.shown(),
    );
    let spawn = Times::of(effort.commands, |_| run(Command::new("/bin/true")))?;
    report.fact("`/bin/true`", shown(spawn.p50()));
    Ok(Floors { spawn: spawn.p50() })
}

/// Measures the floor of the disk at this moment: one event-sized write and `fdatasync` on a file that does not grow.
pub fn event(effort: Effort) -> Outcome<Times> {
    written(effort, &[EVENT])
}

/// Measures writes of these lengths, one after another, and a sync.
fn written(effort: Effort, writes: &[usize]) -> Outcome<Times> {
    let directory = tempfile::tempdir()?;
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(directory.path().join("floor"))?;
    let bytes = vec![b'x'; LENGTH];
    file.write_all_at(&bytes, 0)?;
    file.sync_all()?;
    let whole: usize = writes.iter().sum();
    Ok(Times::of(effort.many, |turn| {
        let mut place = turn % (LENGTH / whole) * whole;
        for length in writes {
            file.write_all_at(&bytes[..*length], place as u64)?;
            place += length;
        }
        rustix::fs::fdatasync(&file).map_err(std::io::Error::from)
    })?)
}

/// Runs a program to its end and ignores its output.
pub fn run(mut command: Command) -> Outcome<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}").into()) }
}
