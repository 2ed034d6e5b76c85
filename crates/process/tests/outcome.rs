//! How a run ended, or why it did not start.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use windlass_process::{ProgramExit, ProgramSpec, ProgramStartError};

use crate::common::{Scene, check};

#[test]
fn exit_codes_and_signals_are_told_apart() {
    check(|scene| {
        for (script, exit) in [
            ("exit 0", ProgramExit::Code(0)),
            ("exit 3", ProgramExit::Code(3)),
            ("exit 255", ProgramExit::Code(255)),
            ("kill -TERM $$", ProgramExit::Signal(15)),
            ("kill -KILL $$", ProgramExit::Signal(9)),
            ("exit 137", ProgramExit::Code(137)),
        ] {
            let finished = scene.run(&scene.shell(script));
            assert_eq!((finished.exit, finished.leaky), (exit, false), "{script}");
        }
    });
}

#[test]
fn output_and_arguments_come_through() {
    check(|scene| {
        let finished = scene.run(&scene.shell("echo out; echo err >&2"));
        assert_eq!((finished.stdout.text(), finished.stderr.text()), ("out\n".into(), "err\n".into()));
        let finished = scene.run(&scene.argv(&["printf", "%s|", "a b", "", "$HOME"]));
        assert_eq!(finished.stdout.text(), "a b||$HOME|");
        let finished = scene.run(&scene.shell("pwd -P"));
        let directory = scene.directory.path().canonicalize().expect("it is there");
        assert_eq!(finished.stdout.text().trim_end(), directory.to_str().expect("plain"));
    });
}

/// A script must behave the same with and without a shell.
#[test]
fn a_script_of_words_alone_does_as_the_shell_would() {
    check(|scene| {
        std::fs::write(scene.path("bare"), "echo \"bare $1\"; exit 4").expect("a file");
        std::fs::write(scene.path("headed"), "#!/bin/sh\necho \"headed $1 $PWD\"; kill -KILL $$").expect("a file");
        for name in ["bare", "headed"] {
            std::fs::set_permissions(scene.path(name), std::fs::Permissions::from_mode(0o755)).expect("allowed");
        }
        let told = |script: &str| {
            let mut spec = scene.shell(script);
            spec.environment.push(("PWD".into(), "/elsewhere".into()));
            let finished = scene.run(&spec);
            (finished.exit, finished.stdout.to_text_lossy())
        };
        let here = scene.directory.path().display().to_string();
        assert_eq!(told("./bare 1"), (Exit::Code(4), "bare 1\n".to_owned()), "the shell takes it for its own");
        assert_eq!(told("./headed 2"), (Exit::Signal(9), format!("headed 2 {here}\n")));
        assert_eq!(told("env -i sh -c pwd"), (Exit::Code(0), format!("{here}\n")));
        assert_eq!(told("nowhere-to-be-found").0, Exit::Code(127));
        assert_eq!(told("./nowhere").0, Exit::Code(127));
        assert_eq!(told("/").0, Exit::Code(126));
    });
}

#[test]
fn one_supervisor_does_many_runs() {
    let scene = Scene::new(crate::common::Way::Supervised);
    let mut supervisor = crate::common::supervisor();
    for code in 0..5 {
        let spec = scene.shell(&format!("sleep 100 & exit {code}"));
        let finished = supervisor.run_program(&spec, &scene.roster, &scene.control, &mut |_, _| {}).expect("it starts");
        assert_eq!((finished.exit, finished.leaky), (Exit::Code(code), true));
        let missing = supervisor.run_program(&scene.argv(&["nowhere"]), &scene.roster, &scene.control, &mut |_, _| {});
        assert!(matches!(missing, Err(NotStarted::NotFound { .. })));
    }
}

fn refusal(scene: &Scene, spec: &ProgramSpec) -> (String, String) {
    let error = scene.try_run(spec).expect_err("it cannot start");
    let kind = format!("{error:?}").split([' ', '{']).next().unwrap_or_default().to_owned();
    (kind, error.to_string())
}

