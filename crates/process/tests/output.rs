//! Output and input of a program.

use std::io::Write;
use std::time::Duration;

use windlass_process::{CaptureLimits, OutputStream, ProgramExit, SpillTarget};

use crate::common::check_launch_modes;

/// Returns the peak memory of this process, in KiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    line.split_whitespace().nth(1).expect("a number").parse().expect("a number")
}

#[test]
fn much_output_needs_little_memory() {
    check_launch_modes(|fixture| {
        const BYTES: u64 = 200_000_000;
        let before = peak_memory();
        let finished = fixture.run_spec(&fixture.shell_program(&format!("head -c {BYTES} /dev/zero; echo end")));
        assert_eq!((finished.exit, finished.stdout.total), (ProgramExit::Code(0), BYTES + 4));
        assert_eq!(finished.stdout.omitted_byte_count(), BYTES + 4 - 128 * 1024);
        assert!(finished.stdout.tail.ends_with(b"\0end\n"));
        assert!(peak_memory() - before < 8 * 1024, "{} KiB more", peak_memory() - before);
    });
}

#[test]
fn bytes_are_kept_as_they_are() {
    check_launch_modes(|fixture| {
        let finished = fixture.run_spec(&fixture.shell_program(r"printf 'a\000\377\376b\r\n'; printf '\000\001' >&2"));
        assert_eq!(&*finished.stdout.to_bytes(), b"a\0\xff\xfeb\r\n");
        assert_eq!(&*finished.stderr.to_bytes(), b"\0\x01");
    });
}

#[test]
fn output_beyond_memory_limit_spills_to_capped_file() {
    check_launch_modes(|fixture| {
        let mut spec =
            fixture.shell_program("i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done; echo small >&2");
        spec.capture =
            CaptureLimits { head: 10, tail: 10, spill: Some(SpillTarget { path: fixture.path("run"), cap: 1000 }) };
        let finished = fixture.run_spec(&spec);
        let spilled = finished.stdout.spilled.as_ref().expect("it was too much");
        assert_eq!(spilled.path, fixture.path("run.stdout"));
        let text = std::fs::read_to_string(&spilled.path).expect("the file");
        assert!(text.starts_with("line 0\nline 1\nline 2\n"), "{text}");
        assert_eq!((text.len(), spilled.kept, &spilled.error), (1000, 1000, &None));
        assert_eq!(finished.stdout.to_text_lossy(), "line 0\nlin\n[4370 bytes left out]\n\nline 499\n");
        assert_eq!(finished.stderr.spilled, None);
        assert!(!fixture.path("run.stderr").exists());
    });
}

#[test]
fn unwritable_spill_file_does_not_fail_run() {
    check_launch_modes(|fixture| {
        let mut spec = fixture.shell_program("echo a lot of output");
        std::fs::write(fixture.path("file"), "").expect("it can be written");
        spec.capture = CaptureLimits {
            head: 1,
            tail: 1,
            spill: Some(SpillTarget { path: fixture.path("file/where"), cap: 1000 }),
        };
        let finished = fixture.run_spec(&spec);
        assert_eq!(finished.exit, ProgramExit::Code(0));
        assert!(finished.stdout.spilled.expect("it was tried").error.is_some());
    });
}

#[test]
fn input_larger_than_a_pipe_flows_while_output_does() {
    check_launch_modes(|fixture| {
        let mut spec = fixture.argv_program(&["cat"]);
        spec.stdin = (0..3_000_000_u32).map(|number| number.to_le_bytes()[0] ^ number.to_le_bytes()[1]).collect();
        spec.capture.head = 4_000_000;
        let finished = fixture.run_spec(&spec);
        assert_eq!(finished.exit, ProgramExit::Code(0));
        assert!(*finished.stdout.to_bytes() == spec.stdin, "what went in came out");
    });
}

#[test]
fn program_exit_code_is_reported_although_input_is_unread() {
    check_launch_modes(|fixture| {
        for script in ["exit 4", "exec <&-; exit 4", "head -c 10 >/dev/null; exit 4", "echo ready; sleep 0.05; exit 4"]
        {
            let mut spec = fixture.shell_program(script);
            spec.stdin = vec![b'x'; 1_000_000];
            assert_eq!(fixture.run_spec(&spec).exit, ProgramExit::Code(4), "{script}");
        }
    });
}

#[test]
fn input_has_an_end() {
    check_launch_modes(|fixture| {
        for input in ["", "short"] {
            let mut spec = fixture.argv_program(&["cat"]);
            spec.stdin = input.into();
            assert_eq!(fixture.run_spec(&spec).stdout.to_text_lossy(), input);
        }
    });
}

#[test]
fn observer_receives_all_output_of_both_streams() {
    check_launch_modes(|fixture| {
        let mut seen = (Vec::new(), Vec::new());
        let spec = fixture.shell_program("echo one; echo two >&2; head -c 300000 /dev/zero");
        let finished = fixture.observe_run(&spec, &mut |stream, chunk| match stream {
            OutputStream::Stdout => seen.0.extend_from_slice(chunk),
            OutputStream::Stderr => seen.1.extend_from_slice(chunk),
        });
        assert_eq!(finished.expect("it starts").stdout.total, 300_004);
        assert_eq!((seen.0.len(), &*seen.1), (300_004, &b"two\n"[..]));
    });
}

#[test]
fn child_reading_its_own_output_does_not_block_timeout() {
    check_launch_modes(|fixture| {
        for _ in 0..5 {
            let mut spec = fixture.shell_program("cat </proc/self/fd/1 >/dev/null & sleep 0.03; echo x; sleep 1000");
            spec.timeout = Some(Duration::from_millis(100));
            spec.grace = Duration::from_millis(10);
            assert_eq!(fixture.run_spec(&spec).exit, ProgramExit::TimedOut);
        }
    });
}

#[test]
fn stdout_flood_by_foreign_process_delays_neither_kill_nor_stderr() {
    check_launch_modes(|fixture| {
        let fifo = fixture.path("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).expect("a fifo");
        std::thread::scope(|scope| {
            // The run cannot end this thread, which holds the output of the run open.
            scope.spawn(|| {
                let name = std::fs::read_to_string(&fifo).expect("a name");
                let mut held = std::fs::File::options().write(true).open(name.trim()).expect("it is open");
                std::fs::write(&fifo, "go\n").expect("the other end reads");
                while held.write_all(&[b'x'; 65536]).is_ok() {}
            });
            let script = "echo first; echo /proc/$$/fd/1 >fifo; read line <fifo; echo error >&2; echo $$ >written";
            let spec = fixture.shell_program(&format!("{script}; sleep 1000"));
            let finished = fixture.observe_run(&spec, &mut |_, _| {
                fixture.wait_for_number("written");
                fixture.control.kill_runs();
            });
            let finished = finished.expect("it starts");
            assert_eq!((finished.exit, finished.leaky), (ProgramExit::Cancelled, true));
            assert_eq!(finished.stderr.to_text_lossy(), "error\n");
            assert!(finished.took < Duration::from_secs(5), "{:?}", finished.took);
        });
    });
}

#[test]
fn output_flood_does_not_delay_timeout() {
    check_launch_modes(|fixture| {
        let mut spec = fixture.shell_program("exec cat /dev/zero");
        spec.timeout = Some(Duration::from_millis(100));
        let finished = fixture.run_spec(&spec);
        assert_eq!(finished.exit, ProgramExit::TimedOut);
        assert!(finished.took < Duration::from_secs(2), "{:?}", finished.took);
    });
}
