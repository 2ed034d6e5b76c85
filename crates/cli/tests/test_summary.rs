//! The summary of a session at its end.

use insta::assert_snapshot;

use crate::support::{CommandOutput, TestWorld, normalize_durations};

const RUN: &[&str] = &["run", "Mend the pump", "--trust"];

/// A project in a repository with one commit, whose agent runs this script.
fn create_repository(config: &str, agent: &str) -> TestWorld {
    let world = TestWorld::new();
    world.configure(&format!("agent: 'command:sh agent.sh'\n{config}"));
    world.write("agent.sh", format!("cat >/dev/null\n{agent}"));
    world.write("old.txt", "one\ntwo\nthree\n");
    world.write("before.txt", "before\n");
    world.write("dirty.txt", "left by a person\n");
    run_git(&world, &["init", "-q"]);
    run_git(&world, &["add", "-A"]);
    let before = world.run_command(world.program("git").args(["hash-object", "-w", "before.txt"])).stdout;
    let before = format!("100644,{},dirty.txt", before.trim());
    run_git(&world, &["update-index", "--cacheinfo", &before]);
    run_git(&world, COMMIT_ARGUMENTS);
    world
}

fn run_git(world: &TestWorld, words: &[&str]) {
    let ran = world.run_command(world.program("git").args(words));
    assert_eq!(ran.code, 0, "{words:?}\n{ran}");
}

const COMMIT_ARGUMENTS: &[&str] = &["-c", "user.name=ann", "-c", "user.email=ann@example.org", "commit", "-qm", "x"];

/// Returns the output after the last line of the loop itself.
fn summary(text: &str) -> String {
    let lines = text.lines().skip_while(|line| !line.starts_with("  took "));
    normalize_durations(&lines.collect::<Vec<_>>().join("\n"))
}

fn summary_without_terminal(world: &TestWorld) -> (String, CommandOutput) {
    let ran = world.run(RUN);
    (summary(&ran.stdout), ran)
}

fn summary_in_terminal(world: &TestWorld) -> String {
    let (watched, _) = world.start_in_terminal((50, 100), RUN, &[("NO_COLOR", "1")]).read_to_end();
    summary(&watched.screen())
}

