//! The sweep of processes that dead owners left behind, which spares living owners and unrelated processes.
#![allow(clippy::disallowed_methods, reason = "an unrelated process must not be a run of the test")]

use std::process::{Child, Command};

use windlass_process::{OwnerLock, is_owner_alive, sweep_dead_owners};

use crate::common::{is_dead, start_time};

struct UnrelatedProcess(Child);

impl UnrelatedProcess {
    fn new(tag: &str) -> Self {
        Self(Command::new("/bin/sleep").arg("1000").env("WINDLASS_TAG", tag).spawn().expect("sleep"))
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).expect("a number")
    }
}

impl Drop for UnrelatedProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("proc").trim().to_owned()
}

/// Returns the name of an owner that ended long ago.
fn dead_owner(nonce: u64) -> String {
    format!("run-{}-1-{nonce:016x}", std::process::id())
}

#[test]
fn owner_is_alive_until_its_lock_is_dropped() {
    let directory = tempfile::tempdir().expect("a directory");
    let owner_lock = OwnerLock::acquire(directory.path(), 0xabc).expect("an owner lock");
    let me = std::process::id();
    let name = format!("run-{me}-{}-0000000000000abc", start_time(me));
    assert_eq!(owner_lock.name(), name);
    assert!(is_owner_alive(directory.path(), &name));
    assert!(!is_owner_alive(directory.path(), &dead_owner(0xabc)), "the same number at another time");
    assert_eq!(sweep_dead_owners(directory.path()).expect("it can be read"), []);
    assert!(OwnerLock::acquire(directory.path(), 0xabc).is_err(), "there is one already");
    drop(owner_lock);
    assert!(!directory.path().join(&name).exists());
    OwnerLock::acquire(directory.path(), 0xabc).expect("the name is free again");
    assert_eq!(sweep_dead_owners(&directory.path().join("nowhere")).expect("nothing to do"), []);
}

#[test]
fn owner_with_removed_file_is_alive_while_its_process_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut unrelated = UnrelatedProcess::new("x.1");
    let name = format!("run-{}-{}-{:016x}", unrelated.pid(), start_time(unrelated.0.id()), 5);
    assert!(is_owner_alive(directory.path(), &name));
    assert!(is_owner_alive(&directory.path().join("nowhere"), &name));
    std::fs::write(directory.path().join(&name), "").expect("a file");
    assert!(!is_owner_alive(directory.path(), &name), "a file that is not locked");
    std::fs::remove_file(directory.path().join(&name)).expect("it is there");
    unrelated.0.kill().expect("it is there");
    crate::common::wait_until("it is dead", || is_dead(unrelated.pid()));
    assert!(!is_owner_alive(directory.path(), &name), "a zombie is not alive");
}

#[test]
fn owner_directory_symlink_is_refused_and_target_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let victim = directory.path().join("victim");
    std::fs::create_dir(&victim).expect("a directory");
    for name in [&dead_owner(1), "precious"] {
        std::fs::write(victim.join(name), "").expect("a file");
    }
    let owners = directory.path().join("owners");
    std::os::unix::fs::symlink(&victim, &owners).expect("a link");
    for path in [owners.clone(), owners.join("")] {
        let error = sweep_dead_owners(&path).expect_err("a link");
        assert!(error.to_string().contains("link"), "{error}");
        assert!(OwnerLock::acquire(&path, 1).is_err());
    }
    assert_eq!(std::fs::read_dir(&victim).expect("it is there").count(), 2);
}

#[test]
fn sweep_ignores_entries_that_are_not_owner_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, name) = (|name: &str| directory.path().join(name), dead_owner);
    for other in ["precious", "run-1-2-3", ".hidden", "run-0-1-0000000000000001"] {
        std::fs::write(path(other), "").expect("a file");
    }
    std::fs::create_dir(path(&name(1))).expect("a directory");
    rustix::fs::mkfifoat(rustix::fs::CWD, path(&name(2)), 0o600.into()).expect("a fifo");
    std::os::unix::fs::symlink(path("precious"), path(&name(3))).expect("a link");
    std::fs::hard_link(path("precious"), path(&name(4))).expect("a second name");
    let count = || std::fs::read_dir(directory.path()).expect("it is there").count();
    assert_eq!((sweep_dead_owners(directory.path()).expect("it can be read"), count()), (vec![], 8));
    for nonce in 1..=4 {
        assert!(!is_owner_alive(directory.path(), &name(nonce)));
    }
    let me = std::process::id();
    let mine = format!("run-{me}-{}-{:016x}", start_time(me), 9);
    rustix::fs::mkfifoat(rustix::fs::CWD, path(&mine), 0o600.into()).expect("a fifo");
    assert!(is_owner_alive(directory.path(), &mine), "what was put in its place says nothing");
    assert!(!is_owner_alive(directory.path(), "../run"));
}

