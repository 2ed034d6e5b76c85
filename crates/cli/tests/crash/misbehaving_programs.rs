//! Misbehaving programs as hooks and as agents, in many rounds. Afterwards no process, lock or unknown file remains, and the runner
//! has no more file descriptors than before.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use super::processes::{EXIT_TIMEOUT, LivingProcess, await_no_processes};
use super::sweep::{print_progress, tests_all_crash_points};
use crate::support::TestWorld;
use crate::support::hook_project::create_hook_project;

/// The name and the script of each program. `$LONG` sleeps for longer than any timeout, and its argument identifies the process.
const PROGRAMS: &[(&str, &str)] = &[
    ("ends well", "echo fine"),
    ("dies", "kill -SEGV $$"),
    ("hangs", "$LONG"),
    ("does not want to end", "trap '' TERM HUP INT; $LONG; $LONG"),
    ("forks when it is asked to end", "trap '$LONG & $LONG &' TERM; while :; do sleep 0.01; done"),
    ("leaves a daemon", "setsid sh -c '$LONG &' >/dev/null 2>&1 </dev/null"),
    ("leaves a daemon without a name", "env -i PATH=\"$PATH\" setsid sh -c \"$LONG &\" >/dev/null 2>&1 </dev/null"),
    ("leaves a child with its output", "$LONG & echo left"),
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
    ("waits for a writer that never comes", "mkfifo pipe.$$; (cat pipe.$$) & rm pipe.$$; cat"),
];

/// The time after which Windlass ends a program.
const PROGRAM_TIMEOUT: &str = "250ms";

/// A project with the misbehaving programs.
struct MisbehavingProject {
    world: TestWorld,
    /// An argument that only the programs of this project have.
    marker: String,
}

impl MisbehavingProject {
    fn new(rounds: usize, hooks: &str) -> Self {
        let marker = format!("987654.{}", std::process::id());
        let limits = format!("{{max_iterations: {rounds}, max_failures: 1000, turn_time: {PROGRAM_TIMEOUT}}}");
        let world = create_hook_project(&format!("limits: {limits}\n{hooks}"));
        let project = Self { world, marker };
        for (number, (_, script)) in PROGRAMS.iter().enumerate() {
            project.world.write(&format!(".windlass/misbehaving/{number}.sh"), project.wrap_script(number, script));
        }
        // Counts the descriptors of the supervisor's parent, which runs the hooks.
        let count = "run=$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$PPID/status)\nls /proc/$run/fd | wc -l >> .windlass/misbehaving/descriptors\n";
        project.world.write(".windlass/misbehaving/count.sh", count);
        project.world.run_ok(&["trust", "--yes"]);
        project
    }

    /// Returns a script that records its start: a program that never ran would leave nothing behind either.
    fn wrap_script(&self, number: usize, script: &str) -> String {
        format!("echo {number} >> .windlass/misbehaving/ran\nLONG='sleep {}'\n{script}\n", self.marker)
    }

    /// Returns the numbers of the programs that have run.
    fn programs_run(&self) -> BTreeSet<usize> {
        self.world.read_file(".windlass/misbehaving/ran").lines().filter_map(|number| number.parse().ok()).collect()
    }

    /// Returns the living processes of the programs.
    fn find_processes(&self) -> Vec<LivingProcess> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let processes = entries.filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let words = String::from_utf8_lossy(&fs::read(entry.path().join("cmdline")).ok()?).replace('\0', " ");
            let is_here =
                fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&self.world.directory));
            (words.contains(&self.marker) || is_here).then_some(LivingProcess { pid, command: words })
        });
        processes.collect()
    }

    /// Returns every file of the project, except for the records of sessions.
    fn files(&self) -> BTreeSet<PathBuf> {
        let mut files = BTreeSet::new();
        let mut directories = vec![self.world.directory.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let path = entry.path();
                match path.is_dir() && path.file_name() != Some("runs".as_ref()) {
                    true => directories.push(path),
                    false => drop(files.insert(path)),
                }
            }
        }
        files
    }

    /// Runs a command, which may fail but must not panic.
    fn run_windlass(&self, words: &[&str]) {
        let mut command = self.world.command(words);
        let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
        let error_text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code != 101), "{words:?}: {:?} {error_text}", output.status);
    }

    /// Returns the leftovers: processes, files, and problems that `doctor` reports.
    fn find_leftovers(&self, timeout: Duration, before: &BTreeSet<PathBuf>) -> Vec<String> {
        let processes = await_no_processes(timeout, || self.find_processes());
        let mut leftovers: Vec<String> =
            processes.into_iter().map(|process| format!("process {}", process.command)).collect();
        let is_known = |path: &&Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.starts_with("windlass.db") || ["runs", "descriptors", "ran", "owners", "prune.lock"].contains(&&*name)
        };
        let files = self.files();
        let new_files = files.difference(before).filter(|path| !is_known(&path.as_path()));
        leftovers.extend(new_files.map(|path| format!("file {}", path.display())));
        let doctor = self.world.run(&["doctor"]);
        leftovers.extend((doctor.code != 0).then(|| doctor.to_string()));
        leftovers
    }

    #[track_caller]
    fn assert_no_leftovers(&self, before: &BTreeSet<PathBuf>, context: &str) {
        assert_eq!(self.find_leftovers(EXIT_TIMEOUT, before), [""; 0], "{context}");
    }

    /// Returns the number of descriptors of the runner in each round.
    fn descriptor_counts(&self) -> Vec<usize> {
        let counts = self.world.read_file(".windlass/misbehaving/descriptors");
        counts.split_whitespace().map(|count| count.parse().unwrap()).collect()
    }
}

