//! Outcomes of runs, and the errors of runs that did not start.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use windlass_process::{ProgramExit, ProgramSpec, ProgramStartError};

use crate::common::{ProcessFixture, check_launch_modes};

#[test]
fn exit_codes_and_signals_are_told_apart() {
    check_launch_modes(|fixture| {
        for (script, exit) in [
            ("exit 0", ProgramExit::Code(0)),
            ("exit 3", ProgramExit::Code(3)),
            ("exit 255", ProgramExit::Code(255)),
            ("kill -TERM $$", ProgramExit::Signal(15)),
            ("kill -KILL $$", ProgramExit::Signal(9)),
            ("exit 137", ProgramExit::Code(137)),
        ] {
            let finished = fixture.run_spec(&fixture.shell_program(script));
            assert_eq!((finished.exit, finished.leaky), (exit, false), "{script}");
        }
    });
}

#[test]
fn output_and_arguments_come_through() {
    check_launch_modes(|fixture| {
        let finished = fixture.run_spec(&fixture.shell_program("echo out; echo err >&2"));
        assert_eq!(
            (finished.stdout.to_text_lossy(), finished.stderr.to_text_lossy()),
            ("out\n".into(), "err\n".into())
        );
        let finished = fixture.run_spec(&fixture.argv_program(&["printf", "%s|", "a b", "", "$HOME"]));
        assert_eq!(finished.stdout.to_text_lossy(), "a b||$HOME|");
        let finished = fixture.run_spec(&fixture.shell_program("pwd -P"));
        let directory = fixture.directory.path().canonicalize().expect("it is there");
        assert_eq!(finished.stdout.to_text_lossy().trim_end(), directory.to_str().expect("plain"));
    });
}

/// A script must behave the same with and without a shell.
#[test]
fn plain_word_script_behaves_as_if_run_by_shell() {
    check_launch_modes(|fixture| {
        std::fs::write(fixture.path("bare"), "echo \"bare $1\"; exit 4").expect("a file");
        std::fs::write(fixture.path("headed"), "#!/bin/sh\necho \"headed $1 $PWD\"; kill -KILL $$").expect("a file");
        for name in ["bare", "headed"] {
            std::fs::set_permissions(fixture.path(name), std::fs::Permissions::from_mode(0o755)).expect("allowed");
        }
        let run_script = |script: &str| {
            let mut spec = fixture.shell_program(script);
            spec.environment.push(("PWD".into(), "/elsewhere".into()));
            let finished = fixture.run_spec(&spec);
            (finished.exit, finished.stdout.to_text_lossy())
        };
        let here = fixture.directory.path().display().to_string();
        assert_eq!(
            run_script("./bare 1"),
            (ProgramExit::Code(4), "bare 1\n".to_owned()),
            "the shell takes it for its own"
        );
        assert_eq!(run_script("./headed 2"), (ProgramExit::Signal(9), format!("headed 2 {here}\n")));
        assert_eq!(run_script("env -i sh -c pwd"), (ProgramExit::Code(0), format!("{here}\n")));
        assert_eq!(run_script("nowhere-to-be-found").0, ProgramExit::Code(127));
        assert_eq!(run_script("./nowhere").0, ProgramExit::Code(127));
        assert_eq!(run_script("/").0, ProgramExit::Code(126));
    });
}

#[test]
fn one_supervisor_does_many_runs() {
    let fixture = ProcessFixture::new(crate::common::LaunchMode::Supervised);
    let mut supervisor = crate::common::start_supervisor();
    for code in 0..5 {
        let spec = fixture.shell_program(&format!("sleep 100 & exit {code}"));
        let finished =
            supervisor.run_program(&spec, &fixture.owner_lock, &fixture.control, &mut |_, _| {}).expect("it starts");
        assert_eq!((finished.exit, finished.leaky), (ProgramExit::Code(code), true));
        let missing = supervisor.run_program(
            &fixture.argv_program(&["nowhere"]),
            &fixture.owner_lock,
            &fixture.control,
            &mut |_, _| {},
        );
        assert!(matches!(missing, Err(ProgramStartError::NotFound { .. })));
    }
}

fn start_refusal(fixture: &ProcessFixture, spec: &ProgramSpec) -> (String, String) {
    let error = fixture.try_run_spec(spec).expect_err("it cannot start");
    let kind = format!("{error:?}").split([' ', '{']).next().unwrap_or_default().to_owned();
    (kind, error.to_string())
}