/// Only root can change the owner of a file. For other users this test checks nothing.
#[test]
fn owner_files_of_other_users_are_not_swept() {
    let directory = tempfile::tempdir().expect("a directory");
    let owners = directory.path().join("owners");
    std::fs::create_dir(&owners).expect("a directory");
    let (theirs, ours) = (owners.join(dead_owner(1)), owners.join(dead_owner(2)));
    std::fs::write(&theirs, "").expect("a file");
    std::fs::write(&ours, "").expect("a file");
    if std::os::unix::fs::chown(&theirs, Some(65_534), None).is_err() {
        return;
    }
    let swept = sweep_dead_owners(&owners).expect("it can be read");
    assert_eq!(swept.into_iter().map(|swept| swept.name).collect::<Vec<_>>(), [dead_owner(2)]);
    assert!(theirs.exists() && !ours.exists());
    std::os::unix::fs::chown(&owners, Some(65_534), None).expect("it was possible before");
    let error = sweep_dead_owners(&owners).expect_err("a directory of another user");
    assert!(error.to_string().contains("belongs to another user"), "{error}");
}

#[test]
fn unrelated_processes_are_not_swept() {
    let directory = tempfile::tempdir().expect("a directory");
    let owner = dead_owner(7);
    let unrelated_processes = [
        UnrelatedProcess::new("stranger.1"),
        UnrelatedProcess::new(&format!("{owner}x.1")),
        UnrelatedProcess::new(&format!("{owner}.x")),
        UnrelatedProcess::new(&format!("{owner}.1.2")),
        UnrelatedProcess::new(&format!("x{owner}.1")),
    ];
    let [first, ..] = &unrelated_processes;
    let (pid, start, boot) = (first.pid(), start_time(first.0.id()), boot_id());
    let me = std::process::id();
    // The same number with another start time or boot, damaged lines, this process, and init.
    let list = format!(
        "{pid} {later} {later} {boot}\n{pid} {start} {start} another-boot\n{pid}\n{pid} {start}\n{pid} {start} {boot}\n\
         \u{0}\u{1}\n-1 0 {all} {boot}\n0 0 {all} {boot}\n1 0 {all} {boot}\n{me} 0 {all} {boot}\n\
         {pid} 0 {all} {boot} x\n{pid} {later} 0 {boot}\n{pid} 0 {all} {}",
        &boot[..8],
        later = start + 1,
        all = u64::MAX,
    );
    std::fs::write(directory.path().join(&owner), [list.as_bytes(), b"\n\xff\xfe 1 2"].concat()).expect("a file");
    let swept = sweep_dead_owners(directory.path()).expect("it can be read");
    assert_eq!((swept.len(), &swept[0].ended), (1, &vec![]));
    for unrelated in &unrelated_processes {
        assert!(!is_dead(unrelated.pid()));
    }
    assert!(!directory.path().join(&owner).exists());
}

/// The sweep gives a process the time to clean up on SIGTERM.
#[test]
fn sweep_gives_orphans_time_to_clean_up_on_sigterm() {
    let directory = tempfile::tempdir().expect("a directory");
    let (owner, lock, ready) = (dead_owner(9), directory.path().join("held.lock"), directory.path().join("ready"));
    let owners = directory.path().join("owners");
    std::fs::create_dir(&owners).expect("a directory");
    let script = "setsid sh -c 'trap \"rm held.lock; exit\" TERM; touch held.lock ready; while :; do sleep 0.01; done' \
                  >/dev/null 2>&1 &";
    let mut orphan = Command::new("/bin/sh");
    orphan.args(["-c", script]).env("WINDLASS_TAG", format!("{owner}.1")).current_dir(&directory);
    assert!(orphan.status().expect("sh").success());
    crate::common::wait_until("it holds its lock", || ready.exists());
    std::fs::write(owners.join(&owner), "").expect("a file");
    assert!(!sweep_dead_owners(&owners).expect("it can be read")[0].ended.is_empty());
    assert!(!lock.exists());
}

#[test]
fn those_who_carry_the_tag_or_are_on_the_list_are_ended() {
    let directory = tempfile::tempdir().expect("a directory");
    let owner = dead_owner(8);
    // A sweep spares descendants of this process, so an orphan is needed.
    let orphan = |tag: &str| {
        let script = "setsid sleep 1000 >/dev/null 2>&1 & echo $!";
        let output = Command::new("/bin/sh").args(["-c", script]).env("WINDLASS_TAG", tag).output().expect("sh");
        let pid: i32 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number");
        pid
    };
    let tagged = orphan(&format!("{owner}.12"));
    let listed = orphan("unrelated.1");
    let start = start_time(u32::try_from(listed).expect("a number"));
    crate::common::wait_until("it leads a session", || {
        let stat = std::fs::read_to_string(format!("/proc/{listed}/stat")).expect("it is there");
        stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(3)) == Some(&listed.to_string())
    });
    std::fs::write(directory.path().join(&owner), format!("garbage\n{listed} {start} {start} {}\n", boot_id()))
        .expect("a file");
    let swept = sweep_dead_owners(directory.path()).expect("it can be read");
    let mut expected = vec![tagged, listed];
    expected.sort_unstable();
    assert_eq!(swept[0].ended, expected);
    assert!(is_dead(tagged) && is_dead(listed));
}
