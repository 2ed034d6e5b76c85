//! Termination of the processes that a program leaves behind, also of those that hide.

use std::time::Duration;

use windlass_process::ProgramExit;

use crate::common::{LaunchMode, ProcessFixture, check_launch_modes, is_gone, tagged_processes};

/// A shell command that writes its process number to a file and then sleeps.
const HIDDEN_SLEEP: &str = "sh -c 'echo $$ >hidden; exec sleep 1000' </dev/null >/dev/null 2>&1";
const WAIT_UNTIL_HIDDEN: &str = "while ! [ -s hidden ]; do sleep 0.01; done";

/// Returns scripts that each leave one hidden process behind.
fn hiding_scripts() -> [String; 5] {
    [
        format!("{HIDDEN_SLEEP} & {WAIT_UNTIL_HIDDEN}"),
        format!("setsid {HIDDEN_SLEEP} & {WAIT_UNTIL_HIDDEN}"),
        format!("(setsid {HIDDEN_SLEEP} &) ; {WAIT_UNTIL_HIDDEN}"),
        format!("(env -i PATH=\"$PATH\" setsid {HIDDEN_SLEEP} &) ; {WAIT_UNTIL_HIDDEN}"),
        format!("(nohup setsid {HIDDEN_SLEEP} & ) & {WAIT_UNTIL_HIDDEN}"),
    ]
}

#[test]
fn successful_run_leaves_no_hidden_processes() {
    check_launch_modes(|fixture| {
        for script in hiding_scripts() {
            let finished = fixture.run_spec(&fixture.shell_program(&format!("{script}; echo done")));
            assert_eq!(
                (finished.exit, finished.stdout.to_text_lossy().as_str()),
                (ProgramExit::Code(0), "done\n"),
                "{script}"
            );
            assert!(finished.leaky, "{script}");
            assert!(is_gone(fixture.wait_for_number("hidden")), "{script}");
            std::fs::remove_file(fixture.path("hidden")).expect("it was written");
        }
        assert_eq!(tagged_processes(fixture.owner_lock.name()), [0; 0]);
    });
}

#[test]
fn timed_out_run_leaves_no_hidden_processes() {
    check_launch_modes(|fixture| {
        let all = hiding_scripts().map(|script| format!("{script}; cat hidden; rm hidden; ")).concat();
        let mut spec = fixture.shell_program(&format!("trap '' TERM; {all} sleep 1000; sleep 1000"));
        spec.timeout = Some(Duration::from_millis(500));
        spec.grace = Duration::from_millis(10);
        let finished = fixture.run_spec(&spec);
        assert_eq!(finished.exit, ProgramExit::TimedOut);
        let text = finished.stdout.to_text_lossy();
        let hidden: Vec<i32> = text.lines().map(|line| line.parse().expect("a number")).collect();
        assert_eq!(hidden.len(), 5);
        assert!(hidden.iter().all(|pid| is_gone(*pid)), "{hidden:?}");
        assert_eq!(tagged_processes(fixture.owner_lock.name()), [0; 0]);
    });
}

#[test]
fn child_holding_output_open_does_not_delay_run_end() {
    check_launch_modes(|fixture| {
        let finished = fixture.run_spec(&fixture.shell_program("echo $$; sleep 1000 & echo $! >hidden; exit 5"));
        assert_eq!((finished.exit, finished.leaky), (ProgramExit::Code(5), true));
        assert!(finished.took < Duration::from_millis(500), "{:?}", finished.took);
        assert!(is_gone(fixture.wait_for_number("hidden")));
    });
}

#[test]
fn run_waits_briefly_for_output_of_ending_child() {
    check_launch_modes(|fixture| {
        let finished = fixture.run_spec(&fixture.shell_program("(sleep 0.01; echo late) & echo early"));
        assert_eq!((finished.exit, finished.stdout.to_text_lossy().as_str()), (ProgramExit::Code(0), "early\nlate\n"));
        // On a busy machine the child may need more time than the wait of the run.
        assert!(!finished.leaky || finished.took > Duration::from_millis(100), "{:?}", finished.took);
    });
}

