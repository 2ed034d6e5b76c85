//! Eight processes on one store.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use windlass_store::{Lifetime, Sqlite, Store};

use crate::report::{Report, Times, shown};
use crate::stores::{create, origin, rules};
use crate::{Effort, Outcome};

const PROCESSES: usize = 8;

pub fn measure(effort: Effort, report: &mut Report) -> Outcome<()> {
    report.section("Eight processes on one store");
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("many.db");
    let store = Sqlite::create(&path, Lifetime::Service)?;
    let each = effort.many;
    let began = Instant::now();
    let children: Vec<_> = (0..PROCESSES)
        .map(|number| {
            Command::new(std::env::current_exe()?)
                .arg("--write-many")
                .arg(&path)
                .args([number.to_string(), each.to_string()])
                .stdout(Stdio::piped())
                .spawn()
        })
        .collect::<Result<_, _>>()?;
    let mut worst = 0.0_f64;
    for child in children {
        let output = child.wait_with_output()?;
        worst = worst.max(String::from_utf8(output.stdout)?.trim().parse()?);
    }
    let took = began.elapsed().as_secs_f64();
    let written = store.head()?.0;
    let expected = (PROCESSES * each * 2) as u64;
    report.fact("events written", format!("{written} of {expected}; {:.0} events/s", written as f64 / took));
    report.fact("the longest that any command waited", shown(std::time::Duration::from_secs_f64(worst)));
    Ok(())
}

/// One of the eight: adds tasks, and prints the longest time that one took, in seconds.
pub fn write(words: &[String]) -> Outcome<()> {
    let [path, number, each] = words else { return Err("usage: --write-many FILE NUMBER EACH".into()) };
    let (number, each): (usize, usize) = (number.parse()?, each.parse()?);
    let mut store = Sqlite::open(Path::new(path), Lifetime::Service)?;
    let (rules, origin) = (rules(), origin());
    let mut worst = std::time::Duration::ZERO;
    Times::of(each, |turn| {
        let began = Instant::now();
        let done = store.execute(&rules, &origin, &create("one of many"), (number * each + turn) as u128);
        worst = worst.max(began.elapsed());
        done.map(drop)
    })?;
    println!("{}", worst.as_secs_f64());
    Ok(())
}
