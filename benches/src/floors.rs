//! The floors: the disk, and starting a program.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::report::{BenchReport, SortedDurations, format_duration};
use crate::{BenchResult, BenchScale};

/// Times that other figures are compared with.
pub struct BaselineTimes {
    /// Time to run `/bin/true`.
    pub spawn: Duration,
}

/// The approximate length of an event on disk.
const EVENT_BYTES: usize = 400;
/// The writes of SQLite's log for a commit that changes four pages: a header and the page for each, one call after another.
const COMMIT_WRITES: [usize; 8] = [24, 4096, 24, 4096, 24, 4096, 24, 4096];
/// The length of the file.
const FILE_BYTES: usize = 4 << 20;

pub fn measure(scale: BenchScale, report: &mut BenchReport) -> BenchResult<BaselineTimes> {
    report.begin_section("Floors");
    report.add_fact("write + `fdatasync` of 400 bytes", measure_event_write(scale)?.format_percentiles());
    report.add_fact(
        "the same of four pages with their headers, in eight writes as SQLite does",
        measure_writes(scale, &COMMIT_WRITES)?.format_percentiles(),
    );
    report.add_fact(
        "the same of four pages with their headers, in one write",
        measure_writes(scale, &[COMMIT_WRITES.iter().sum()])?.format_percentiles(),
    );
    let spawn = SortedDurations::measure(scale.command_repetitions, |_| run_command(Command::new("/bin/true")))?;
    report.add_fact("`/bin/true`", format_duration(spawn.p50()));
    Ok(BaselineTimes { spawn: spawn.p50() })
}

/// Measures the floor of the disk at this moment: one event-sized write and `fdatasync` on a file that does not grow.
pub fn measure_event_write(scale: BenchScale) -> BenchResult<SortedDurations> {
    measure_writes(scale, &[EVENT_BYTES])
}

/// Measures writes of these lengths, one after another, and a sync.
fn measure_writes(scale: BenchScale, writes: &[usize]) -> BenchResult<SortedDurations> {
    let directory = tempfile::tempdir()?;
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(directory.path().join("floor"))?;
    let bytes = vec![b'x'; FILE_BYTES];
    file.write_all_at(&bytes, 0)?;
    file.sync_all()?;
    let whole: usize = writes.iter().sum();
    Ok(SortedDurations::measure(scale.repetitions, |turn| {
        let mut place = turn % (FILE_BYTES / whole) * whole;
        for length in writes {
            file.write_all_at(&bytes[..*length], place as u64)?;
            place += length;
        }
        rustix::fs::fdatasync(&file).map_err(std::io::Error::from)
    })?)
}

/// Runs a program to its end and ignores its output.
pub fn run_command(mut command: Command) -> BenchResult<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}").into()) }
}