#[test]
fn what_cannot_start_says_why() {
    check(|scene| {
        let file = scene.path("file");
        std::fs::write(&file, "true").expect("a file");
        let name = file.to_str().expect("plain").to_owned();
        let bad_interpreter = scene.path("script");
        std::fs::write(&bad_interpreter, "#!/nowhere/at/all\n").expect("a file");
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&bad_interpreter, executable.clone()).expect("allowed");
        let not_a_program = scene.path("noexec");
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
            let (kind, text) = refusal(scene, &scene.argv(&arguments));
            assert_eq!(kind, expected, "{text}");
            assert!(kind == "Other" || text.contains(arguments[0]), "{text}");
        }
    });
}

#[test]
fn a_program_of_the_path_that_cannot_be_executed_is_not_missing() {
    check(|scene| {
        std::fs::write(scene.path("tool"), "true").expect("a file");
        let mut spec = scene.argv(&["tool"]);
        spec.environment = vec![("PATH".into(), format!(".:{}", crate::common::PATH).into())];
        assert_eq!(refusal(scene, &spec).0, "NotExecutable");
        std::fs::set_permissions(scene.path("tool"), std::fs::Permissions::from_mode(0o755)).expect("allowed");
        std::fs::write(scene.path("tool"), "#!/bin/sh\nexit 7\n").expect("a file");
        assert_eq!(scene.run(&spec).exit, Exit::Code(7), "found in the child's directory");
    });
}

#[test]
fn a_directory_that_is_gone_is_not_a_missing_program() {
    check(|scene| {
        std::fs::write(scene.path("file"), "").expect("a file");
        for gone in ["gone", "file"] {
            for mut spec in [scene.shell("true"), scene.argv(&["true"]), scene.argv(&["no-such-program"])] {
                spec.directory = scene.path(gone);
                let (kind, text) = refusal(scene, &spec);
                assert_eq!(kind, "NoDirectory");
                assert!(text.contains(gone), "{text}");
            }
        }
    });
}

#[test]
fn a_timeout_ends_even_what_ignores_sigterm_and_keeps_the_output() {
    check(|scene| {
        let mut spec = scene.shell("trap '' TERM; echo partial; (trap '' TERM; sleep 1000) & sleep 1000; sleep 1000");
        spec.timeout = Some(Duration::from_millis(200));
        spec.grace = Duration::from_millis(100);
        let finished = scene.run(&spec);
        assert_eq!((finished.exit, finished.leaky), (Exit::TimedOut, false));
        assert_eq!(finished.stdout.text(), "partial\n");
        assert!(finished.took >= Duration::from_millis(300), "{:?}: the grace was given", finished.took);
        assert!(finished.took < Duration::from_millis(1300), "{:?}", finished.took);
        assert_eq!(crate::common::tagged(scene.roster.name()), [0; 0]);
    });
}

#[test]
fn program_may_clean_up_after_sigterm() {
    check(|scene| {
        let mut spec = scene.shell("trap 'echo tidied; exit 0' TERM; echo ready; sleep 1000 >/dev/null 2>&1 & wait");
        spec.timeout = Some(Duration::from_millis(200));
        let finished = scene.run(&spec);
        assert_eq!(finished.exit, Exit::TimedOut);
        assert_eq!(finished.stdout.text(), "ready\ntidied\n");
        assert!(finished.took < Duration::from_secs(5), "{:?}: the grace was not needed", finished.took);
    });
}

#[test]
fn a_stopped_program_hears_sigterm() {
    check(|scene| {
        let mut spec = scene.shell("trap 'echo heard; exit 0' TERM; kill -STOP $$; sleep 1000");
        spec.timeout = Some(Duration::from_millis(200));
        let finished = scene.run(&spec);
        assert_eq!((finished.exit, finished.stdout.text()), (Exit::TimedOut, "heard\n".to_owned()));
    });
}
