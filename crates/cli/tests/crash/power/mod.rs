//! Power loss: strace records the file operations of the program, and the test replays them on a simulated disk that keeps only
//! synced data. Whatever part of the unsynced data remains, the log has every acknowledged event unchanged, and no other events.
//!
//! ```text
//! commands ─ strace ─► operations ─ some of them ─► SimulatedDisk ─ power loss ─► files ─► `windlass events`: the acknowledged events
//! ```
//!
//! `resumed_run` resumes a run from such a disk. The ordinary tests simulate a power loss at some moments; `scripts/torture` after
//! every operation, with every variant of unsynced data.

mod disk;
mod resumed_run;
mod trace;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::crash_setup::{can_trace, find_strace};
use super::sweep::{print_progress, tests_all_crash_points};
use crate::support::{TestWorld, WINDLASS};
use disk::{RandomGenerator, SimulatedDisk, UnsyncedData};
use trace::FileOperation;

const COMMANDS: &[&[&str]] = &[
    &["init"],
    &["task", "add", "First"],
    &["task", "add", "Second", "--depends", "T1"],
    &["task", "start", "T1"],
    &["task", "complete", "T1"],
    &["task", "add", "Third", "--label", "late"],
    &["--json", "run", "Mend the pump", "--agent", "command:echo '<promise>COMPLETE</promise>'"],
    &["task", "delete", "T3"],
];

/// The recorded operations of the program.
struct OperationRecording {
    operations: Vec<FileOperation>,
    root: PathBuf,
    log: Vec<String>,
    /// The number of acknowledged events by the number of operations.
    acknowledged: BTreeMap<usize, usize>,
}

impl OperationRecording {
    fn record(fail_point: Option<&str>) -> Self {
        Self::record_after(Vec::new(), &TestWorld::empty(), COMMANDS, fail_point)
    }

    /// Records commands in order, on a disk with earlier operations of other programs.
    fn record_after(
        operations: Vec<FileOperation>,
        world: &TestWorld,
        commands: &[&[&str]],
        fail_point: Option<&str>,
    ) -> Self {
        let root = world.directory.clone();
        let mut recording = Self { operations, root, log: Vec::new(), acknowledged: BTreeMap::new() };
        for words in commands {
            let before = recording.operations.len();
            recording.record_command(world, fail_point, words);
            let after = recording.record_command(world, fail_point, &["--json", "events"]);
            recording.log = after.lines().map(str::to_owned).collect();
            recording.record_printed_events(before);
            recording.acknowledged.insert(recording.operations.len(), recording.log.len());
        }
        recording
    }

    fn record_command(&mut self, world: &TestWorld, fail_point: Option<&str>, words: &[&str]) -> String {
        let variable = fail_point.map(|fail_point| ("WINDLASS_FAILPOINT", OsStr::new(fail_point)));
        self.record_command_with(world, variable.as_slice(), words)
    }

    fn record_command_with(&mut self, world: &TestWorld, variables: &[(&str, &OsStr)], words: &[&str]) -> String {
        let (trace, output_file) = (world.program_directory().join("trace"), world.program_directory().join("printed"));
        let mut command = world.program(find_strace().expect("it was looked for"));
        command.args(["-qq", "-f", "-y", "-xx", "-s", "10000000", "-e", "signal=none", "-e"]);
        command.arg(format!("trace={}", trace::STRACE_CALLS)).arg("-o").arg(&trace).arg(WINDLASS).args(words);
        command.envs(variables.iter().copied());
        let output_file = output_file.parent().unwrap().canonicalize().unwrap().join("printed");
        let status = command.stdout(File::create(&output_file).unwrap()).status().unwrap();
        assert!(status.success(), "{words:?}");
        self.operations.extend(trace::parse_trace(
            &fs::read_to_string(&trace).unwrap(),
            &world.directory,
            &output_file,
        ));
        fs::read_to_string(&output_file).unwrap()
    }

    /// Records as acknowledged the events that `windlass run` prints, at the time of the output.
    fn record_printed_events(&mut self, before: usize) {
        let event_numbers: BTreeMap<&str, usize> =
            self.log.iter().enumerate().map(|(index, line)| (line.as_str(), index + 1)).collect();
        for (index, operation) in self.operations.iter().enumerate().skip(before) {
            let FileOperation::Print(bytes) = operation else { continue };
            let text = String::from_utf8_lossy(bytes);
            if let Some(last) = text.lines().filter_map(|line| event_numbers.get(line)).max() {
                self.acknowledged.insert(index + 1, *last);
            }
        }
    }

