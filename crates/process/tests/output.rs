//! Output and input of a program.

use std::io::Write;
use std::time::Duration;

use windlass_process::{CaptureLimits, OutputStream, ProgramExit, SpillTarget};

use crate::common::check;

/// Returns the peak of this process's memory, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    line.split_whitespace().nth(1).expect("a number").parse().expect("a number")
}

#[test]
fn much_output_needs_little_memory() {
    check(|scene| {
        const BYTES: u64 = 200_000_000;
        let before = peak();
        let finished = scene.run(&scene.shell(&format!("head -c {BYTES} /dev/zero; echo end")));
        assert_eq!((finished.exit, finished.stdout.total), (Exit::Code(0), BYTES + 4));
        assert_eq!(finished.stdout.left_out(), BYTES + 4 - 128 * 1024);
        assert!(finished.stdout.tail.ends_with(b"\0end\n"));
        assert!(peak() - before < 8 * 1024, "{} KiB more", peak() - before);
    });
}

#[test]
fn bytes_are_kept_as_they_are() {
    check(|scene| {
        let finished = scene.run(&scene.shell(r"printf 'a\000\377\376b\r\n'; printf '\000\001' >&2"));
        assert_eq!(&*finished.stdout.bytes(), b"a\0\xff\xfeb\r\n");
        assert_eq!(&*finished.stderr.bytes(), b"\0\x01");
    });
}

#[test]
fn what_memory_cannot_hold_goes_to_a_file_up_to_its_cap() {
    check(|scene| {
        let mut spec = scene.shell("i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done; echo small >&2");
        spec.capture =
            CaptureLimits { head: 10, tail: 10, spill: Some(SpillTarget { path: scene.path("run"), cap: 1000 }) };
        let finished = scene.run(&spec);
        let spilled = finished.stdout.spilled.as_ref().expect("it was too much");
        assert_eq!(spilled.path, scene.path("run.stdout"));
        let text = std::fs::read_to_string(&spilled.path).expect("the file");
        assert!(text.starts_with("line 0\nline 1\nline 2\n"), "{text}");
        assert_eq!((text.len(), spilled.kept, &spilled.error), (1000, 1000, &None));
        assert_eq!(finished.stdout.text(), "line 0\nlin\n[4370 bytes left out]\n\nline 499\n");
        assert_eq!(finished.stderr.spilled, None);
        assert!(!scene.path("run.stderr").exists());
    });
}

#[test]
fn a_file_that_cannot_be_written_does_not_fail_the_run() {
    check(|scene| {
        let mut spec = scene.shell("echo a lot of output");
        std::fs::write(scene.path("file"), "").expect("it can be written");
        spec.capture =
            CaptureLimits { head: 1, tail: 1, spill: Some(SpillTarget { path: scene.path("file/where"), cap: 1000 }) };
        let finished = scene.run(&spec);
        assert_eq!(finished.exit, Exit::Code(0));
        assert!(finished.stdout.spilled.expect("it was tried").error.is_some());
    });
}

#[test]
fn input_larger_than_a_pipe_flows_while_output_does() {
    check(|scene| {
        let mut spec = scene.argv(&["cat"]);
        spec.stdin = (0..3_000_000_u32).map(|number| number.to_le_bytes()[0] ^ number.to_le_bytes()[1]).collect();
        spec.capture.head = 4_000_000;
        let finished = scene.run(&spec);
        assert_eq!(finished.exit, Exit::Code(0));
        assert!(*finished.stdout.to_bytes() == spec.stdin, "what went in came out");
    });
}

#[test]
fn a_program_need_not_read_its_input() {
    check(|scene| {
        for script in ["exit 4", "exec <&-; exit 4", "head -c 10 >/dev/null; exit 4", "echo ready; sleep 0.05; exit 4"]
        {
            let mut spec = scene.shell(script);
            spec.stdin = vec![b'x'; 1_000_000];
            assert_eq!(scene.run(&spec).exit, Exit::Code(4), "{script}");
        }
    });
}

#[test]
fn input_has_an_end() {
    check(|scene| {
        for input in ["", "short"] {
            let mut spec = scene.argv(&["cat"]);
            spec.stdin = input.into();
            assert_eq!(scene.run(&spec).stdout.text(), input);
        }
    });
}

#[test]
fn observer_receives_all_output_of_both_streams() {
    check(|scene| {
        let mut seen = (Vec::new(), Vec::new());
        let spec = scene.shell("echo one; echo two >&2; head -c 300000 /dev/zero");
        let finished = scene.observe(&spec, &mut |stream, chunk| match stream {
            OutputStream::Stdout => seen.0.extend_from_slice(chunk),
            OutputStream::Stderr => seen.1.extend_from_slice(chunk),
        });
        assert_eq!(finished.expect("it starts").stdout.total, 300_004);
        assert_eq!((seen.0.len(), &*seen.1), (300_004, &b"two\n"[..]));
    });
}

#[test]
fn a_child_that_takes_its_own_output_away_does_not_hold_us() {
    check(|scene| {
        for _ in 0..5 {
            let mut spec = scene.shell("cat </proc/self/fd/1 >/dev/null & sleep 0.03; echo x; sleep 1000");
            spec.timeout = Some(Duration::from_millis(100));
            spec.grace = Duration::from_millis(10);
            assert_eq!(scene.run(&spec).exit, Exit::TimedOut);
        }
    });
}

#[test]
fn a_stranger_who_floods_one_stream_hides_neither_the_end_nor_the_other_stream() {
    check(|scene| {
        let fifo = scene.path("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).expect("a fifo");
        std::thread::scope(|scope| {
            // This test holds the output of the run, and cannot be ended.
            scope.spawn(|| {
                let name = std::fs::read_to_string(&fifo).expect("a name");
                let mut held = std::fs::File::options().write(true).open(name.trim()).expect("it is open");
                std::fs::write(&fifo, "go\n").expect("the other end reads");
                while held.write_all(&[b'x'; 65536]).is_ok() {}
            });
            let script = "echo first; echo /proc/$$/fd/1 >fifo; read line <fifo; echo error >&2; echo $$ >written";
            let spec = scene.shell(&format!("{script}; sleep 1000"));
            let finished = scene.observe(&spec, &mut |_, _| {
                scene.number_in("written");
                scene.control.kill_runs();
            });
            let finished = finished.expect("it starts");
            assert_eq!((finished.exit, finished.leaky), (Exit::Cancelled, true));
            assert_eq!(finished.stderr.text(), "error\n");
            assert!(finished.took < Duration::from_secs(5), "{:?}", finished.took);
        });
    });
}

#[test]
fn a_flood_does_not_hide_the_deadline() {
    check(|scene| {
        let mut spec = scene.shell("exec cat /dev/zero");
        spec.timeout = Some(Duration::from_millis(100));
        let finished = scene.run(&spec);
        assert_eq!(finished.exit, Exit::TimedOut);
        assert!(finished.took < Duration::from_secs(2), "{:?}", finished.took);
    });
}