/// Committed or not, tracked or not; but no older files, and none of ours.
#[test]
fn summary_names_changed_files() {
    let agent = "echo four >> old.txt\necho new > new.txt\ngit add old.txt new.txt\n\
                 git -c user.name=a -c user.email=a commit -qm x\nmkdir sub; echo 1 > 'sub/a b'; printf 'x\\ny' > sub/bin\n\
                 echo '<promise>COMPLETE</promise>'";
    let world = create_repository("", agent);
    assert_snapshot!(summary_without_terminal(&world).0, @r"
    took <took> agent <took> one turn
    changed 4 files
    note: nothing checked this work; add a check, such as `hooks: {stop: [run_tests]}`, to .windlass/config.yaml
    ");
    let world = create_repository("", agent);
    assert_snapshot!(summary_in_terminal(&world), @r"
    took  <took> agent <took> one turn
    changed    4 files
               new.txt
               old.txt
               sub/a b
               sub/bin
    completed  T1
    note       nothing checked this work; add a check, such as `hooks: {stop: [run_tests]}`, to
               .windlass/config.yaml
    next       windlass why mend-the-pump-e01275de
    ");
    let world = create_repository("", "echo '<promise>COMPLETE</promise>'");
    let gone =
        "mkdir sub; echo 1 > sub/gone; git add sub; git -c user.name=a -c user.email=a commit -qm x; rm sub/gone";
    assert_eq!(world.run_command(world.program("sh").args(["-c", gone])).code, 0);
    assert_snapshot!(summary_in_terminal(&world), @r"
    took  <took> agent <took> one turn
    changed    no files
    completed  T1
    note       nothing checked this work; add a check, such as `hooks: {stop: [run_tests]}`, to
               .windlass/config.yaml
    next       windlass why mend-the-pump-e01275de
    ");
}

/// A repository without a commit, no repository, and a damaged one.
#[test]
fn repositories_that_cannot_tell() {
    let check = |spoil: &str, expected: &str| {
        let world = create_repository("", "echo more >> old.txt\necho '<promise>COMPLETE</promise>'");
        world.run_command(world.program("sh").args(["-c", spoil]));
        let (said, ran) = summary_without_terminal(&world);
        assert_eq!(ran.code, 0, "{ran}");
        assert!(said.contains(expected), "{spoil}: {said}");
        assert_eq!(said.contains("changed"), !expected.is_empty(), "{spoil}: {said}");
    };
    check("true", "changed one file");
    check("rm -rf .git", "");
    check("echo nonsense > .git/HEAD", "");
    check("git pack-refs --all", "changed one file");
    check("git checkout -q --detach", "changed one file");
    check("rm -rf .git; git init -q", "changed one file");
}

/// Programs that the repository's configuration names do not run.
#[test]
fn summary_runs_no_program_from_git_configuration() {
    let agent = "git config core.fsmonitor 'touch pwned'; git config diff.external 'touch pwned'\n\
                 echo '*.txt diff=evil' > .gitattributes; git config diff.evil.textconv 'touch pwned'\n\
                 git config diff.evil.command 'touch pwned'; echo more >> old.txt\necho '<promise>COMPLETE</promise>'";
    let world = create_repository("", agent);
    assert!(summary_without_terminal(&world).0.contains("changed 2 files"));
    assert!(!world.path("pwned").exists());
}

#[test]
fn summary_lists_undelivered_feedback_and_next_command() {
    let stop = "hooks: {stop: [{command: 'echo no >&2; exit 2'}]}\nlimits: {max_hook_retries: 1}";
    let world = create_repository(stop, "true");
    world.run_ok(&["task", "add", "One", "--trust"]);
    world.run_ok(&["task", "add", "Two", "--depends", "T1", "--trust"]);
    world.run_ok(&["task", "block", "T1", "--reason", "which \u{1b}[31mversion?", "--trust"]);
    let (said, ran) = summary_without_terminal(&world);
    assert_eq!(ran.code, 4);
    assert_snapshot!(said, @r"
    took <took> agent <took> hooks <took> 2 turns
    left: one piece of feedback not delivered to the agent
    next: windlass answer T3 continue
    ");
    world.run_ok(&["answer", "T3", "continue", "--trust"]);
    assert_snapshot!(summary_in_terminal(&world), @r"
    took  <took> agent <took> hooks <took> 2 turns
    blocked by stop[0] 2 times
    changed    no files
    left       one piece of feedback not delivered to the agent
    next       windlass answer T3 continue
               windlass why mend-the-pump-e01275de-2
    ");

    let world = create_repository("limits: {max_iterations: 1}", "true");
    assert_snapshot!(summary_without_terminal(&world).0, @r"
    took <took> agent <took> one turn
    next: windlass run --task T1 --trust --max-iterations 2
    ");
    assert_snapshot!(summary_in_terminal(&world), @r"
    took  <took> agent <took> one turn
    changed    no files
    next       windlass run --task T1 --trust --max-iterations 2
               windlass why mend-the-pump-e01275de-2
    ");
    let world = create_repository("limits: {max_failures: 1}", "exit 3");
    assert_snapshot!(summary_without_terminal(&world).0, @r"
    took <took> agent <took> one turn
    next: windlass answer T1 continue
    ");
}

/// The time includes the hooks of the end, and excludes waits before a turn.
#[test]
fn times_add_up() {
    let config = "limits: {max_failures: 2, failure_span: 1ms}\nhooks: {session_end: [{command: sleep 0.3}]}";
    let world = create_repository(config, "exit 3");
    let said = world.run(RUN).stdout;
    let line = said.lines().find(|line| line.starts_with("  took ")).unwrap();
    let words: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let after = |label: &str| {
        let place = words.iter().position(|word| *word == label).unwrap();
        let factor = if words[place + 2] == "s" { 1000.0 } else { 1.0 };
        words[place + 1].parse::<f64>().unwrap() * factor
    };
    let (took, agent, hooks) = (after("took"), after("agent"), after("hooks"));
    // Between two failures there is a pause.
    assert!(hooks >= 300.0 && took >= hooks + agent + 100.0, "{line}");
}

/// A session of the graph lists the tasks that it has left, and what a person has to do about them.
#[test]
fn summary_lists_unfinished_tasks_of_graph() {
    let world = create_repository("", "echo x >> old.txt\necho '<promise>COMPLETE</promise>'");
    world.run_ok(&["task", "add", "One", "--trust"]);
    world.run_ok(&["task", "add", "Two", "--trust"]);
    world.run_ok(&["task", "add", "Three", "--depends", "T2", "--trust"]);
    world.run_ok(&["task", "block", "T2", "--reason", "which \u{1b}[31mversion?", "--trust"]);
    let ran = world.run(&["run", "--trust", "--session", "all"]);
    assert_snapshot!(summary(&ran.stdout), @r"
    took <took> agent <took> hooks <took> one turn
    note: nothing checked this work; add a check, such as `hooks: {stop: [run_tests]}`, to .windlass/config.yaml
    left: T2  blocked  Two: which \u{1b}[31mversion?
    left: T3  created  Three: waits for T2
    next: windlass answer T2 continue
    ");
    world.run_ok(&["task", "add", "Four", "--trust"]);
    let (watched, _) = world
        .start_in_terminal((50, 100), &["run", "--trust", "--session", "more"], &[("NO_COLOR", "1")])
        .read_to_end();
    assert_snapshot!(summary(&watched.screen()), @r"
    took  <took> agent <took> hooks <took> one turn
    completed  T4
    note       nothing checked this work; add a check, such as `hooks: {stop: [run_tests]}`, to
               .windlass/config.yaml
    left       T2  blocked  Two: which \u{1b}[31mversion?
               T3  created  Three: waits for T2
    next       windlass answer T2 continue
               windlass why T2
    ");
}

/// Without room for a table there is none.
#[test]
fn summary_on_narrow_terminal_omits_table() {
    let world = create_repository("limits: {max_iterations: 1}", "true");
    let (watched, _) = world.start_in_terminal((50, 20), RUN, &[("NO_COLOR", "1")]).read_to_end();
    let screen = watched.screen();
    assert!(
        screen.contains("\n  took ") && screen.contains("\n  next: windlass run\n --task T1 --trust -"),
        "{screen}"
    );
}

/// Programs get the events, and nothing else.
#[test]
fn json_output_omits_session_summary() {
    let world = create_repository("", "echo '<promise>COMPLETE</promise>'");
    let lines = world.json_lines(RUN);
    assert_eq!(lines.last().unwrap()["type"], "session_ended");
}

/// A session that was left and resumed is counted as a whole.
#[test]
fn summary_of_resumed_session_includes_turns_before_kill() {
    let world = create_repository(
        "",
        "echo x >> old.txt\ntest -e go || { touch go; kill -9 $(cat .pid); }\necho '<promise>COMPLETE</promise>'",
    );
    let script = "echo $$ > .pid; exec \"$0\" \"$@\"";
    world.run_command(world.program("sh").args(["-c", script, crate::support::WINDLASS]).args(RUN));
    run_git(&world, &["add", "-A"]);
    run_git(&world, COMMIT_ARGUMENTS);
    let (said, ran) = summary_without_terminal(&world);
    assert!(ran.stdout.contains("resumed"), "{ran}");
    assert!(said.contains("2 turns\n  changed 2 files"), "{said}");
}

#[test]
fn note_about_unchecked_work_counts_it_among_checked_work() {
    let config = "task_types: {tdd: {hooks: {stop: [{name: check, command: 'true'}]}}}\n";
    for workers in [&[][..], &["--workers", "1"]] {
        let world =
            create_repository(config, "echo $WINDLASS_TASK_ID > $WINDLASS_TASK_ID; echo '<promise>COMPLETE</promise>'");
        world.run_ok(&["task", "add", "Checked", "--type", "tdd"]);
        world.run_ok(&["task", "add", "Unchecked"]);
        let ran = world.run(&[&["run", "--trust"], workers].concat());
        assert_eq!(ran.code, 0, "{ran}");
        assert!(ran.stdout.contains("note: nothing checked the work on 1 of 2 tasks; add a check"), "{ran}");
        let status = world.run_ok(&["status"]);
        let told = ["last run nothing checked the work on 1 of 2 tasks; ", "last run nothing checked this work; "];
        assert!(status.contains(told[workers.len() / 2]), "{status}");
    }
}
