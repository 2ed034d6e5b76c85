//! All processes that a program leaves behind are ended with it, wherever they tried to hide.

use std::time::Duration;

use windlass_process::ProgramExit;

use crate::common::{Scene, Way, check, is_gone, tagged};

/// A process that writes its number and then sleeps.
const BE: &str = "sh -c 'echo $$ >hidden; exec sleep 1000' </dev/null >/dev/null 2>&1";
const UNTIL_HIDDEN: &str = "while ! [ -s hidden ]; do sleep 0.01; done";

/// Returns scripts that each leave a hidden process behind.
fn hideouts() -> [String; 5] {
    [
        format!("{BE} & {UNTIL_HIDDEN}"),
        format!("setsid {BE} & {UNTIL_HIDDEN}"),
        format!("(setsid {BE} &) ; {UNTIL_HIDDEN}"),
        format!("(env -i PATH=\"$PATH\" setsid {BE} &) ; {UNTIL_HIDDEN}"),
        format!("(nohup setsid {BE} & ) & {UNTIL_HIDDEN}"),
    ]
}

#[test]
fn after_a_success() {
    check(|scene| {
        for script in hideouts() {
            let finished = scene.run(&scene.shell(&format!("{script}; echo done")));
            assert_eq!((finished.exit, finished.stdout.text().as_str()), (Exit::Code(0), "done\n"), "{script}");
            assert!(finished.leaky, "{script}");
            assert!(is_gone(scene.number_in("hidden")), "{script}");
            std::fs::remove_file(scene.path("hidden")).expect("it was written");
        }
        assert_eq!(tagged(scene.roster.name()), [0; 0]);
    });
}

#[test]
fn after_a_timeout() {
    check(|scene| {
        let all = hideouts().map(|script| format!("{script}; cat hidden; rm hidden; ")).concat();
        let mut spec = scene.shell(&format!("trap '' TERM; {all} sleep 1000; sleep 1000"));
        spec.timeout = Some(Duration::from_millis(500));
        spec.grace = Duration::from_millis(10);
        let finished = scene.run(&spec);
        assert_eq!(finished.exit, Exit::TimedOut);
        let text = finished.stdout.to_text_lossy();
        let hidden: Vec<i32> = text.lines().map(|line| line.parse().expect("a number")).collect();
        assert_eq!(hidden.len(), 5);
        assert!(hidden.iter().all(|pid| is_gone(*pid)), "{hidden:?}");
        assert_eq!(tagged(scene.roster.name()), [0; 0]);
    });
}

#[test]
fn a_child_that_holds_the_output_does_not_hold_us() {
    check(|scene| {
        let finished = scene.run(&scene.shell("echo $$; sleep 1000 & echo $! >hidden; exit 5"));
        assert_eq!((finished.exit, finished.leaky), (Exit::Code(5), true));
        assert!(finished.took < Duration::from_millis(500), "{:?}", finished.took);
        assert!(is_gone(scene.number_in("hidden")));
    });
}

#[test]
fn a_child_that_is_about_to_end_is_waited_for() {
    check(|scene| {
        let finished = scene.run(&scene.shell("(sleep 0.01; echo late) & echo early"));
        assert_eq!((finished.exit, finished.stdout.text().as_str()), (Exit::Code(0), "early\nlate\n"));
        // On a busy machine it may take longer than we wait.
        assert!(!finished.leaky || finished.took > Duration::from_millis(100), "{:?}", finished.took);
    });
}

#[test]
fn fast_forking_chain_is_ended_with_run() {
    check(|scene| {
        // Each process starts the next in a new session, and ends.
        let flee = "[ $1 -gt 0 ] || exit; setsid sh flee $(($1 - 1)) </dev/null >/dev/null 2>&1 & echo $1 >last";
        std::fs::write(scene.path("flee"), flee).expect("a script");
        scene.run(&scene.shell("sh flee 3000; while ! [ -s last ]; do :; done"));
        let left = tagged(scene.roster.name());
        assert_eq!(left, [0; 0]);
        let last = std::fs::read_to_string(scene.path("last")).expect("it began");
        assert_ne!(last, "1\n", "it was caught, and did not end by itself");
    });
}

#[test]
fn growing_tree_is_ended_at_timeout() {
    check(|scene| {
        let grow = "[ $1 -gt 0 ] || exec sleep 1000; for i in 1 2 3; do setsid sh grow $(($1 - 1)) & done; sleep 1000";
        std::fs::write(scene.path("grow"), grow).expect("a script");
        let mut spec = scene.shell("exec sh grow 4");
        spec.timeout = Some(Duration::from_millis(40));
        spec.grace = Duration::ZERO;
        assert_eq!(scene.run(&spec).exit, Exit::TimedOut);
        assert_eq!(tagged(scene.roster.name()), [0; 0]);
    });
}

#[test]
fn a_run_does_not_end_what_another_one_left_before_its_time() {
    let scene = Scene::new(Way::Direct);
    std::thread::scope(|scope| {
        let fifo = scene.path("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).expect("a fifo");
        let long = scope.spawn(|| scene.run(&scene.shell(&format!("(setsid {BE} &); read line <fifo; echo $line"))));
        let hidden = scene.number_in("hidden");
        for _ in 0..5 {
            let finished = scene.run(&scene.shell("(setsid sleep 1000 >/dev/null 2>&1 &); setsid true"));
            assert_eq!(finished.exit, Exit::Code(0));
            assert!(!crate::common::is_dead(hidden), "it belongs to a run that is under way");
        }
        assert_eq!(tagged(scene.roster.name()).len(), 2, "the long run and what it hides; nothing of the others");
        std::fs::write(&fifo, "over\n").expect("the other end reads");
        assert_eq!(long.join().expect("no panic").stdout.text(), "over\n");
        assert!(is_gone(hidden));
    });
    assert_eq!(tagged(scene.roster.name()), [0; 0]);
}

#[test]
fn unclaimed_orphans_end_with_last_run() {
    let scene = Scene::new(Way::Direct);
    std::thread::scope(|scope| {
        let fifo = scene.path("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).expect("a fifo");
        let long = scope.spawn(|| scene.run(&scene.shell("echo $$ >long; read line <fifo")));
        scene.number_in("long");
        scene.run(&scene.shell(&format!("(env -i PATH=\"$PATH\" setsid {BE} &) ; {UNTIL_HIDDEN}")));
        std::fs::write(&fifo, "over\n").expect("the other end reads");
        assert_eq!(long.join().expect("no panic").exit, Exit::Code(0));
    });
    assert!(is_gone(scene.number_in("hidden")));
}
