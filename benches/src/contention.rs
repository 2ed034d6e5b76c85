//! Eight processes on one store.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use windlass_store::{Lifetime, SqliteStore, Store};

use crate::report::{BenchReport, SortedDurations, format_duration};
use crate::stores::{self, bench_origin, builtin_rules, create_task_command};
use crate::{BenchResult, BenchScale};

const PROCESS_COUNT: usize = 8;

pub fn measure(scale: BenchScale, report: &mut BenchReport) -> BenchResult<()> {
    report.begin_section("Eight processes on one store");
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("contention.db");
    let store = SqliteStore::create(&path, Lifetime::Service)?;
    let each = scale.repetitions;
    let began = Instant::now();
    let children: Vec<_> = (0..PROCESS_COUNT)
        .map(|number| {
            Command::new(std::env::current_exe()?)
                .arg("--write-contended")
                .arg(&path)
                .args([number.to_string(), each.to_string()])
                .stdout(Stdio::piped())
                .spawn()
        })
        .collect::<Result<_, _>>()?;
    let mut times = Vec::new();
    for child in children {
        let output = child.wait_with_output()?;
        let nanoseconds = output.stdout.as_chunks::<8>().0.iter().map(|time| u64::from_le_bytes(*time));
        times.extend(nanoseconds.map(Duration::from_nanos));
    }
    let took = began.elapsed().as_secs_f64();
    let written = store.head()?.0;
    let expected = (PROCESS_COUNT * each * 2) as u64;
    if times.len() != PROCESS_COUNT * each || written != expected {
        return Err(format!("{written} events of {expected}, {} commands", times.len()).into());
    }
    report.add_fact("events written", format!("{written} of {expected}; {:.0} events/s", written as f64 / took));
    let times = SortedDurations::from_unsorted(times);
    report.add_fact("how long a command took", times.format_percentiles());
    report.add_fact("the longest that any command waited", format_duration(times.longest()));
    let bytes = stores::read_used_bytes(&path)? as f64 / written as f64;
    report.add_fact("what an event and its rows add to the store", format!("{bytes:.0} bytes"));
    Ok(())
}

/// Runs one of the eight processes: adds tasks, and prints the time of each in nanoseconds, eight bytes each.
pub fn run_writer(words: &[String]) -> BenchResult<()> {
    let [path, number, each] = words else { return Err("usage: --write-contended FILE NUMBER EACH".into()) };
    let (number, each): (usize, usize) = (number.parse()?, each.parse()?);
    let mut store = SqliteStore::open(Path::new(path), Lifetime::Service)?;
    let (rules, origin) = (builtin_rules(), bench_origin());
    let mut times = Vec::with_capacity(8 * each);
    for turn in 0..each {
        let began = Instant::now();
        store.execute_command(&rules, &origin, &create_task_command("one of many"), (number * each + turn) as u128)?;
        times.extend(u64::try_from(began.elapsed().as_nanos())?.to_le_bytes());
    }
    std::io::stdout().write_all(&times)?;
    Ok(())
}
