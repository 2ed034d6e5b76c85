//! What nothing can beat: the disk, and starting a program.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::report::{Report, Times, shown};
use crate::{Effort, Outcome};

pub struct Floors {
    /// One event-sized write and `fdatasync` on a file that does not grow.
    pub sync: Duration,
    /// Starting `/bin/true`.
    pub spawn: Duration,
}

/// About as long as an event is on the disk.
const EVENT: usize = 400;

pub fn measure(effort: Effort, report: &mut Report) -> Outcome<Floors> {
    report.section("Floors");
    let sync = sync(effort)?;
    report.fact("write + `fdatasync` of 400 bytes", format!("{} (p99 {})", shown(sync.p50()), shown(sync.p99())));
    let spawn = Times::of(effort.commands, |_| run(Command::new("/bin/true")))?;
    report.fact("`/bin/true`", shown(spawn.p50()));
    Ok(Floors { sync: sync.p50(), spawn: spawn.p50() })
}

/// The floor of the disk, as it is right now.
pub fn sync(effort: Effort) -> Outcome<Times> {
    let directory = tempfile::tempdir()?;
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(directory.path().join("floor"))?;
    file.write_all_at(&vec![0; 4 << 20], 0)?;
    file.sync_all()?;
    let record = [b'x'; EVENT];
    Ok(Times::of(effort.many, |turn| {
        file.write_all_at(&record, (turn % 8_000 * EVENT) as u64)?;
        rustix::fs::fdatasync(&file).map_err(std::io::Error::from)
    })?)
}

/// Runs a program to its end without looking at what it says.
pub fn run(mut command: Command) -> Outcome<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}").into()) }
}
