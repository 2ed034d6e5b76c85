//! Power that is lost in a run, which somebody starts again when it is back: it comes to what it comes to undisturbed, and what was
//! acknowledged is still there.

use std::fs;
use std::path::Path;

use super::super::stage::can_trace;
use super::super::sweep::{is_whole, say};
use super::super::{log, skeleton};
use super::disk::{Chance, Disk, Left};
use super::trace::Op;
use super::{Recording, World};

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
const COMMANDS: &[&[&str]] =
    &[&["init"], &["task", "add", "First"], &["task", "add", "Second", "--depends", "T1"], RUN];

/// A run that was recorded, and what it came to.
struct Run {
    recording: Recording,
    /// The first op of the run itself.
    began: usize,
    came_to: String,
}

impl Run {
    fn new() -> Self {
        let world = World::empty();
        let (directory, file) = (world.path(".windlass"), world.path(".windlass/config.yaml"));
        fs::create_dir(&directory).unwrap();
        fs::write(&file, CONFIG).unwrap();
        // It came with a checkout, long ago.
        let there = vec![
            Op::Make(directory.clone()),
            Op::Create(file.clone()),
            Op::Write(file.clone(), 0, CONFIG.into()),
            Op::Sync(file),
            Op::Sync(directory),
            Op::Sync(world.directory.clone()),
        ];
        let recording = Recording::after(there, &world, COMMANDS, None);
        let before = recording.log.iter().position(|line| line.contains("\"session_started\"")).unwrap();
        let began = recording.acknowledged.iter().rfind(|(_, many)| **many <= before).map(|(after, _)| *after).unwrap();
        Self { recording, began, came_to: came_to(&world) }
    }

    /// The power is lost after so many ops, and somebody runs it again. What is wrong then, if something is.
    fn go_on(&self, after: usize, left: Left, seed: u64) -> Option<String> {
        let mut disk = Disk::new(&self.recording.root);
        self.recording.ops.iter().take(after).for_each(|op| disk.take(op));
        let world = World::empty();
        disk.lose_power(left, &mut Chance(seed), &world.directory);
        let wrong = |what: String| Some(format!("after {after} ops, {left:?} left, seed {seed}: {what}"));
        let ran = world.run(RUN);
        if ran.code != 0 {
            return wrong(ran.to_string());
        }
        let acknowledged = self.recording.acknowledged.range(..=after).next_back().map_or(0, |(_, many)| *many);
        let log = world.run(&["--json", "events"]).stdout;
        let lost =
            self.recording.log.iter().take(acknowledged).zip(log.lines().map(Some).chain(std::iter::repeat(None)));
        if let Some((line, found)) = lost.into_iter().find(|(line, found)| *found != Some(line)) {
            return wrong(format!("acknowledged was {line}, and there is {found:?}"));
        }
        let came_to = came_to(&world);
        if came_to != self.came_to {
            return wrong(format!("it came to\n{came_to}\nundisturbed\n{}", self.came_to));
        }
        None
    }
}

/// The tasks, the story without its interruptions, and whether `doctor` is content.
fn came_to(world: &World) -> String {
    let tasks = world.run(&["--json", "task", "list", "--all"]).stdout;
    let tasks = tasks.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut told: Vec<String> =
        tasks.map(|task| format!("{} {} {}", task["id"], task["state"], task["goal"])).collect();
    told.extend(skeleton::of(&log::read(&world.run(&["--json", "events"]).stdout)));
    let doctor = world.run(&["doctor", "--trust"]);
    told.push(if doctor.code == 0 { "sound".to_owned() } else { doctor.to_string() });
    told.extend(left_beside(&world.directory));
    told.join("\n")
}

/// What is left of files that were only half written.
fn left_beside(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory.join(".windlass")).unwrap().flatten();
    names.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|name| name.ends_with(".new")).collect()
}

#[test]
fn run_resumes_after_power_loss() {
    if !can_trace() {
        return;
    }
    let run = Run::new();
    let ops = run.began..=run.recording.ops.len();
    let ways = [Left::Nothing, Left::Some, Left::Torn];
    let moments: Vec<_> = if is_whole() {
        ops.flat_map(|after| ways.map(|left| (after, left))).collect()
    } else {
        let step = (ops.end() - ops.start()) / 7;
        ops.skip(step / 2).step_by(step).zip(ways.into_iter().cycle()).collect()
    };
    let wrong: Vec<String> =
        moments.iter().filter_map(|(after, left)| run.go_on(*after, *left, *after as u64)).collect();
    if is_whole() {
        say(&format!("without power, and gone on with: {} moments, {} of them wrong\n", moments.len(), wrong.len()));
    }
    assert_eq!(wrong, [""; 0]);
    assert!(moments.len() >= 7, "{moments:?}");
}
