//! Many crashes of one kind: a sample of them, or, if `scripts/torture` asks, all.

use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::checks::Fault;
use super::stage::Crash;

/// Set by `scripts/torture`: all crash points, and what came of them on standard output.
const ALL: &str = "WINDLASS_TEST_CRASH_ALL";

/// Something that goes by several names, of which a system may have only one, each with the times at which the sample is
/// disturbed in it.
pub type Call = &'static [(&'static str, &'static [u32])];

/// The system calls that change something outside of the program, wait for it or start it.
pub const CALLS: &[Call] = &[
    &[("write", &[31])],
    &[("pwrite64", &[400])],
    &[("fdatasync", &[17])],
    &[("ftruncate", &[])],
    &[("unlink", &[2]), ("unlinkat", &[])],
    &[("mkdir", &[]), ("mkdirat", &[])],
    &[("openat", &[])],
    &[("flock", &[])],
    &[("pipe2", &[])],
    &[("socketpair", &[])],
    &[("clone3", &[3]), ("clone", &[]), ("vfork", &[])],
    &[("pidfd_open", &[1])],
    &[("sendmsg", &[4])],
    &[("recvfrom", &[])],
    &[("ppoll", &[26]), ("poll", &[])],
    &[("waitid", &[1])],
    &[("pidfd_send_signal", &[]), ("kill", &[])],
    &[("close", &[90])],
    &[("fcntl", &[])],
    &[("read", &[])],
    &[("getrandom", &[])],
    &[("utimensat", &[])],
    &[("shutdown", &[1])],
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

    /// Crashes at these times of a kind, or at every one, until it is over before it can crash. One of them has to be reached.
    pub fn kill(&self, kind: &str, times: impl IntoIterator<Item = u32>, crashes: impl Fn(u32) -> Vec<Crash> + Sync) {
        let reached = self.reach(kind, times, crashes);
        self.expect(kind, reached.as_slice());
    }

    /// The same in a system call. It has to be reached by one of its names.
    pub fn kill_in(&self, kind: &str, call: Call, crash: impl Fn(&'static str, u32) -> Crash + Sync) {
        let way = |(name, times): &(&'static str, &'static [u32])| {
            self.reach(&format!("{kind} {name}"), times.iter().copied(), |nth| vec![crash(name, nth)])
        };
        let reached: Vec<u32> = call.iter().filter_map(way).collect();
        self.expect(&format!("{kind} {}", call[0].0), &reached);
    }

    /// What was tried and never reached shows nothing.
    fn expect(&self, kind: &str, reached: &[u32]) {
        if !reached.is_empty() && reached.iter().all(|many| *many == 0) {
            self.wrong.lock().unwrap().push(format!("{kind}: nothing was ever reached\n"));
        }
    }

    /// How many crash points of a kind were reached, if any was tried.
    fn reach(
        &self,
        kind: &str,
        times: impl IntoIterator<Item = u32>,
        crashes: impl Fn(u32) -> Vec<Crash> + Sync,
    ) -> Option<u32> {
        let before = (self.reached.load(Ordering::Relaxed), self.wrong.lock().unwrap().len());
        let mut tried = is_whole();
        if tried {
            self.kill_always(&crashes);
        } else {
            let mut times = times.into_iter().peekable();
            tried = times.peek().is_some();
            let bench = self.play.bench();
            for nth in times {
                if !self.check(&bench, &crashes(nth)) {
                    break;
                }
            }
        }
        let reached = self.reached.load(Ordering::Relaxed) - before.0;
        let wrong = self.wrong.lock().unwrap().len() - before.1;
        if is_whole() && reached > 0 {
            let is_deadly = crashes(1).iter().all(|crash| crash.is_deadly());
            let (how, what) = if is_deadly { ("killed", "crash points") } else { ("disturbed", "moments") };
            say(&format!("{how} {kind}: {reached} {what}, {wrong} of them wrong\n"));
        }
        tried.then_some(reached)
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

    /// Fails if anything was wrong anywhere.
    pub fn end(self) {
        let wrong = self.wrong.into_inner().unwrap();
        assert!(wrong.is_empty(), "{}", wrong.concat());
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

mod tests {
    use super::super::checks::Kind;
    use super::*;

    /// A play that can be crashed so many times, and what is wrong then.
    struct Planted(u32, Option<Kind>);

    impl Play for Planted {
        type Bench = ();

        fn bench(&self) {}

        fn play(&self, (): &(), crashes: &[Crash]) -> (usize, Vec<Fault>) {
            let reached = crashes.iter().filter(|crash| matches!(crash, Crash::Effect(nth) if *nth <= self.0));
            (reached.count(), self.1.map(|kind| Fault::new(kind, "planted")).into_iter().collect())
        }
    }

    fn swept(planted: Planted) {
        let sweep = Sweep::new(planted);
        sweep.kill("planted", 1.., |nth| vec![Crash::Effect(nth)]);
        sweep.end();
    }

    #[test]
    fn sweep_passes_if_every_crash_point_is_sound() {
        swept(Planted(2, None));
    }

    #[test]
    #[should_panic(expected = "planted: nothing was ever reached")]
    fn sweep_fails_if_crash_point_is_never_reached() {
        swept(Planted(0, None));
    }

    #[test]
    #[should_panic(expected = "Lost: planted")]
    fn sweep_reports_faults_of_crash_points() {
        swept(Planted(2, Some(Kind::Lost)));
    }
}