#[test]
fn unstartable_program_is_refused_with_specific_error_kind() {
    check_launch_modes(|fixture| {
        let file = fixture.path("file");
        std::fs::write(&file, "true").expect("a file");
        let name = file.to_str().expect("plain").to_owned();
        let bad_interpreter = fixture.path("script");
        std::fs::write(&bad_interpreter, "#!/nowhere/at/all\n").expect("a file");
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&bad_interpreter, executable.clone()).expect("allowed");
        let not_a_program = fixture.path("noexec");
        std::fs::write(&not_a_program, "true").expect("a file");
        std::fs::set_permissions(&not_a_program, executable).expect("allowed");

        for (arguments, expected) in [
            (["no-such-program", ""], "NotFound"),
            (["/no/such/program", ""], "NotFound"),
            (["./none", ""], "NotFound"),
            (["", ""], "NotFound"),
            ([&name, ""], "NotExecutable"),
            (["/", ""], "NotExecutable"),
            (["./script", ""], "NotExecutable"),
            (["./noexec", ""], "NotExecutable"),
            (["true", &"x".repeat(4_000_000)], "ArgumentsTooLong"),
            (["true", "a\0b"], "Other"),
        ] {
            let (kind, text) = start_refusal(fixture, &fixture.argv_program(&arguments));
            assert_eq!(kind, expected, "{text}");
            assert!(kind == "Other" || text.contains(arguments[0]), "{text}");
        }
    });
}

#[test]
fn program_in_path_without_execute_permission_is_reported_not_executable() {
    check_launch_modes(|fixture| {
        std::fs::write(fixture.path("tool"), "true").expect("a file");
        let mut spec = fixture.argv_program(&["tool"]);
        spec.environment = vec![("PATH".into(), format!(".:{}", crate::common::SEARCH_PATH).into())];
        assert_eq!(start_refusal(fixture, &spec).0, "NotExecutable");
        std::fs::set_permissions(fixture.path("tool"), std::fs::Permissions::from_mode(0o755)).expect("allowed");
        std::fs::write(fixture.path("tool"), "#!/bin/sh\nexit 7\n").expect("a file");
        assert_eq!(fixture.run_spec(&spec).exit, ProgramExit::Code(7), "found in the child's directory");
    });
}

#[test]
fn missing_directory_is_reported_instead_of_missing_program() {
    check_launch_modes(|fixture| {
        std::fs::write(fixture.path("file"), "").expect("a file");
        for gone in ["gone", "file"] {
            for mut spec in [
                fixture.shell_program("true"),
                fixture.argv_program(&["true"]),
                fixture.argv_program(&["no-such-program"]),
            ] {
                spec.directory = fixture.path(gone);
                let (kind, text) = start_refusal(fixture, &spec);
                assert_eq!(kind, "NoDirectory");
                assert!(text.contains(gone), "{text}");
            }
        }
    });
}

#[test]
fn timeout_kills_program_ignoring_sigterm_and_keeps_output() {
    check_launch_modes(|fixture| {
        let mut spec =
            fixture.shell_program("trap '' TERM; echo partial; (trap '' TERM; sleep 1000) & sleep 1000; sleep 1000");
        spec.timeout = Some(Duration::from_millis(200));
        spec.grace = Duration::from_millis(100);
        let finished = fixture.run_spec(&spec);
        assert_eq!((finished.exit, finished.leaky), (ProgramExit::TimedOut, false));
        assert_eq!(finished.stdout.to_text_lossy(), "partial\n");
        assert!(finished.took >= Duration::from_millis(300), "{:?}: the grace was given", finished.took);
        assert!(finished.took < Duration::from_millis(1300), "{:?}", finished.took);
        assert_eq!(crate::common::tagged_processes(fixture.owner_lock.name()), [0; 0]);
    });
}

#[test]
fn program_may_clean_up_after_sigterm() {
    check_launch_modes(|fixture| {
        let mut spec =
            fixture.shell_program("trap 'echo tidied; exit 0' TERM; echo ready; sleep 1000 >/dev/null 2>&1 & wait");
        spec.timeout = Some(Duration::from_millis(200));
        let finished = fixture.run_spec(&spec);
        assert_eq!(finished.exit, ProgramExit::TimedOut);
        assert_eq!(finished.stdout.to_text_lossy(), "ready\ntidied\n");
        assert!(finished.took < Duration::from_secs(5), "{:?}: the grace was not needed", finished.took);
    });
}

#[test]
fn stopped_program_receives_sigterm_at_timeout() {
    check_launch_modes(|fixture| {
        let mut spec = fixture.shell_program("trap 'echo heard; exit 0' TERM; kill -STOP $$; sleep 1000");
        spec.timeout = Some(Duration::from_millis(200));
        let finished = fixture.run_spec(&spec);
        assert_eq!((finished.exit, finished.stdout.to_text_lossy()), (ProgramExit::TimedOut, "heard\n".to_owned()));
    });
}