#[test]
fn misbehaving_hooks_leave_no_processes_files_or_descriptors() {
    let rounds = if tests_all_crash_points() { 50 } else { 2 };
    let hook = |(number, (name, _)): (usize, &(&str, &str))| {
        format!("    - {{name: {name}, command: sh .windlass/misbehaving/{number}.sh, timeout: {PROGRAM_TIMEOUT}}}\n")
    };
    let hooks: String = PROGRAMS.iter().enumerate().map(hook).collect();
    let count = "    - {name: count, command: sh .windlass/misbehaving/count.sh}\n";
    let project = MisbehavingProject::new(rounds, &format!("hooks:\n  post_iteration:\n{hooks}{count}"));
    let before = project.files();
    project.run_windlass(&["run", "Mend the pump", "--agent", "command:echo on it"]);
    project.assert_no_leftovers(&before, "hooks");
    let descriptor_counts = project.descriptor_counts();
    assert_eq!(descriptor_counts.len(), rounds);
    // A second connection to the store has three descriptors for a short time. Leaks would grow with the number of rounds.
    let (early, late) = descriptor_counts.split_at(rounds / 2);
    let tolerance = if tests_all_crash_points() { 0 } else { 3 };
    assert!(
        late.iter().min() <= early.iter().min().map(|minimum| minimum + tolerance).as_ref(),
        "descriptors: {descriptor_counts:?}"
    );
    assert_eq!(project.programs_run(), (0..PROGRAMS.len()).collect());
    if tests_all_crash_points() {
        print_progress(&format!("hooks that misbehave: {} programs, 0 of them wrong\n", rounds * PROGRAMS.len()));
    }
}

#[test]
fn misbehaving_agents_leave_no_processes_or_unknown_files() {
    let project = MisbehavingProject::new(1, "");
    let rounds = if tests_all_crash_points() { 20 } else { 1 };
    for round in 0..rounds {
        for (number, (name, _)) in PROGRAMS.iter().enumerate() {
            let before = project.files();
            let agent = format!("command:sh .windlass/misbehaving/{number}.sh");
            let goal = format!("Round {round} of {number}");
            project.run_windlass(&["run", &goal, "--agent", &agent]);
            project.assert_no_leftovers(&before, name);
        }
    }
    assert_eq!(project.programs_run(), (0..PROGRAMS.len()).collect());
    if tests_all_crash_points() {
        print_progress(&format!("agents that misbehave: {} programs, 0 of them wrong\n", rounds * PROGRAMS.len()));
    }
}

/// The control: the test detects a remaining process, a new file, a damaged store and an additional descriptor.
#[test]
fn leftovers_of_programs_are_detected() {
    let project = MisbehavingProject::new(1, "");
    let before = project.files();
    assert_eq!(project.find_leftovers(EXIT_TIMEOUT, &before), [""; 0]);

    let find_leftovers = || project.find_leftovers(Duration::ZERO, &before).join("\n");
    let mut sleeper = project.world.program("sleep").arg(&project.marker).current_dir("/").spawn().unwrap();
    // Before its exec, the child is a copy of this process.
    while !find_leftovers().starts_with("process sleep 987654.") {
        assert!(sleeper.try_wait().unwrap().is_none(), "it is there until it is killed");
    }
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let mut foreign_process = project.world.program("cat").stdin(Stdio::piped()).spawn().unwrap();
    while !find_leftovers().starts_with("process cat") {
        assert!(foreign_process.try_wait().unwrap().is_none(), "it is there until it is killed");
    }
    drop(foreign_process.stdin.take());
    foreign_process.wait().unwrap();

    project.world.write("forgotten", "");
    assert!(find_leftovers().starts_with("file ") && find_leftovers().ends_with("/forgotten"), "{}", find_leftovers());
    fs::remove_file(project.world.path("forgotten")).unwrap();
    assert_eq!(find_leftovers(), "");
    fs::write(project.world.path(".windlass/windlass.db"), "no store").unwrap();
    assert!(find_leftovers().contains("windlass.db"), "{}", find_leftovers());

    // One shell replaces the program, another one the supervisor.
    let count = "sh -c 'sh .windlass/misbehaving/count.sh; :'";
    let script = format!("{count}; {count}; exec 9</dev/null; {count}; :");
    assert!(project.world.program("sh").args(["-c", &script]).status().unwrap().success());
    let descriptor_counts = project.descriptor_counts();
    assert_eq!(descriptor_counts, [descriptor_counts[0], descriptor_counts[0], descriptor_counts[0] + 1]);
}
