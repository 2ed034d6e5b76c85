//! A copy of a fleet's log, beside a store of its own and a bare client of the server. The server is NATS on this machine, with one
//! copy of each message.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use windlass_engine::{TaskId, TaskPatch};
use windlass_fleet::{FleetAccess, FleetService, LogSettings, connect_service};
use windlass_store::{Lifetime, SqliteStore, Store};
use windlass_testkit::FaultyProxy;
use windlass_testkit::nats_server::NatsServer;

use crate::commands::find_program;
use crate::floors::run_command;
use crate::report::{BenchReport, SortedDurations, at_least, at_most, format_duration, ratio};
use crate::stores::{bench_origin, builtin_rules, create_task_command, fill_store};
use crate::{BenchResult, BenchScale};

/// The size of a published message, about that of a commit.
const MESSAGE_BYTES: usize = 1024;
/// The time from a distant machine to the server and back.
const DISTANCE: Duration = Duration::from_millis(40);
/// The time between two commits of the machine beside it.
const BUSY_INTERVAL: Duration = Duration::from_millis(10);

pub fn measure(scale: BenchScale, report: &mut BenchReport) -> BenchResult<()> {
    let Some(server) = NatsServer::start() else {
        report.begin_section("A fleet");
        report.add_fact("not measured", "`scripts/clients` installs nats-server");
        return Ok(());
    };
    report.begin_section("A fleet, on one server of NATS on this machine");
    measure_publishing(scale, &server, report)?;
    measure_commands(scale, &server, report)?;
    measure_distance(scale, &server, report)?;
    measure_joining(scale, &server, report)
}

fn connect_log(server: &NatsServer, project: &str) -> BenchResult<Box<dyn FleetService>> {
    let address = server.log_address(project).parse()?;
    let mut service = connect_service(FleetAccess { address, credentials: None, certificates: None })?;
    if service.inspect_service()?.log.is_none() {
        service.create_log(LogSettings { replicas: 1, syncs_always: false })?;
    }
    Ok(service)
}

/// Compares a publication with the same message, sent by the library for NATS alone.
fn measure_publishing(scale: BenchScale, server: &NatsServer, report: &mut BenchReport) -> BenchResult<()> {
    let mut service = connect_log(server, "publish")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let bare = runtime.block_on(async_nats::connect(format!("127.0.0.1:{}", server.port())))?;
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for turn in 0..scale.repetitions {
        let mut body = format!("{turn} ").into_bytes();
        body.resize(MESSAGE_BYTES, b'x');
        let began = Instant::now();
        service.publish(&body)?;
        ours.push(began.elapsed());
        body[0] = b'b';
        // The server looks for the name of the message, as for ours.
        let began = Instant::now();
        let mut headers = async_nats::HeaderMap::new();
        headers.insert(async_nats::header::NATS_MESSAGE_ID, format!("{turn:064}"));
        let answer = runtime.block_on(bare.request_with_headers("windlass.publish.log", headers, body.into()))?;
        floor.push(began.elapsed());
        if serde_json::from_slice::<serde_json::Value>(&answer.payload)?["seq"].is_null() {
            return Err("the server does not take the message of the bare client".into());
        }
    }
    let (ours, floor) = (SortedDurations::from_unsorted(ours), SortedDurations::from_unsorted(floor));
    let times = ratio(ours.p50(), floor.p50());
    let measured = format!("{times:.2} × ({} beside {})", format_duration(ours.p50()), format_duration(floor.p50()));
    report.add_figure("a message through the adapter, against a bare client", measured, times, at_most(1.1, " ×"));
    Ok(())
}

/// Compares whole commands in a fleet with the same ones in a store of its own.
fn measure_commands(scale: BenchScale, server: &NatsServer, report: &mut BenchReport) -> BenchResult<()> {
    let windlass = find_program("windlass")?;
    let (alone, member) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let run = |place: &Path, words: &[&str]| {
        let mut command = Command::new(&windlass);
        command.args(words).current_dir(place).env("WINDLASS_STATE_DIR", place.join("state"));
        run_command(command)
    };
    run(alone.path(), &["init"])?;
    run(member.path(), &["init"])?;
    let address = server.log_address("commands");
    run(member.path(), &["fleet", "create", &address, "--replicas", "1", "--accept-loss"])?;
    for (name, words) in [("task add", &["task", "add", "one more"][..]), ("task next", &["task", "next"])] {
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..scale.command_repetitions {
            for (place, times) in [(alone.path(), &mut theirs), (member.path(), &mut ours)] {
                let began = Instant::now();
                run(place, words)?;
                times.push(began.elapsed());
            }
        }
        let (theirs, ours) = (SortedDurations::from_unsorted(theirs), SortedDurations::from_unsorted(ours));
        let times = ratio(ours.p50(), theirs.p50());
        let measured =
            format!("{times:.2} × ({} beside {})", format_duration(ours.p50()), format_duration(theirs.p50()));
        let what = format!("`{name}` in a fleet, against one machine alone");
        match name {
            "task add" => report.add_figure(&what, measured, times, at_most(3.0, " ×")),
            _ => report.add_fact(&what, measured),
        }
    }
    Ok(())
}

