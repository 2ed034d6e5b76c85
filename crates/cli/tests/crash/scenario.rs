//! The scenario: a session with hooks at every point of the loop, killed where a test wants it, and run to its end.
//!
//! ```text
//! open ─► plan ─► agent ─► check: step-1! ─► agent ─► check: step-2! ─► agent ─► check ─► review, bill
//!         plan ─► agent: COMPLETE ─► check ─► review, bill ─► agent hears the review: COMPLETE ─► check ─► review, bill ─► close
//! ```
//!
//! What the agent does follows from its prompt, and what the check finds follows from what the agent did. So whatever is
//! done twice comes to the same. In the other story the agent asks for the end when it is sent back: its turn is
//! cancelled, and `close` runs.

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

/// The hooks that may run again after a crash: a gate, and one that says so.
pub const AGAIN: &[&str] = &["check", "review"];
/// The hooks whose output goes to the agent, gates aside.
pub const PIPED: &[&str] = &["open", "plan", "review"];

/// What happens if nothing is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Story {
    Completed,
    /// By a SIGTERM in the second turn.
    Stopped,
}

impl Story {
    /// How a run that is not killed may exit. Whoever takes a stopped session over does not know the signal.
    fn exits(self) -> &'static [End] {
        match self {
            Self::Completed => &[End::Code(0)],
            Self::Stopped => &[End::Code(143), End::Code(3)],
        }
    }
}

/// Everything that can be known of a scenario from outside.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    pub seen: Seen,
    /// What `windlass events --json` prints in the end.
    pub log: String,
    /// What hooks and agent told.
    pub recorder: String,
}

/// Where a story is played.
pub struct Bench {
    program: Program,
    story: Story,
    /// A fail point that every run is given besides.
    broken: Option<&'static str>,
}

impl Bench {
    pub fn new(story: Story) -> Self {
        Self { program: Program::new(), story, broken: None }
    }

    /// The program, built wrongly.
    pub fn broken(fail: &'static str) -> Self {
        Self { broken: Some(fail), ..Self::new(Story::Completed) }
    }

    /// The scenario from its beginning to its end.
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

/// Whether the session has nothing left to do: then the same command would begin another.
fn is_over(stage: &Stage) -> bool {
    let log = super::log::read(&stage.log());
    log.iter().any(|entry| entry.kind() == "hook_finished" && entry.text("hook") == "close")
}

fn look(stage: &Stage, mut seen: Seen) -> Observed {
    stage.expect_none(&mut seen);
    stage.examine(&mut seen);
    Observed { seen, log: stage.log(), recorder: stage.recorded() }
}

/// A story that is to come to what it comes to undisturbed.
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
