//! Power that is lost: what the program asked of the file system is recorded once, and played on a disk that keeps only what
//! was synced. Whatever that leaves, every event that was acknowledged before is in the log, as it was, and nothing else is.
//!
//! ```text
//! commands ─ strace ─► ops ─ some of them ─► Disk ─ power is lost ─► files ─► `windlass events` is what was acknowledged
//! ```
//!
//! `going_on` has a whole run go on from such disks. The ordinary tests lose it at some moments; `scripts/torture` after every op, in every way.

mod disk;
mod going_on;
mod trace;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::stage::{can_trace, strace};
use super::sweep::{is_whole, say};
use crate::support::{WINDLASS, World};
use disk::{Chance, Disk, Left};
use trace::Op;

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

/// What the program did.
struct Recording {
    ops: Vec<Op>,
    root: PathBuf,
    log: Vec<String>,
    /// How many events are acknowledged after so many ops.
    acknowledged: BTreeMap<usize, usize>,
}

impl Recording {
    fn of(fail: Option<&str>) -> Self {
        Self::after(Vec::new(), &World::empty(), COMMANDS, fail)
    }

    /// Commands one after another, each looked at, on a disk to which others have done something.
    fn after(ops: Vec<Op>, world: &World, commands: &[&[&str]], fail: Option<&str>) -> Self {
        let root = world.directory.clone();
        let mut recording = Self { ops, root, log: Vec::new(), acknowledged: BTreeMap::new() };
        for words in commands {
            let before = recording.ops.len();
            recording.run(world, fail, words);
            let after = recording.run(world, fail, &["--json", "events"]);
            recording.log = after.lines().map(str::to_owned).collect();
            recording.acknowledge(before);
            recording.acknowledged.insert(recording.ops.len(), recording.log.len());
        }
        recording
    }

    fn run(&mut self, world: &World, fail: Option<&str>, words: &[&str]) -> String {
        let variable = fail.map(|fail| ("WINDLASS_FAILPOINT", OsStr::new(fail)));
        self.run_with(world, variable.as_slice(), words)
    }

    fn run_with(&mut self, world: &World, variables: &[(&str, &OsStr)], words: &[&str]) -> String {
        let (trace, printed) = (world.programs().join("trace"), world.programs().join("printed"));
        let mut command = world.program(strace().expect("it was looked for"));
        command.args(["-qq", "-f", "-y", "-xx", "-s", "10000000", "-e", "signal=none", "-e"]);
        command.arg(format!("trace={}", trace::CALLS)).arg("-o").arg(&trace).arg(WINDLASS).args(words);
        command.envs(variables.iter().copied());
        let printed = printed.parent().unwrap().canonicalize().unwrap().join("printed");
        let ended = command.stdout(File::create(&printed).unwrap()).status().unwrap();
        assert!(ended.success(), "{words:?}");
        self.ops.extend(trace::read(&fs::read_to_string(&trace).unwrap(), &world.directory, &printed));
        fs::read_to_string(&printed).unwrap()
    }

    /// What `run` prints are events of the log: each is acknowledged when it is printed.
    fn acknowledge(&mut self, before: usize) {
        let place: BTreeMap<&str, usize> =
            self.log.iter().enumerate().map(|(place, line)| (line.as_str(), place + 1)).collect();
        for (number, op) in self.ops.iter().enumerate().skip(before) {
            let Op::Say(bytes) = op else { continue };
            let said = String::from_utf8_lossy(bytes);
            if let Some(most) = said.lines().filter_map(|line| place.get(line)).max() {
                self.acknowledged.insert(number + 1, *most);
            }
        }
    }

    fn without_syncs(mut self, of: impl Fn(&PathBuf) -> bool) -> Self {
        let is_left_out = |op: &Op| matches!(op, Op::Sync(path) if of(path));
        let (mut ops, mut moved) = (Vec::new(), BTreeMap::new());
        for (number, op) in self.ops.into_iter().enumerate() {
            moved.insert(number, ops.len());
            if !is_left_out(&op) {
                ops.push(op);
            }
        }
        let place = |number| moved.get(&number).copied().unwrap_or(ops.len());
        self.acknowledged = self.acknowledged.into_iter().map(|(number, many)| (place(number), many)).collect();
        Self { ops, ..self }
    }

    /// The power is lost after so many ops. What is wrong then, if something is.
    fn lose_power(&self, after: usize, left: Left, seed: u64) -> Option<String> {
        let mut disk = Disk::new(&self.root);
        self.ops.iter().take(after).for_each(|op| disk.take(op));
        self.look(&disk, after, left, seed)
    }

    fn look(&self, disk: &Disk, after: usize, left: Left, seed: u64) -> Option<String> {
        let acknowledged = self.acknowledged.range(..=after).next_back().map_or(0, |(_, many)| *many);
        let world = World::empty();
        disk.lose_power(left, &mut Chance(seed), &world.directory);
        let ran = world.run(&["--json", "events"]);
        let found: Vec<&str> = ran.stdout.lines().collect();
        let wrong = |what: String| Some(format!("after {after} ops, {left:?} left, seed {seed}: {what}"));
        if ran.code != 0 {
            // Where nothing was promised, there may be nothing, or half of a beginning.
            let nothing = self.acknowledged.range(..=after).next_back().is_none();
            return if nothing { None } else { wrong(format!("{acknowledged} events are gone: {ran}")) };
        }
        if found.len() < acknowledged
            || found.len() > self.log.len()
            || found.iter().zip(&self.log).any(|(found, said)| found != said)
        {
            return wrong(format!("{} events, of {acknowledged} that were acknowledged", found.len()));
        }
        let doctor = world.run(&["doctor", "--trust"]);
        if doctor.code == 0 { None } else { wrong(doctor.to_string()) }
    }

