//! A sweep over the crash points of one kind. Ordinary tests try a sample; `scripts/torture` tries all of them.

use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::checks::GuaranteeViolation;
use super::crash_setup::CrashPoint;

/// The variable with which `scripts/torture` requests all crash points, and results on standard output.
const ALL_CRASH_POINTS_VARIABLE: &str = "WINDLASS_TEST_CRASH_ALL";

/// The names of a system call, of which a platform may have only one, each with the counts that the sample tries.
pub type TracedCall = &'static [(&'static str, &'static [u32])];

/// The system calls that change state outside of the program, wait for other processes or start them.
pub const TRACED_CALLS: &[TracedCall] = &[
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

/// The number of attempts after the last crash point that was reached. The number of calls varies a little between runs.
const EXTRA_ATTEMPTS: u32 = 3;

/// A scenario that a sweep runs with crashes.
pub trait CrashScenario: Sync {
    /// The resources of one worker thread.
    type Environment;

    fn create_environment(&self) -> Self::Environment;

    /// Runs the scenario with these crashes. Returns the number of crash points that were reached, and the violations.
    fn run_with_crashes(
        &self,
        environment: &Self::Environment,
        crashes: &[CrashPoint],
    ) -> (usize, Vec<GuaranteeViolation>);
}

/// A sweep over crash points, and its results.
pub struct CrashSweep<S> {
    scenario: S,
    reached: AtomicU32,
    failures: Mutex<Vec<String>>,
}

impl<S: CrashScenario> CrashSweep<S> {
    pub fn new(scenario: S) -> Self {
        Self { scenario, reached: AtomicU32::new(0), failures: Mutex::new(Vec::new()) }
    }

    /// Runs the scenario with a crash at each of these counts, or at every count up to the end of the scenario. At least one crash
    /// point must be reached.
    pub fn run_crashes(
        &self,
        kind: &str,
        times: impl IntoIterator<Item = u32>,
        crashes: impl Fn(u32) -> Vec<CrashPoint> + Sync,
    ) {
        let reached = self.count_reached(kind, times, crashes);
        self.require_reached(kind, reached.as_slice());
    }

    /// Runs the scenario with crashes in a system call. At least one of its names must be reached.
    pub fn run_crashes_in_call(
        &self,
        kind: &str,
        call: TracedCall,
        crash: impl Fn(&'static str, u32) -> CrashPoint + Sync,
    ) {
        let count_for_name = |(name, times): &(&'static str, &'static [u32])| {
            self.count_reached(&format!("{kind} {name}"), times.iter().copied(), |nth| vec![crash(name, nth)])
        };
        let reached: Vec<u32> = call.iter().filter_map(count_for_name).collect();
        self.require_reached(&format!("{kind} {}", call[0].0), &reached);
    }

    /// Records a failure if none of the tried crash points was reached: such a sweep would prove nothing.
    fn require_reached(&self, kind: &str, reached: &[u32]) {
        if !reached.is_empty() && reached.iter().all(|count| *count == 0) {
            self.failures.lock().unwrap().push(format!("{kind}: nothing was ever reached\n"));
        }
    }

    /// Runs the crashes of a kind. Returns the number of crash points that were reached, or `None` if the sample is empty.
    fn count_reached(
        &self,
        kind: &str,
        times: impl IntoIterator<Item = u32>,
        crashes: impl Fn(u32) -> Vec<CrashPoint> + Sync,
    ) -> Option<u32> {
        let before = (self.reached.load(Ordering::Relaxed), self.failures.lock().unwrap().len());
        let mut is_tried = tests_all_crash_points();
        if is_tried {
            self.run_all_crashes(&crashes);
        } else {
            let mut times = times.into_iter().peekable();
            is_tried = times.peek().is_some();
            let environment = self.scenario.create_environment();
            for nth in times {
                if !self.run_crash(&environment, &crashes(nth)) {
                    break;
                }
            }
        }
        let reached = self.reached.load(Ordering::Relaxed) - before.0;
        let failure_count = self.failures.lock().unwrap().len() - before.1;
        if tests_all_crash_points() && reached > 0 {
            let is_deadly = crashes(1).iter().all(|crash| crash.is_deadly());
            let (action, unit) = if is_deadly { ("killed", "crash points") } else { ("disturbed", "moments") };
            print_progress(&format!("{action} {kind}: {reached} {unit}, {failure_count} of them wrong\n"));
        }
        is_tried.then_some(reached)
    }

    fn run_all_crashes(&self, crashes: &(impl Fn(u32) -> Vec<CrashPoint> + Sync)) {
        let (next, last) = (AtomicU32::new(1), AtomicU32::new(0));
        let run_worker = || {
            let environment = self.scenario.create_environment();
            loop {
                let nth = next.fetch_add(1, Ordering::Relaxed);
                if nth > last.load(Ordering::Relaxed) + EXTRA_ATTEMPTS {
                    break;
                }
                if self.run_crash(&environment, &crashes(nth)) {
                    last.fetch_max(nth, Ordering::Relaxed);
                }
            }
        };
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(run_worker);
            }
        });
    }

    /// Runs the scenario with these crashes, and returns whether the first one was reached.
    fn run_crash(&self, environment: &S::Environment, crashes: &[CrashPoint]) -> bool {
        let (crash_count, violations) = self.scenario.run_with_crashes(environment, crashes);
        if crash_count > 0 {
            self.reached.fetch_add(1, Ordering::Relaxed);
        }
        if !violations.is_empty() {
            let violations: Vec<_> =
                violations.iter().map(|violation| format!("  {:?}: {}\n", violation.kind, violation.details)).collect();
            let failure = format!("{crashes:?}\n{}", violations.concat());
            if tests_all_crash_points() {
                print_progress(&failure);
            }
            self.failures.lock().unwrap().push(failure);
        }
        crash_count > 0
    }

    /// Fails if any run of the scenario had a violation.
    pub fn assert_no_violations(self) {
        let failures = self.failures.into_inner().unwrap();
        assert!(failures.is_empty(), "{}", failures.concat());
    }
}

