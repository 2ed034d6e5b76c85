//! A shelf of programs that misbehave, as hooks and as agents, again and again: afterwards nothing is left of them. No process,
//! no lock, no file that nobody knows of; and whoever ran them has no more descriptors than before.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use super::processes::{PATIENCE, Process, await_none};
use super::sweep::{is_whole, say};
use crate::support::World;
use crate::support::hooked::hooked;

/// What they are, and what they do. `$LONG` is to be there for longer than anybody waits, and known by its words.
const SHELF: &[(&str, &str)] = &[
    ("ends well", "echo fine"),
    ("dies", "kill -SEGV $$"),
    ("hangs", "$LONG"),
    ("does not want to end", "trap '' TERM HUP INT; $LONG; $LONG"),
    ("forks when it is asked to end", "trap '$LONG & $LONG &' TERM; while :; do sleep 0.01; done"),
    ("leaves a daemon", "setsid sh -c '$LONG &' >/dev/null 2>&1 </dev/null"),
    ("leaves a daemon without a name", "env -i PATH=\"$PATH\" setsid sh -c \"$LONG &\" >/dev/null 2>&1 </dev/null"),
    ("leaves somebody with its output", "$LONG & echo left"),
    ("leaves many", "i=0; while [ $i -lt 60 ]; do $LONG & i=$((i+1)); done; $LONG"),
    ("goes on in the next generation", "gen() { sh -c '(sleep 0.01; sh \"$0\") & exit' \"$0\"; }; (gen) & exit 0"),
    ("stops", "kill -STOP $$"),
    ("stops everybody around it", "$LONG & kill -STOP 0"),
    ("stops its supervisor", "kill -STOP $PPID; $LONG"),
    ("stops its supervisor and goes", "setsid $LONG & kill -STOP $PPID; exit 0"),
    ("kills its supervisor", "kill -9 $PPID; $LONG"),
    ("floods", "head -c 20000000 /dev/zero; head -c 20000000 /dev/zero >&2"),
    ("says what is no text", "printf '\\377\\376\\033[2J\\033]0;owned\\007\\000'; exit 3"),
    ("answers too much", "printf '%0100000d' 0 | tr 0 '['"),
    ("closes everything", "exec <&- >&- 2>&-; $LONG"),
    ("holds the store", "exec 9<>.windlass/windlass.db; $LONG"),
    ("waits for nobody", "mkfifo pipe.$$; (cat pipe.$$) & rm pipe.$$; cat"),
];

/// The programs end by themselves, or after so long.
const TIMEOUT: &str = "250ms";

struct Shelf {
    world: World,
    /// What only programs of this shelf have in their words.
    mark: String,
}

impl Shelf {
    fn new(rounds: usize, hooks: &str) -> Self {
        let mark = format!("987654.{}", std::process::id());
        let limits = format!("{{max_iterations: {rounds}, max_failures: 1000, turn_time: {TIMEOUT}}}");
        let world = hooked(&format!("limits: {limits}\n{hooks}"));
        let shelf = Self { world, mark };
        for (number, (_, script)) in SHELF.iter().enumerate() {
            shelf.world.write(&format!(".windlass/shelf/{number}.sh"), shelf.script(number, script));
        }
        // The descriptors of whoever runs the hooks: that is above the supervisor.
        let count = "run=$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$PPID/status)\nls /proc/$run/fd | wc -l >> .windlass/shelf/descriptors\n";
        shelf.world.write(".windlass/shelf/count.sh", count);
        shelf.world.ok(&["trust", "--yes"]);
        shelf
    }

    /// It leaves a word that it was there: what never ran leaves nothing else either.
    fn script(&self, number: usize, script: &str) -> String {
        format!("echo {number} >> .windlass/shelf/ran\nLONG='sleep {}'\n{script}\n", self.mark)
    }

    /// Which of them have run, by number.
    fn ran(&self) -> BTreeSet<usize> {
        self.world.read(".windlass/shelf/ran").lines().filter_map(|number| number.parse().ok()).collect()
    }

    fn alive(&self) -> Vec<Process> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let found = entries.filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let words = String::from_utf8_lossy(&fs::read(entry.path().join("cmdline")).ok()?).replace('\0', " ");
            let is_here =
                fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&self.world.directory));
            (words.contains(&self.mark) || is_here).then_some(Process { pid, command: words })
        });
        found.collect()
    }

    /// Every file of the project, but for what a session leaves on purpose.
    fn files(&self) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::new();
        let mut places = vec![self.world.directory.clone()];
        while let Some(place) = places.pop() {
            for entry in fs::read_dir(&place).into_iter().flatten().flatten() {
                let path = entry.path();
                match path.is_dir() && path.file_name() != Some("runs".as_ref()) {
                    true => places.push(path),
                    false => drop(found.insert(path)),
                }
            }
        }
        found
    }

    fn run(&self, words: &[&str]) {
        let mut command = self.world.command(words);
        let ran = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.code().is_some_and(|code| code != 101), "{words:?}: {:?} {said}", ran.status);
    }

    /// What is left that should not be: processes, files, and what `doctor` has to say.
    fn left(&self, patience: Duration, before: &BTreeSet<PathBuf>) -> Vec<String> {
        let alive = await_none(patience, || self.alive());
        let mut left: Vec<String> = alive.into_iter().map(|process| format!("process {}", process.command)).collect();
        let is_known = |path: &&Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.starts_with("windlass.db") || ["runs", "descriptors", "ran", "owners", "prune.lock"].contains(&&*name)
        };
        let files = self.files();
        let new = files.difference(before).filter(|path| !is_known(&path.as_path()));
        left.extend(new.map(|path| format!("file {}", path.display())));
        let doctor = self.world.run(&["doctor"]);
        left.extend((doctor.code != 0).then(|| doctor.to_string()));
        left
    }

    #[track_caller]
    fn assert_nothing_is_left(&self, before: &BTreeSet<PathBuf>, what: &str) {
        assert_eq!(self.left(PATIENCE, before), [""; 0], "{what}");
    }

    /// How many descriptors whoever ran the hooks had, round after round.
    fn descriptors(&self) -> Vec<usize> {
        let counted = self.world.read(".windlass/shelf/descriptors");
        counted.split_whitespace().map(|count| count.parse().unwrap()).collect()
    }
}