    /// The moments in which something was acknowledged.
    fn acknowledged_moments(&self) -> impl Iterator<Item = (usize, Left, u64)> {
        self.acknowledged.keys().map(|after| (*after, Left::Nothing, 0))
    }

    /// Those, and some others.
    fn sample(&self, many: usize) -> Vec<(usize, Left, u64)> {
        let mut chance = Chance(1);
        let others = (0..many).map(|_| {
            let left = [Left::Nothing, Left::Some, Left::Torn][chance.below(3)];
            (chance.below(self.ops.len() + 1), left, chance.below(1000) as u64)
        });
        self.acknowledged_moments().chain(others.collect::<Vec<_>>()).collect()
    }

    fn wrong(&self, moments: &[(usize, Left, u64)]) -> Vec<String> {
        moments.iter().filter_map(|(after, left, seed)| self.lose_power(*after, *left, *seed)).collect()
    }
}

#[test]
fn nothing_acknowledged_is_lost_with_the_power() {
    if !can_trace() {
        return;
    }
    let recording = Recording::of(None);
    assert!(recording.acknowledged.len() > 20, "{:?}", recording.acknowledged);
    if !is_whole() {
        assert_eq!(recording.wrong(&recording.sample(60)), [""; 0]);
        return;
    }
    let mut wrong = Vec::new();
    let mut disk = Disk::new(&recording.root);
    for after in 0..=recording.ops.len() {
        for (left, seed) in [(Left::Nothing, 0), (Left::Some, 1), (Left::Some, 2), (Left::Torn, 3), (Left::Torn, 4)] {
            wrong.extend(recording.look(&disk, after, left, seed));
        }
        recording.ops.get(after).into_iter().for_each(|op| disk.take(op));
    }
    say(&format!("without power: {} moments, {} of them wrong\n", 5 * (recording.ops.len() + 1), wrong.len()));
    assert_eq!(wrong, [""; 0]);
}

/// The directory of a project that comes with a checkout is as new, and nobody else sees to it.
#[test]
fn nothing_is_lost_with_a_directory_that_others_have_made() {
    if !can_trace() {
        return;
    }
    let world = World::empty();
    let directory = world.path(".windlass");
    fs::create_dir(&directory).unwrap();
    let commands: &[&[&str]] = &[&["init"], &["task", "add", "First"]];
    let recording = Recording::after(vec![Op::Make(directory)], &world, commands, None);
    assert!(!recording.log.is_empty());
    assert_eq!(recording.wrong(&recording.told().collect::<Vec<_>>()), [""; 0]);
}

/// What a person has decided and what was written for others: on the disk when the command that says so returns.
#[test]
fn files_that_are_no_store_are_not_lost_either() {
    if !can_trace() {
        return;
    }
    let world = World::empty();
    let state = world.path("person/state");
    let mut recording =
        Recording { ops: Vec::new(), root: world.directory.clone(), log: Vec::new(), acknowledged: BTreeMap::new() };
    let settings = world.programs().join("settings.json");
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
        recording.run_with(&world, &[("WINDLASS_STATE_DIR", state.as_os_str())], words);
        let mut disk = Disk::new(&recording.root);
        recording.ops.iter().for_each(|op| disk.take(op));
        let after = World::empty();
        disk.lose_power(Left::Nothing, &mut Chance(0), &after.directory);
        assert_eq!(plain_files(&after.directory), plain_files(&world.directory), "after {words:?}");
    }
    assert!(plain_files(&world.directory).contains_key(Path::new(".windlass/config.yaml")));
}

/// Every file below a directory with what is in it, but for the store's.
fn plain_files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut places) = (BTreeMap::new(), vec![directory.to_owned()]);
    while let Some(place) = places.pop() {
        for entry in fs::read_dir(&place).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                places.push(path);
            } else if !entry.file_name().to_string_lossy().starts_with("windlass.db") {
                found.insert(path.strip_prefix(directory).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// A sync that fails says nothing of what is on the disk: it is looked at before anything is said.
#[test]
fn a_sync_that_fails_once_neither_loses_nor_doubles_anything() {
    if !can_trace() {
        return;
    }
    let world = World::with_tasks(&["First"]);
    let trace = world.programs().join("trace");
    let mut command = world.program(strace().expect("it was looked for"));
    command.args(["-qq", "-f", "-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO:when=1", "-o"]);
    let ran = world.finish(command.arg(&trace).arg(WINDLASS).args(["task", "add", "Second"]));
    assert!(fs::read_to_string(&trace).unwrap().contains("(INJECTED)"));
    let listed = world.lines(&["task", "list"]);
    let goals: Vec<_> = listed.iter().map(|task| task["goal"].as_str().unwrap()).collect();
    assert_eq!((ran.code, goals), (0, vec!["First", "Second"]), "{ran}");
    assert_eq!(world.run(&["doctor"]).code, 0);
}

/// That it would be seen.
#[test]
fn missing_syncs_are_detected() {
    if !can_trace() {
        return;
    }
    let is_found = |recording: Recording| {
        let moments: Vec<_> = recording.acknowledged_moments().collect();
        !recording.wrong(&moments).is_empty()
    };
    assert!(is_found(Recording::of(Some("store.full=error"))), "synchronous=NORMAL");
    let of_log = |path: &PathBuf| path.as_os_str().as_encoded_bytes().ends_with(b"-wal");
    assert!(is_found(Recording::of(None).without_syncs(of_log)), "of the write-ahead log");
    let of_directory = |path: &PathBuf| path.extension().is_none();
    assert!(is_found(Recording::of(None).without_syncs(of_directory)), "of the directories");
}