/// Returns whether `scripts/torture` requests all crash points.
pub fn tests_all_crash_points() -> bool {
    #[expect(clippy::disallowed_methods, reason = "scripts/torture sets the variable")]
    std::env::var_os(ALL_CRASH_POINTS_VARIABLE).is_some()
}

/// Prints progress immediately, past the capture of the test harness.
pub fn print_progress(text: &str) {
    std::io::stdout().write_all(text.as_bytes()).unwrap();
}

mod tests {
    use super::super::checks::ViolationKind;
    use super::*;

    /// A scenario with this number of crash points and this violation.
    struct FakeScenario(u32, Option<ViolationKind>);

    impl CrashScenario for FakeScenario {
        type Environment = ();

        fn create_environment(&self) {}

        fn run_with_crashes(&self, (): &(), crashes: &[CrashPoint]) -> (usize, Vec<GuaranteeViolation>) {
            let reached =
                crashes.iter().filter(|crash| matches!(crash, CrashPoint::ProgramStart(nth) if *nth <= self.0));
            (reached.count(), self.1.map(|kind| GuaranteeViolation::new(kind, "planted")).into_iter().collect())
        }
    }

    fn run_fake_sweep(scenario: FakeScenario) {
        let sweep = CrashSweep::new(scenario);
        sweep.run_crashes("planted", 1.., |nth| vec![CrashPoint::ProgramStart(nth)]);
        sweep.assert_no_violations();
    }

    #[test]
    fn sweep_passes_if_every_crash_point_is_sound() {
        run_fake_sweep(FakeScenario(2, None));
    }

    #[test]
    #[should_panic(expected = "planted: nothing was ever reached")]
    fn sweep_fails_if_crash_point_is_never_reached() {
        run_fake_sweep(FakeScenario(0, None));
    }

    #[test]
    #[should_panic(expected = "LostEvent: planted")]
    fn sweep_reports_faults_of_crash_points() {
        run_fake_sweep(FakeScenario(2, Some(ViolationKind::LostEvent)));
    }
}