/// Measures the commits of a machine that is 40 ms away, beside a machine that commits a hundred times a second. They change
/// different tasks.
fn measure_distance(scale: BenchScale, server: &NatsServer, report: &mut BenchReport) -> BenchResult<()> {
    let directory = tempfile::tempdir()?;
    let proxy = FaultyProxy::start(server.port())?;
    let address = |port: u16| format!("nats://127.0.0.1:{port}/distance");
    let join = |name: &str, port: u16| -> BenchResult<SqliteStore> {
        connect_log(server, "distance")?;
        let mut store = SqliteStore::create(&directory.path().join(format!("{name}.db")), Lifetime::Service)?;
        store.join_log()?;
        let access = FleetAccess { address: address(port).parse()?, credentials: None, certificates: None };
        store.attach_log(connect_service(access)?, name.to_owned());
        store.subscribe_to_log();
        store.catch_up()?;
        Ok(store)
    };
    let (mut busy, mut distant) = (join("busy", server.port())?, join("distant", proxy.port())?);
    let (rules, origin) = (builtin_rules(), bench_origin());
    for nonce in 0..2 {
        busy.execute_command(&rules, &origin, &create_task_command("one of two"), nonce)?;
    }
    distant.catch_up()?;
    proxy.set_delay(DISTANCE / 2);
    let is_over = AtomicBool::new(false);
    let commits = scale.command_repetitions / 2;
    let (took, beside) = thread::scope(|scope| -> BenchResult<(Duration, f64)> {
        let (rules, origin, is_over) = (&rules, &origin, &is_over);
        let writer = scope.spawn(move || {
            let began = Instant::now();
            let mut count = 0_u32;
            while !is_over.load(Ordering::Relaxed) {
                let next = began + BUSY_INTERVAL * count;
                thread::sleep(next.saturating_duration_since(Instant::now()));
                let nonce = 1000 + u128::from(count);
                if let Err(error) = busy.execute_command(rules, origin, &rename_command(2, count), nonce) {
                    return Err(error.to_string());
                }
                count += 1;
            }
            Ok(f64::from(count) / began.elapsed().as_secs_f64())
        });
        let began = Instant::now();
        for number in 0..commits {
            let nonce = 1_000_000 + number as u128;
            let number = u32::try_from(number)?;
            distant.execute_command(rules, origin, &rename_command(1, number), nonce)?;
        }
        let took = began.elapsed();
        is_over.store(true, Ordering::Relaxed);
        Ok((took, writer.join().expect("the writer does not panic")?))
    })?;
    let rate = commits as f64 / took.as_secs_f64();
    let measured = format!("{rate:.1} commits/s beside {beside:.0}");
    report.add_figure("a machine 40 ms away, beside a busy one", measured, rate, at_least(15.0, " commits/s"));
    Ok(())
}

fn rename_command(task: u64, number: u32) -> windlass_engine::Command {
    let patch = TaskPatch { goal: Some(format!("goal {number}")), ..TaskPatch::default() };
    windlass_engine::Command::UpdateTask { id: TaskId(task), patch }
}

/// Measures how long a log takes to publish, and to read on another machine.
fn measure_joining(scale: BenchScale, server: &NatsServer, report: &mut BenchReport) -> BenchResult<()> {
    let directory = tempfile::tempdir()?;
    let mut store = SqliteStore::create(&directory.path().join("first.db"), Lifetime::Service)?;
    // A task has two events.
    fill_store(&mut store, scale.sizes[2] / 2)?;
    let events = store.head()?.0;
    store.attach_log(connect_log(server, "joining")?, "first".to_owned());
    let began = Instant::now();
    store.publish_log(|_| {})?;
    report.add_fact(&format!("publishing a log of {events} events"), format_duration(began.elapsed()));
    let mut joined = SqliteStore::create(&directory.path().join("second.db"), Lifetime::Service)?;
    joined.join_log()?;
    joined.attach_log(connect_log(server, "joining")?, "second".to_owned());
    let began = Instant::now();
    joined.catch_up()?;
    let took = began.elapsed();
    if joined.head()? != store.head()? {
        return Err("the copy has other events than the log".into());
    }
    let million = Duration::from_secs_f64(took.as_secs_f64() * 1e6 / events as f64);
    let measured = format!("{}, so a million take {:.0} s", format_duration(took), million.as_secs_f64());
    report.add_figure(
        &format!("joining a log of {events} events"),
        measured,
        million.as_secs_f64(),
        at_most(60.0, " s for a million"),
    );
    Ok(())
}
