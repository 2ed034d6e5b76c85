//! Who is alive, who is dead, and who is a stranger.
#![allow(clippy::disallowed_methods, reason = "a stranger must not be a run of the test")]

use std::process::{Child, Command};

use windlass_process::{Roster, is_alive, sweep};

use crate::common::is_dead;

struct Stranger(Child);

impl Stranger {
    fn new(tag: &str) -> Self {
        Self(Command::new("/bin/sleep").arg("1000").env("WINDLASS_TAG", tag).spawn().expect("sleep"))
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).expect("a number")
    }

    fn start_time(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).expect("it is there");
        stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19)?.parse().ok()).expect("a start time")
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("proc").trim().to_owned()
}

#[test]
fn an_owner_is_alive_until_it_is_dropped() {
    let directory = tempfile::tempdir().expect("a directory");
    assert!(!is_alive(directory.path(), "me"));
    let roster = Roster::enlist(directory.path(), "me").expect("a roster");
    assert!(is_alive(directory.path(), "me"));
    assert_eq!(sweep(directory.path()).expect("it can be read"), []);
    assert!(Roster::enlist(directory.path(), "me").is_err(), "there is one already");
    drop(roster);
    assert!(!is_alive(directory.path(), "me"));
    assert!(!directory.path().join("me").exists());
    Roster::enlist(directory.path(), "me").expect("the name is free again");
    std::fs::create_dir(directory.path().join("directory")).expect("a directory");
    rustix::fs::mkfifoat(rustix::fs::CWD, directory.path().join("fifo"), 0o600.into()).expect("a fifo");
    assert_eq!(sweep(directory.path()).expect("what is no file is no owner"), []);
    assert_eq!(sweep(&directory.path().join("nowhere")).expect("nothing to do"), []);
}

#[test]
fn a_name_is_a_plain_file_name() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["", ".", "..", ".hidden", "a/b", "a\0b"] {
        assert!(Roster::enlist(directory.path(), name).is_err(), "{name:?}");
    }
}

#[test]
fn strangers_are_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let owner = format!("dead-{}", std::process::id());
    let strangers = [
        Stranger::new("somebody.1"),
        Stranger::new(&format!("{owner}x.1")),
        Stranger::new(&format!("{owner}.x")),
        Stranger::new(&format!("{owner}.1.2")),
        Stranger::new(&format!("x{owner}.1")),
    ];
    let [first, ..] = &strangers;
    let (pid, start, boot) = (first.pid(), first.start_time(), boot());
    let me = std::process::id();
    // The same number with another start time or boot, damaged lines, ourselves, and everybody's ancestor.
    let list = format!(
        "{pid} {later} {later} {boot}\n{pid} {start} {start} another-boot\n{pid}\n{pid} {start}\n{pid} {start} {boot}\n\
         \u{0}\u{1}\n-1 0 {all} {boot}\n0 0 {all} {boot}\n1 0 {all} {boot}\n{me} 0 {all} {boot}\n\
         {pid} 0 {all} {boot} x\n{pid} {later} 0 {boot}\n{pid} 0 {all} {}",
        &boot[..8],
        later = start + 1,
        all = u64::MAX,
    );
    std::fs::write(directory.path().join(&owner), [list.as_bytes(), b"\n\xff\xfe 1 2"].concat()).expect("a file");
    let swept = sweep(directory.path()).expect("it can be read");
    assert_eq!((swept.len(), &swept[0].ended), (1, &vec![]));
    for stranger in &strangers {
        assert!(!is_dead(stranger.pid()));
    }
    assert!(!directory.path().join(&owner).exists());
}

#[test]
fn those_who_carry_the_tag_or_are_on_the_list_are_ended() {
    let directory = tempfile::tempdir().expect("a directory");
    let owner = format!("gone-{}", std::process::id());
    // Below this process nothing may be ended, so an orphan is needed.
    let orphan = |tag: &str| {
        let script = "setsid sleep 1000 >/dev/null 2>&1 & echo $!";
        let output = Command::new("/bin/sh").args(["-c", script]).env("WINDLASS_TAG", tag).output().expect("sh");
        let pid: i32 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number");
        pid
    };
    let tagged = orphan(&format!("{owner}.12"));
    let listed = orphan("unrelated.1");
    let stat = std::fs::read_to_string(format!("/proc/{listed}/stat")).expect("it is there");
    let start = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19)).expect("a start time");
    crate::common::until("it leads a session", || {
        let stat = std::fs::read_to_string(format!("/proc/{listed}/stat")).expect("it is there");
        stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(3)) == Some(&listed.to_string())
    });
    std::fs::write(directory.path().join(&owner), format!("garbage\n{listed} {start} {start} {}\n", boot()))
        .expect("a file");
    let swept = sweep(directory.path()).expect("it can be read");
    let mut expected = vec![tagged, listed];
    expected.sort_unstable();
    assert_eq!(swept[0].ended, expected);
    assert!(is_dead(tagged) && is_dead(listed));
}
