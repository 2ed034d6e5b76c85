//! The environment of a child: terminal, signals, descriptors, variables.

use crate::common::{PATH, check};

#[test]
fn child_has_no_terminal() {
    check(|scene| {
        let finished = scene.run(&scene.shell("if (: </dev/tty) 2>/dev/null; then echo one; else echo none; fi"));
        assert_eq!(finished.stdout.text(), "none\n");
        let finished =
            scene.run(&scene.shell("ps -o pid=,pgid=,sid= -p $$ | { read a b c; [ $a = $b ] && [ $b = $c ]; }"));
        assert_eq!(finished.exit, windlass_process::Exit::Code(0), "it leads its group and its session");
    });
}

#[test]
fn child_has_default_signal_state() {
    check(|scene| {
        // SIGPIPE is ignored in this process, and the handlers of the control are installed.
        let _received = windlass_process::signals::install_handlers(&scene.control, |_| {}).expect("handlers");
        let text = scene.run(&scene.argv(&["cat", "/proc/self/status"])).stdout.to_text_lossy();
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
fn no_descriptor_of_ours_is_inherited() {
    check(|scene| {
        let ours: Vec<_> = (0..10).map(|_| std::fs::File::open("/proc/self/stat").expect("a file")).collect();
        let script = "i=0; while [ $i -lt 64 ]; do [ -e /proc/$$/fd/$i ] && echo $i; i=$((i+1)); done";
        assert_eq!(scene.run(&scene.shell(script)).stdout.text(), "0\n1\n2\n", "beside {ours:?}");
    });
}

#[test]
fn the_environment_is_what_was_given_and_a_tag() {
    check(|scene| {
        let mut spec = scene.argv(&["env"]);
        spec.environment =
            vec![("PATH".into(), PATH.into()), ("A".into(), "b=c\nd".into()), ("WINDLASS_TAG".into(), "x.1".into())];
        let text = scene.run(&spec).stdout.to_text_lossy();
        assert_eq!(text, format!("PATH={PATH}\nA=b=c\nd\nWINDLASS_TAG={}.1\n", scene.roster.name()));
    });
}
