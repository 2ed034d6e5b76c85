//! The scenario: a session with hooks at every point of the loop, killed where a test wants it, and run to its end.
//!
//! ```text
//! open ─► plan ─► agent ─► check: step-1! ─► agent ─► check: step-2! ─► agent ─► check ─► review, bill
//!         plan ─► agent: COMPLETE ─► check ─► review, bill ─► agent hears the review: COMPLETE ─► check ─► review, bill ─► close
//! ```
//!
//! The agent's work follows from its prompt, and the check's result follows from the agent's work. So a repeated step has the
//! same result. In the other story the agent asks for the end when it is sent back: its turn is cancelled, and `close` runs.

use super::checks::{Fault, faults};
use super::stage::{Crash, End, Program, Seen, Stage};
use super::sweep::Play;

const ACTOR: &str = include_str!("actor.sh");

const CONFIG: &str = r#"
hooks:
  session_start:
    - { name: open, command: '. "$CRASH_ACTOR"', pipe_output: true }
  pre_iteration:
    - { name: plan, command: '. "$CRASH_ACTOR"', pipe_output: true }
  stop:
    - { name: check, command: '. "$CRASH_ACTOR"' }
  post_iteration:
    - { name: review, command: '. "$CRASH_ACTOR"', pipe_output: true, idempotent: true }
    - { name: bill, command: '. "$CRASH_ACTOR"' }
  session_end:
    - { name: close, command: '. "$CRASH_ACTOR"' }
"#;

const RUN: &[&str] = &["--json", "run", "Mend the pump", "--agent", r#"command:. "$CRASH_ACTOR""#];

/// The hooks that may run again after a crash: a gate, and a hook with `idempotent`.
pub const AGAIN: &[&str] = &["check", "review"];
/// The hooks whose output goes to the agent, without gates.
pub const PIPED: &[&str] = &["open", "plan", "review"];

/// The story without a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Story {
    Completed,
    /// By a SIGTERM in the second turn.
    Stopped,
}

impl Story {
    /// The exit codes of a run that is not killed. A run that takes over a stopped session does not know the signal.
    fn exits(self) -> &'static [End] {
        match self {
            Self::Completed => &[End::Code(0)],
            Self::Stopped => &[End::Code(143), End::Code(3)],
        }
    }
}

/// Everything that an outside observer can know of a scenario.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    pub seen: Seen,
    /// The output of `windlass events --json` in the end.
    pub log: String,
    /// The records of hooks and agent.
    pub recorder: String,
}

/// The place of a story.
pub struct Bench {
    program: Program,
    story: Story,
    /// A fail point that every run gets in addition.
    broken: Option<&'static str>,
}

impl Bench {
    pub fn new(story: Story) -> Self {
        Self { program: Program::new(), story, broken: None }
    }

    /// A faulty build of the program.
    pub fn broken(fail: &'static str) -> Self {
        Self { broken: Some(fail), ..Self::new(Story::Completed) }
    }

    /// Plays the scenario from its beginning to its end.
    pub fn play(&self, crashes: &[Crash]) -> Observed {
        let stage = Stage::new(&self.program, ACTOR);
        stage.world.write(".windlass/config.yaml", CONFIG);
        stage.world.ok(&["trust", "--yes"]);
        let mut seen = Seen::default();
        for crash in crashes {
            if self.run(&stage, Some(*crash), &mut seen) != End::Killed {
                return look(&stage, seen);
            }
            seen.crashed += 1;
            if !matches!(crash, Crash::Both(_)) {
                stage.expect_none(&mut seen);
            }
            if is_over(&stage) {
                return look(&stage, seen);
            }
        }
        self.run(&stage, None, &mut seen);
        look(&stage, seen)
    }

    /// Runs the loop once, to its end or to the crash.
    fn run(&self, stage: &Stage, crash: Option<Crash>, seen: &mut Seen) -> End {
        let mut command = stage.command(RUN, crash);
        if self.story == Story::Stopped {
            command.env("CRASH_STOP", "yes");
        }
        if let Some(fail) = self.broken {
            command.env("WINDLASS_FAILPOINT", fail);
        }
        stage.run(&mut command, crash, self.story.exits(), seen)
    }
}

/// Returns whether the session has nothing left to do: the same command would start another one.
fn is_over(stage: &Stage) -> bool {
    let log = super::log::read(&stage.log());
    log.iter().any(|entry| entry.kind() == "hook_finished" && entry.text("hook") == "close")
}

fn look(stage: &Stage, mut seen: Seen) -> Observed {
    stage.expect_none(&mut seen);
    stage.examine(&mut seen);
    Observed { seen, log: stage.log(), recorder: stage.recorded() }
}

/// A story that must have the result of the undisturbed one.
pub struct Same {
    story: Story,
    undisturbed: Observed,
}

impl Same {
    pub fn new(story: Story) -> Self {
        Self { story, undisturbed: Bench::new(story).play(&[]) }
    }
}

impl Play for Same {
    type Bench = Bench;

    fn bench(&self) -> Bench {
        Bench::new(self.story)
    }

    fn play(&self, bench: &Bench, crashes: &[Crash]) -> (usize, Vec<Fault>) {
        let observed = bench.play(crashes);
        (observed.seen.crashed, faults(&observed, &self.undisturbed))
    }
}
