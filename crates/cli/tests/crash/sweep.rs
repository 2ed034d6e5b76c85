//! Many crashes of one kind: a sample of them, or, if `scripts/torture` asks, all.

use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::checks::Fault;
use super::stage::Crash;

/// Set by `scripts/torture`: all crash points, and what came of them on standard output.
const ALL: &str = "WINDLASS_TEST_CRASH_ALL";

/// The system calls that change something outside of the program, wait for it or start it, each with the times at which
/// the sample is killed in it. What a system does not have is never reached.
pub const CALLS: &[(&str, &[u32])] = &[
    ("write", &[31]),
    ("pwrite64", &[400]),
    ("fdatasync", &[17]),
    ("ftruncate", &[]),
    ("unlink", &[2]),
    ("mkdir", &[]),
    ("openat", &[]),
    ("flock", &[]),
    ("pipe2", &[]),
    ("socketpair", &[]),
    ("clone3", &[7]),
    ("clone", &[]),
    ("vfork", &[]),
    ("pidfd_open", &[5]),
    ("sendmsg", &[4]),
    ("recvfrom", &[]),
    ("ppoll", &[26]),
    ("poll", &[]),
    ("waitid", &[11]),
    ("kill", &[]),
    ("close", &[90]),
    ("fcntl", &[]),
    ("read", &[]),
    ("getrandom", &[]),
    ("utimensat", &[]),
    ("shutdown", &[1]),
];

/// Later crashes of a kind than the last one that was reached that are tried: how often a call is made varies a little.
const BEYOND: u32 = 3;

/// What can be played from its beginning to its end, with crashes on the way.
pub trait Play: Sync {
    /// Where it is played: each worker has one of its own.
    type Bench;

    fn bench(&self) -> Self::Bench;

    /// How many of the crashes came before the end, and what was wrong then.
    fn play(&self, bench: &Self::Bench, crashes: &[Crash]) -> (usize, Vec<Fault>);
}

/// What came of crashes.
pub struct Sweep<P> {
    play: P,
    reached: AtomicU32,
    wrong: Mutex<Vec<String>>,
}

impl<P: Play> Sweep<P> {
    pub fn new(play: P) -> Self {
        Self { play, reached: AtomicU32::new(0), wrong: Mutex::new(Vec::new()) }
    }

    /// Crashes at these times of a kind, or at every one, until it is over before it can crash.
    pub fn kill(&self, kind: &str, times: impl IntoIterator<Item = u32>, crashes: impl Fn(u32) -> Vec<Crash> + Sync) {
        if is_whole() {
            let before = (self.reached.load(Ordering::Relaxed), self.wrong.lock().unwrap().len());
            self.kill_always(&crashes);
            let reached = self.reached.load(Ordering::Relaxed) - before.0;
            let wrong = self.wrong.lock().unwrap().len() - before.1;
            say(&format!("killed {kind}: {reached} crash points, {wrong} of them wrong\n"));
            return;
        }
        let bench = self.play.bench();
        for nth in times {
            if !self.check(&bench, &crashes(nth)) {
                break;
            }
        }
    }

    fn kill_always(&self, crashes: &(impl Fn(u32) -> Vec<Crash> + Sync)) {
        let (next, last) = (AtomicU32::new(1), AtomicU32::new(0));
        let work = || {
            let bench = self.play.bench();
            loop {
                let nth = next.fetch_add(1, Ordering::Relaxed);
                if nth > last.load(Ordering::Relaxed) + BEYOND {
                    break;
                }
                if self.check(&bench, &crashes(nth)) {
                    last.fetch_max(nth, Ordering::Relaxed);
                }
            }
        };
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(work);
            }
        });
    }

    /// Plays the scenario with these crashes, and says whether the first of them was reached.
    fn check(&self, bench: &P::Bench, crashes: &[Crash]) -> bool {
        let (crashed, wrong) = self.play.play(bench, crashes);
        if crashed > 0 {
            self.reached.fetch_add(1, Ordering::Relaxed);
        }
        if !wrong.is_empty() {
            let wrong: Vec<_> = wrong.iter().map(|fault| format!("  {:?}: {}\n", fault.kind, fault.what)).collect();
            let wrong = format!("{crashes:?}\n{}", wrong.concat());
            if is_whole() {
                say(&wrong);
            }
            self.wrong.lock().unwrap().push(wrong);
        }
        crashed > 0
    }

    /// Fails if anything was wrong anywhere, or if nothing was killed.
    pub fn end(self) {
        let wrong = self.wrong.into_inner().unwrap();
        assert!(wrong.is_empty(), "{}", wrong.concat());
        assert!(self.reached.into_inner() > 0, "nothing was killed");
    }
}

pub fn is_whole() -> bool {
    #[expect(clippy::disallowed_methods, reason = "the script that wants everything says so")]
    std::env::var_os(ALL).is_some()
}

/// For whoever waits for minutes.
pub fn say(text: &str) {
    std::io::stdout().write_all(text.as_bytes()).unwrap();
}