    /// Returns the recording without the syncs of some files.
    fn without_syncs(mut self, is_removed: impl Fn(&PathBuf) -> bool) -> Self {
        let is_removed_sync =
            |operation: &FileOperation| matches!(operation, FileOperation::Sync(path) if is_removed(path));
        let (mut operations, mut new_indexes) = (Vec::new(), BTreeMap::new());
        for (index, operation) in self.operations.into_iter().enumerate() {
            new_indexes.insert(index, operations.len());
            if !is_removed_sync(&operation) {
                operations.push(operation);
            }
        }
        let new_index = |index| new_indexes.get(&index).copied().unwrap_or(operations.len());
        self.acknowledged = self.acknowledged.into_iter().map(|(index, count)| (new_index(index), count)).collect();
        Self { operations, ..self }
    }

    /// Simulates a power loss after this number of operations. Returns the failure, if there is one.
    fn lose_power(&self, after: usize, unsynced: UnsyncedData, seed: u64) -> Option<String> {
        let mut disk = SimulatedDisk::new(&self.root);
        self.operations.iter().take(after).for_each(|operation| disk.apply_operation(operation));
        self.check_disk(&disk, after, unsynced, seed)
    }

    /// Simulates a power loss of a disk in this state. Returns the failure, if there is one.
    fn check_disk(&self, disk: &SimulatedDisk, after: usize, unsynced: UnsyncedData, seed: u64) -> Option<String> {
        let acknowledged = self.acknowledged.range(..=after).next_back().map_or(0, |(_, count)| *count);
        let world = TestWorld::empty();
        disk.lose_power(unsynced, &mut RandomGenerator(seed), &world.directory);
        let output = world.run(&["--json", "events"]);
        let events: Vec<&str> = output.stdout.lines().collect();
        let failure = |details: String| Some(format!("after {after} ops, {unsynced:?} left, seed {seed}: {details}"));
        if output.code != 0 {
            // Before the first acknowledgement the store may be missing or incomplete.
            let is_unacknowledged = self.acknowledged.range(..=after).next_back().is_none();
            return if is_unacknowledged { None } else { failure(format!("{acknowledged} events are gone: {output}")) };
        }
        if events.len() < acknowledged
            || events.len() > self.log.len()
            || events.iter().zip(&self.log).any(|(event, expected)| event != expected)
        {
            return failure(format!("{} events, of {acknowledged} that were acknowledged", events.len()));
        }
        let doctor = world.run(&["doctor", "--trust"]);
        if doctor.code == 0 { None } else { failure(doctor.to_string()) }
    }

    /// Returns the moments of the acknowledgements, without unsynced data.
    fn acknowledged_moments(&self) -> impl Iterator<Item = (usize, UnsyncedData, u64)> {
        self.acknowledged.keys().map(|after| (*after, UnsyncedData::Nothing, 0))
    }

    /// Returns the moments of the acknowledgements and a number of random moments.
    fn sample_moments(&self, count: usize) -> Vec<(usize, UnsyncedData, u64)> {
        let mut random = RandomGenerator(1);
        let others = (0..count).map(|_| {
            let unsynced = [UnsyncedData::Nothing, UnsyncedData::Some, UnsyncedData::Torn][random.next_below(3)];
            (random.next_below(self.operations.len() + 1), unsynced, random.next_below(1000) as u64)
        });
        self.acknowledged_moments().chain(others.collect::<Vec<_>>()).collect()
    }

    /// Simulates a power loss at each of these moments, and returns the failures.
    fn find_failures(&self, moments: &[(usize, UnsyncedData, u64)]) -> Vec<String> {
        moments.iter().filter_map(|(after, unsynced, seed)| self.lose_power(*after, *unsynced, *seed)).collect()
    }
}

#[test]
fn acknowledged_events_survive_power_loss_unchanged() {
    if !can_trace() {
        return;
    }
    let recording = OperationRecording::record(None);
    assert!(recording.acknowledged.len() > 20, "{:?}", recording.acknowledged);
    if !tests_all_crash_points() {
        assert_eq!(recording.find_failures(&recording.sample_moments(60)), [""; 0]);
        return;
    }
    let mut failures = Vec::new();
    let mut disk = SimulatedDisk::new(&recording.root);
    for after in 0..=recording.operations.len() {
        for (unsynced, seed) in [
            (UnsyncedData::Nothing, 0),
            (UnsyncedData::Some, 1),
            (UnsyncedData::Some, 2),
            (UnsyncedData::Torn, 3),
            (UnsyncedData::Torn, 4),
        ] {
            failures.extend(recording.check_disk(&disk, after, unsynced, seed));
        }
        recording.operations.get(after).into_iter().for_each(|operation| disk.apply_operation(operation));
    }
    print_progress(&format!(
        "without power: {} moments, {} of them wrong\n",
        5 * (recording.operations.len() + 1),
        failures.len()
    ));
    assert_eq!(failures, [""; 0]);
}