#[test]
fn nothing_is_left_of_hooks_that_misbehave() {
    let rounds = if is_whole() { 50 } else { 2 };
    let hook = |(number, (name, _)): (usize, &(&str, &str))| {
        format!("    - {{name: {name}, command: sh .windlass/shelf/{number}.sh, timeout: {TIMEOUT}}}\n")
    };
    let hooks: String = SHELF.iter().enumerate().map(hook).collect();
    let count = "    - {name: count, command: sh .windlass/shelf/count.sh}\n";
    let shelf = Shelf::new(rounds, &format!("hooks:\n  post_iteration:\n{hooks}{count}"));
    let before = shelf.files();
    shelf.run(&["run", "Mend the pump", "--agent", "command:echo on it"]);
    shelf.assert_nothing_is_left(&before, "hooks");
    let counted = shelf.descriptors();
    assert_eq!(counted.len(), rounds);
    // A second look at the store has three for a while. What is left of hooks grows with them, and of rounds with these.
    let (early, late) = counted.split_at(rounds / 2);
    let chance = if is_whole() { 0 } else { 3 };
    assert!(late.iter().min() <= early.iter().min().map(|least| least + chance).as_ref(), "descriptors: {counted:?}");
    assert_eq!(shelf.ran(), (0..SHELF.len()).collect());
    if is_whole() {
        say(&format!("hooks that misbehave: {} programs, 0 of them wrong\n", rounds * SHELF.len()));
    }
}

#[test]
fn nothing_is_left_of_agents_that_misbehave() {
    let shelf = Shelf::new(1, "");
    let rounds = if is_whole() { 20 } else { 1 };
    for round in 0..rounds {
        for (number, (what, _)) in SHELF.iter().enumerate() {
            let before = shelf.files();
            let agent = format!("command:sh .windlass/shelf/{number}.sh");
            let goal = format!("Round {round} of {number}");
            shelf.run(&["run", &goal, "--agent", &agent]);
            shelf.assert_nothing_is_left(&before, what);
        }
    }
    assert_eq!(shelf.ran(), (0..SHELF.len()).collect());
    if is_whole() {
        say(&format!("agents that misbehave: {} programs, 0 of them wrong\n", rounds * SHELF.len()));
    }
}

/// That it would be seen: a process, a file, damage, and a descriptor that were left.
#[test]
fn leftovers_of_programs_are_detected() {
    let shelf = Shelf::new(1, "");
    let before = shelf.files();
    assert_eq!(shelf.left(PATIENCE, &before), [""; 0]);

    let look = || shelf.left(Duration::ZERO, &before).join("\n");
    let mut sleeper = shelf.world.program("sleep").arg(&shelf.mark).current_dir("/").spawn().unwrap();
    // Until it runs its program it is a copy of this one.
    while !look().starts_with("process sleep 987654.") {
        assert!(sleeper.try_wait().unwrap().is_none(), "it is there until it is killed");
    }
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let mut stranger = shelf.world.program("cat").stdin(Stdio::piped()).spawn().unwrap();
    while !look().starts_with("process cat") {
        assert!(stranger.try_wait().unwrap().is_none(), "it is there until it is killed");
    }
    drop(stranger.stdin.take());
    stranger.wait().unwrap();

    shelf.world.write("forgotten", "");
    assert!(look().starts_with("file ") && look().ends_with("/forgotten"), "{}", look());
    fs::remove_file(shelf.world.path("forgotten")).unwrap();
    assert_eq!(look(), "");
    fs::write(shelf.world.path(".windlass/windlass.db"), "no store").unwrap();
    assert!(look().contains("windlass.db"), "{}", look());

    // A shell in the place of the program, another in that of the supervisor.
    let count = "sh -c 'sh .windlass/shelf/count.sh; :'";
    let script = format!("{count}; {count}; exec 9</dev/null; {count}; :");
    assert!(shelf.world.program("sh").args(["-c", &script]).status().unwrap().success());
    let counted = shelf.descriptors();
    assert_eq!(counted, [counted[0], counted[0], counted[0] + 1]);
}
