//! Kills during the creation of a project: the next command finishes it, and nothing else is left.

use std::fs;
use std::os::unix::process::ExitStatusExt;

use super::checks::{Fault, Kind};
use super::stage::{Crash, strace};
use super::sweep::{Call, Play};
use crate::support::{WINDLASS, World};

/// The system calls that create files.
pub const MAKING: &[Call] = &[
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

pub struct Beginning;

impl Play for Beginning {
    type Bench = ();

    fn bench(&self) {}

    fn play(&self, (): &(), crashes: &[Crash]) -> (usize, Vec<Fault>) {
        let [Crash::Call(call, nth)] = crashes else { unreachable!("it is killed in one call") };
        let world = World::empty();
        let mut command = world.program(strace().expect("a crash in a call needs strace"));
        command.args(["-qq", "-e", &format!("trace=?{call}"), "-e", &format!("inject=?{call}:signal=KILL:when={nth}")]);
        command.arg("-o").arg(world.programs().join("trace")).args(["--", WINDLASS, "init"]);
        let is_killed = command.output().unwrap().status.signal().is_some();
        let mut faults = Vec::new();
        for words in [&["init"][..], &["task", "add", "One"], &["doctor"]] {
            let ran = world.run(words);
            if ran.code != 0 {
                faults.push(Fault::new(Kind::Different, format!("{words:?}: {ran}")));
            }
        }
        let names: Vec<_> = fs::read_dir(world.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        if names != [".windlass"] {
            faults.push(Fault::new(Kind::Odd, format!("what is there now: {names:?}")));
        }
        (usize::from(is_killed), faults)
    }
}