#[test]
fn fast_forking_chain_is_ended_with_run() {
    check_launch_modes(|fixture| {
        // Each process starts the next one in a new session and then ends.
        let flee = "[ $1 -gt 0 ] || exit; setsid sh flee $(($1 - 1)) </dev/null >/dev/null 2>&1 & echo $1 >last";
        std::fs::write(fixture.path("flee"), flee).expect("a script");
        fixture.run_spec(&fixture.shell_program("sh flee 3000; while ! [ -s last ]; do :; done"));
        let survivors = tagged_processes(fixture.owner_lock.name());
        assert_eq!(survivors, [0; 0]);
        let last = std::fs::read_to_string(fixture.path("last")).expect("it began");
        assert_ne!(last, "1\n", "it was caught, and did not end by itself");
    });
}

#[test]
fn growing_tree_is_ended_at_timeout() {
    check_launch_modes(|fixture| {
        let grow = "[ $1 -gt 0 ] || exec sleep 1000; for i in 1 2 3; do setsid sh grow $(($1 - 1)) & done; sleep 1000";
        std::fs::write(fixture.path("grow"), grow).expect("a script");
        let mut spec = fixture.shell_program("exec sh grow 4");
        spec.timeout = Some(Duration::from_millis(40));
        spec.grace = Duration::ZERO;
        assert_eq!(fixture.run_spec(&spec).exit, ProgramExit::TimedOut);
        assert_eq!(tagged_processes(fixture.owner_lock.name()), [0; 0]);
    });
}

#[test]
fn finished_run_does_not_terminate_orphans_of_active_run() {
    let fixture = ProcessFixture::new(LaunchMode::Direct);
    std::thread::scope(|scope| {
        let fifo = fixture.path("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).expect("a fifo");
        let long = scope.spawn(|| {
            fixture.run_spec(&fixture.shell_program(&format!("(setsid {HIDDEN_SLEEP} &); read line <fifo; echo $line")))
        });
        let hidden = fixture.wait_for_number("hidden");
        for _ in 0..5 {
            let finished =
                fixture.run_spec(&fixture.shell_program("(setsid sleep 1000 >/dev/null 2>&1 &); setsid true"));
            assert_eq!(finished.exit, ProgramExit::Code(0));
            assert!(!crate::common::is_dead(hidden), "it belongs to a run that is under way");
        }
        assert_eq!(
            tagged_processes(fixture.owner_lock.name()).len(),
            2,
            "the long run and what it hides; nothing of the others"
        );
        std::fs::write(&fifo, "over\n").expect("the other end reads");
        assert_eq!(long.join().expect("no panic").stdout.to_text_lossy(), "over\n");
        assert!(is_gone(hidden));
    });
    assert_eq!(tagged_processes(fixture.owner_lock.name()), [0; 0]);
}

#[test]
fn unclaimed_orphans_end_with_last_run() {
    let fixture = ProcessFixture::new(LaunchMode::Direct);
    std::thread::scope(|scope| {
        let fifo = fixture.path("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).expect("a fifo");
        let long = scope.spawn(|| fixture.run_spec(&fixture.shell_program("echo $$ >long; read line <fifo")));
        fixture.wait_for_number("long");
        fixture.run_spec(
            &fixture.shell_program(&format!("(env -i PATH=\"$PATH\" setsid {HIDDEN_SLEEP} &) ; {WAIT_UNTIL_HIDDEN}")),
        );
        std::fs::write(&fifo, "over\n").expect("the other end reads");
        assert_eq!(long.join().expect("no panic").exit, ProgramExit::Code(0));
    });
    assert!(is_gone(fixture.wait_for_number("hidden")));
}
