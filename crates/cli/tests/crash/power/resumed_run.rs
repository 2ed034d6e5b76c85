//! Power loss during a run that a person starts again: the result equals that of a run without a power loss, and the log has the
//! acknowledged events.

use std::fs;
use std::path::Path;

use super::super::crash_setup::can_trace;
use super::super::sweep::{print_progress, tests_all_crash_points};
use super::super::{log, session_result};
use super::disk::{RandomGenerator, SimulatedDisk, UnsyncedData};
use super::trace::FileOperation;
use super::{OperationRecording, TestWorld};

const CONFIG: &str = "\
completion: gate
worktrees: false
hooks:
  session_start: [{ name: open, command: echo open, pipe_output: true }]
  stop: [{ name: check, command: 'true' }]
  post_iteration: [{ name: bill, command: 'true' }]
  task_completed: [{ name: tell, command: 'true', idempotent: true }]
  session_end: [{ name: close, command: 'true' }]
";

const RUN: &[&str] = &["--json", "run", "--trust", "--agent", "command:cat >/dev/null; echo on it"];
const SETUP_AND_RUN: &[&[&str]] =
    &[&["init"], &["task", "add", "First"], &["task", "add", "Second", "--depends", "T1"], RUN];

/// A recorded run and its result.
struct RecordedRun {
    recording: OperationRecording,
    /// The number of operations before the run itself.
    run_start: usize,
    result: String,
}

impl RecordedRun {
    fn new() -> Self {
        let world = TestWorld::empty();
        let (directory, file) = (world.path(".windlass"), world.path(".windlass/config.yaml"));
        fs::create_dir(&directory).unwrap();
        fs::write(&file, CONFIG).unwrap();
        // An earlier checkout has created and synced the directory.
        let existing_operations = vec![
            FileOperation::MakeDirectory(directory.clone()),
            FileOperation::Create(file.clone()),
            FileOperation::Write(file.clone(), 0, CONFIG.into()),
            FileOperation::Sync(file),
            FileOperation::Sync(directory),
            FileOperation::Sync(world.directory.clone()),
        ];
        let recording = OperationRecording::record_after(existing_operations, &world, SETUP_AND_RUN, None);
        let events_before = recording.log.iter().position(|line| line.contains("\"session_started\"")).unwrap();
        let run_start = recording
            .acknowledged
            .iter()
            .rfind(|(_, count)| **count <= events_before)
            .map(|(after, _)| *after)
            .unwrap();
        Self { recording, run_start, result: describe_result(&world) }
    }

    /// Simulates a power loss after this number of operations, and runs again. Returns the failure, if there is one.
    fn resume_after_power_loss(&self, after: usize, unsynced: UnsyncedData, seed: u64) -> Option<String> {
        let mut disk = SimulatedDisk::new(&self.recording.root);
        self.recording.operations.iter().take(after).for_each(|operation| disk.apply_operation(operation));
        let world = TestWorld::empty();
        disk.lose_power(unsynced, &mut RandomGenerator(seed), &world.directory);
        let failure = |details: String| Some(format!("after {after} ops, {unsynced:?} left, seed {seed}: {details}"));
        let output = world.run(RUN);
        if output.code != 0 {
            return failure(output.to_string());
        }
        let acknowledged = self.recording.acknowledged.range(..=after).next_back().map_or(0, |(_, count)| *count);
        let log = world.run(&["--json", "events"]).stdout;
        let pairs =
            self.recording.log.iter().take(acknowledged).zip(log.lines().map(Some).chain(std::iter::repeat(None)));
        if let Some((line, actual)) = pairs.into_iter().find(|(line, actual)| *actual != Some(line)) {
            return failure(format!("acknowledged event {line}, and the log has {actual:?}"));
        }
        let result = describe_result(&world);
        if result != self.result {
            return failure(format!("the result is\n{result}\nwithout a power loss\n{}", self.result));
        }
        None
    }
}

/// Returns the tasks, the session result without interruptions, the problems that `doctor` reports, and temporary files.
fn describe_result(world: &TestWorld) -> String {
    let tasks = world.run(&["--json", "task", "list", "--all"]).stdout;
    let tasks = tasks.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut lines: Vec<String> =
        tasks.map(|task| format!("{} {} {}", task["id"], task["state"], task["goal"])).collect();
    lines.extend(session_result::from_log(&log::parse_events(&world.run(&["--json", "events"]).stdout)));
    let doctor = world.run(&["doctor", "--trust"]);
    lines.push(if doctor.code == 0 { "sound".to_owned() } else { doctor.to_string() });
    lines.extend(temporary_files(&world.directory));
    lines.join("\n")
}

/// Returns the incomplete temporary files.
fn temporary_files(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory.join(".windlass")).unwrap().flatten();
    names.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|name| name.ends_with(".new")).collect()
}

#[test]
fn run_resumes_after_power_loss() {
    if !can_trace() {
        return;
    }
    let run = RecordedRun::new();
    let operations = run.run_start..=run.recording.operations.len();
    let unsynced_variants = [UnsyncedData::Nothing, UnsyncedData::Some, UnsyncedData::Torn];
    let moments: Vec<_> = if tests_all_crash_points() {
        operations.flat_map(|after| unsynced_variants.map(|unsynced| (after, unsynced))).collect()
    } else {
        let step = (operations.end() - operations.start()) / 7;
        operations.skip(step / 2).step_by(step).zip(unsynced_variants.into_iter().cycle()).collect()
    };
    let failures: Vec<String> = moments
        .iter()
        .filter_map(|(after, unsynced)| run.resume_after_power_loss(*after, *unsynced, *after as u64))
        .collect();
    if tests_all_crash_points() {
        print_progress(&format!(
            "without power, and gone on with: {} moments, {} of them wrong\n",
            moments.len(),
            failures.len()
        ));
    }
    assert_eq!(failures, [""; 0]);
    assert!(moments.len() >= 7, "{moments:?}");
}
