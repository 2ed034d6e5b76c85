//! The environment of a child: terminal, signals, descriptors, variables.

use std::ffi::OsString;

use windlass_process::{ProgramSpec, ProgramStartError};

use crate::common::{SEARCH_PATH, check_launch_modes};

#[test]
fn child_has_no_terminal() {
    check_launch_modes(|fixture| {
        let finished =
            fixture.run_spec(&fixture.shell_program("if (: </dev/tty) 2>/dev/null; then echo one; else echo none; fi"));
        assert_eq!(finished.stdout.to_text_lossy(), "none\n");
        let finished = fixture.run_spec(
            &fixture.shell_program("ps -o pid=,pgid=,sid= -p $$ | { read a b c; [ $a = $b ] && [ $b = $c ]; }"),
        );
        assert_eq!(finished.exit, windlass_process::ProgramExit::Code(0), "it leads its group and its session");
    });
}

#[test]
fn child_has_default_signal_state() {
    check_launch_modes(|fixture| {
        // SIGPIPE is ignored in this process, and the handlers of the control are installed.
        let _received = windlass_process::signals::install_handlers(&fixture.control, |_| {}).expect("handlers");
        let text = fixture.run_spec(&fixture.argv_program(&["cat", "/proc/self/status"])).stdout.to_text_lossy();
        let sets = ["SigBlk:", "SigIgn:", "SigCgt:"].map(|set| text.lines().find(|line| line.starts_with(set)));
        for line in sets.map(|line| line.expect("a set")) {
            let (_, set) = line.split_once(':').expect("a set");
            let set = u64::from_str_radix(set.trim(), 16).expect("a set");
            // The two signals that glibc reserves are ignored in every child.
            assert_eq!(set & !(0b11 << 31), 0, "{line}");
        }
    });
}

#[test]
fn child_inherits_no_descriptors_besides_standard_streams() {
    check_launch_modes(|fixture| {
        let ours: Vec<_> = (0..10).map(|_| std::fs::File::open("/proc/self/stat").expect("a file")).collect();
        let script = "i=0; while [ $i -lt 64 ]; do [ -e /proc/$$/fd/$i ] && echo $i; i=$((i+1)); done";
        assert_eq!(
            fixture.run_spec(&fixture.shell_program(script)).stdout.to_text_lossy(),
            "0\n1\n2\n",
            "beside {ours:?}"
        );
    });
}

#[test]
fn child_environment_has_only_given_variables_and_owner_tag() {
    check_launch_modes(|fixture| {
        let mut spec = fixture.argv_program(&["env"]);
        spec.environment = vec![
            ("PATH".into(), SEARCH_PATH.into()),
            ("A".into(), "b=c\nd".into()),
            ("WINDLASS_TAG".into(), "x.1".into()),
        ];
        let text = fixture.run_spec(&spec).stdout.to_text_lossy();
        assert_eq!(text, format!("PATH={SEARCH_PATH}\nA=b=c\nd\nWINDLASS_TAG={}.1\n", fixture.owner_lock.name()));
    });
}

#[test]
fn wrapper_gets_path_and_arguments_of_program() {
    check_launch_modes(|fixture| {
        let wrapper: Vec<OsString> = ["env", "WRAPPED=yes"].map(OsString::from).to_vec();
        let direct = fixture.argv_program(&["sh", "-c", "echo $0 $1 $WRAPPED", "zero", "a b"]);
        let run = |spec| fixture.run_spec(&ProgramSpec { wrapper: wrapper.clone(), ..spec }).stdout.to_text_lossy();
        assert_eq!(run(direct), "zero a b yes\n");
        assert_eq!(run(fixture.shell_program("echo $WRAPPED; echo $#")), "yes\n0\n");
        assert_eq!(run(fixture.shell_program("printenv WRAPPED")), "yes\n", "a program that needs no shell");
        let missing = ProgramSpec { wrapper: wrapper.clone(), ..fixture.argv_program(&["no-such-program"]) };
        assert!(matches!(fixture.try_run_spec(&missing), Err(ProgramStartError::NotFound { .. })));
    });
}