/// A checkout may have created `.windlass` without a sync, and no other program syncs the directory.
#[test]
fn acknowledged_events_survive_power_loss_in_unsynced_existing_directory() {
    if !can_trace() {
        return;
    }
    let world = TestWorld::empty();
    let directory = world.path(".windlass");
    fs::create_dir(&directory).unwrap();
    let commands: &[&[&str]] = &[&["init"], &["task", "add", "First"]];
    let recording =
        OperationRecording::record_after(vec![FileOperation::MakeDirectory(directory)], &world, commands, None);
    assert!(!recording.log.is_empty());
    assert_eq!(recording.find_failures(&recording.acknowledged_moments().collect::<Vec<_>>()), [""; 0]);
}

/// The decisions of a person and an export are durable when the command returns.
#[test]
fn files_that_are_no_store_are_not_lost_either() {
    if !can_trace() {
        return;
    }
    let world = TestWorld::empty();
    let state = world.path("person/state");
    let mut recording = OperationRecording {
        operations: Vec::new(),
        root: world.directory.clone(),
        log: Vec::new(),
        acknowledged: BTreeMap::new(),
    };
    let settings = world.program_directory().join("settings.json");
    fs::write(&settings, r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}"#).unwrap();
    let commands: &[&[&str]] = &[
        &["init"],
        &["install", "claude", "--yes"],
        &["config", "import", settings.to_str().unwrap(), "--yes"],
        &["trust", "--yes"],
        &["hooks", "disable", "claude-true"],
        &["uninstall", "claude", "--yes"],
        &["trust", "--revoke"],
        &["backup", "kept.db"],
    ];
    for words in commands {
        recording.record_command_with(&world, &[("WINDLASS_STATE_DIR", state.as_os_str())], words);
        let mut disk = SimulatedDisk::new(&recording.root);
        recording.operations.iter().for_each(|operation| disk.apply_operation(operation));
        let after = TestWorld::empty();
        disk.lose_power(UnsyncedData::Nothing, &mut RandomGenerator(0), &after.directory);
        assert_eq!(plain_files(&after.directory), plain_files(&world.directory), "after {words:?}");
    }
    assert!(plain_files(&world.directory).contains_key(Path::new(".windlass/config.yaml")));
}

/// Returns the content of every file below a directory, except for the store.
fn plain_files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut files, mut directories) = (BTreeMap::new(), vec![directory.to_owned()]);
    while let Some(subdirectory) = directories.pop() {
        for entry in fs::read_dir(&subdirectory).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
            } else if !entry.file_name().to_string_lossy().starts_with("windlass.db") {
                files.insert(path.strip_prefix(directory).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// After a failed sync the state of the disk is unknown. The program checks the store before it acknowledges an event.
#[test]
fn sync_failing_once_neither_loses_nor_duplicates_added_task() {
    if !can_trace() {
        return;
    }
    let world = TestWorld::with_tasks(&["First"]);
    let trace = world.program_directory().join("trace");
    let mut command = world.program(find_strace().expect("it was looked for"));
    command.args(["-qq", "-f", "-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO:when=1", "-o"]);
    let output = world.run_command(command.arg(&trace).arg(WINDLASS).args(["task", "add", "Second"]));
    assert!(fs::read_to_string(&trace).unwrap().contains("(INJECTED)"));
    let tasks = world.json_lines(&["task", "list"]);
    let goals: Vec<_> = tasks.iter().map(|task| task["goal"].as_str().unwrap()).collect();
    assert_eq!((output.code, goals), (0, vec!["First", "Second"]), "{output}");
    assert_eq!(world.run(&["doctor"]).code, 0);
}

/// The control: the test detects missing syncs.
#[test]
fn missing_syncs_are_detected() {
    if !can_trace() {
        return;
    }
    let is_detected = |recording: OperationRecording| {
        let moments: Vec<_> = recording.acknowledged_moments().collect();
        !recording.find_failures(&moments).is_empty()
    };
    assert!(is_detected(OperationRecording::record(Some("store.full=error"))), "synchronous=NORMAL");
    let is_log = |path: &PathBuf| path.as_os_str().as_encoded_bytes().ends_with(b"-wal");
    assert!(is_detected(OperationRecording::record(None).without_syncs(is_log)), "of the write-ahead log");
    let is_directory = |path: &PathBuf| path.extension().is_none();
    assert!(is_detected(OperationRecording::record(None).without_syncs(is_directory)), "of the directories");
}
