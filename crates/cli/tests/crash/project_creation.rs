//! Kills during the creation of a project. The next command completes the creation, and no temporary files remain.

use std::fs;
use std::os::unix::process::ExitStatusExt;

use super::checks::{GuaranteeViolation, ViolationKind};
use super::crash_setup::{CrashPoint, find_strace};
use super::sweep::{CrashScenario, TracedCall};
use crate::support::{TestWorld, WINDLASS};

/// The system calls that create files.
pub const PROJECT_CREATION_CALLS: &[TracedCall] = &[
    &[("mkdir", &[1]), ("mkdirat", &[])],
    &[("openat", &[])],
    &[("write", &[1])],
    &[("pwrite64", &[1, 5])],
    &[("ftruncate", &[1])],
    &[("fdatasync", &[1])],
    &[("fsync", &[2])],
    &[("rename", &[1]), ("renameat", &[]), ("renameat2", &[])],
    &[("unlink", &[]), ("unlinkat", &[])],
];

/// The scenario: `windlass init`, killed in a system call, and then ordinary commands.
pub struct ProjectCreation;

impl CrashScenario for ProjectCreation {
    type Environment = ();

    fn create_environment(&self) {}

    fn run_with_crashes(&self, (): &(), crashes: &[CrashPoint]) -> (usize, Vec<GuaranteeViolation>) {
        let [CrashPoint::SystemCall(call, nth)] = crashes else { unreachable!("it is killed in one call") };
        let world = TestWorld::empty();
        let mut command = world.program(find_strace().expect("a crash in a call needs strace"));
        command.args(["-qq", "-e", &format!("trace=?{call}"), "-e", &format!("inject=?{call}:signal=KILL:when={nth}")]);
        command.arg("-o").arg(world.program_directory().join("trace")).args(["--", WINDLASS, "init"]);
        let is_killed = command.output().unwrap().status.signal().is_some();
        let mut violations = Vec::new();
        for words in [&["init"][..], &["task", "add", "One"], &["doctor"]] {
            let output = world.run(words);
            if output.code != 0 {
                violations
                    .push(GuaranteeViolation::new(ViolationKind::DifferentResult, format!("{words:?}: {output}")));
            }
        }
        let names: Vec<_> = fs::read_dir(world.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        if names != [".windlass"] {
            violations.push(GuaranteeViolation::new(
                ViolationKind::UnexpectedOutput,
                format!("files in the directory: {names:?}"),
            ));
        }
        (usize::from(is_killed), violations)
    }
}
