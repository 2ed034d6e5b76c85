//! From done to accepted: where the work of a task lies, and the two gates that it passes on its way to the others.
//!
//! ```text
//! workspace opened ─► iterations ─► work committed ─► before_submit ─► submitted ─► before_merge ─► completed
//!                        ▲                               │ remediate       ▲ again, on a newer base  │
//!                        └───────────────────────────────┘                 └─────────────────────────┤
//!                                                        │ given up: the next run takes it up        │ rejected: ready again
//! ```
//!
//! Invariants:
//! - A gate stops at its first hook that does not pass: what has not begun is skipped.
//! - What is merged is accepted, whatever a later hook says. An objection after the merge ends the session for a person.
//! - A gate that could not be asked, or not to the end, says nothing about the work: the next session of the task asks it again, and only if the work
//!   is not what it was an agent works first.
//! - Nothing is accepted over the head of a person: what was said since the work was called done is heard first, as long as no
//!   merge has begun.
//! - What a gate has to say reaches whoever works on the task next, in this attempt or in another one.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::debt::{HookClass, HookOutcome, OnFailure, OwedHook};
use crate::hook_point::HookPoint;
use crate::id::{ConfigDigest, Digest, RunId, Seq, TaskId};
use crate::limits::gist;
use crate::session::{Closing, Session, Verdict};
use crate::task::{Claim, Task};

/// Where a session does its work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grounds {
    /// In the directory of the project, as it is.
    #[default]
    InPlace,
    /// In a git worktree for each task.
    Worktrees,
}

impl Grounds {
    pub fn is_in_place(&self) -> bool {
        *self == Self::InPlace
    }
}

/// The worktree of a task, and the branch that holds its work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Workspace {
    pub branch: String,
    /// The branch that the work is meant for.
    pub base: String,
    /// The commit that the work begins after.
    pub start: String,
    /// The worktree's name among those of the project.
    pub name: String,
    /// The tasks on whose work it stands, because theirs is not merged yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacked_on: Vec<TaskId>,
    /// What the protected files held there before anybody worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected: Option<ConfigDigest>,
}

/// The work of a task as it is submitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkDone {
    /// The last commit.
    pub head: String,
    /// How many there are beyond the base.
    pub commits: u32,
    /// How many files they change.
    pub files: u32,
}

/// What there is to be submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readied {
    Work(WorkDone),
    /// Work that the stop hooks have not judged as it was committed: files that git ignores or filters were beside it, it has
    /// changed since, or it was brought onto another base. They judge the commit.
    Unjudged(WorkDone),
    /// What the agent said at the end of its work, where its task asks for a report.
    Report(String),
    /// It is not in order. The hook is what finds that, and the reasons are for people and for the agent.
    Unfit {
        hook: String,
        reason: String,
        feedback: String,
    },
}

/// How the work of a task can be looked at by others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChangeRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Where a forge shows it; without one it is in this log alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The forge's number for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
}

/// A change, and what has become of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskChange {
    #[serde(flatten)]
    pub at: ChangeRef,
    pub opened: Seq,
    /// The commit that has it in the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<String>,
}

/// What a hook has done about a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeFact {
    Opened(ChangeRef),
    /// The commit that has it in the base.
    Merged(String),
}

/// A change as gatekeepers have approved it: the same lines, under the same configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Approved {
    pub patch: Digest,
    /// The briefs by which it was.
    pub briefs: Vec<String>,
}

impl Approved {
    /// What was approved of the same change before counts as well.
    pub(crate) fn after(&self, before: Option<&Self>) -> Self {
        let mut briefs =
            before.filter(|before| before.patch == self.patch).map(|it| it.briefs.clone()).unwrap_or_default();
        let new: Vec<String> = self.briefs.iter().filter(|brief| !briefs.contains(brief)).cloned().collect();
        briefs.extend(new);
        Self { patch: self.patch, briefs }
    }
}

/// What a hook has told about itself, by names.
pub type HookContext = Map<String, Value>;

/// What whoever works on a task next has to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Finding {
    pub source: String,
    pub text: String,
}

/// Work that was judged done, where a gate could then not be asked about it, or where its session was ended on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Stalled {
    /// Where its way goes on.
    pub gate: Gate,
    /// The last commit of it.
    pub head: String,
    /// The configuration that its hooks were from.
    pub config: ConfigDigest,
    /// Whoever did the work.
    pub agent: String,
    /// What was said about it when it was called done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// Whoever was to judge it could not be started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unstarted: bool,
    /// A hook had judged it before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checked: bool,
    /// The stop hooks have to judge it again before it is submitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rejudged: bool,
    /// Why it was let pass although a stop hook did not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waived: Option<String>,
}

impl Stalled {
    /// The same, with who did the work on a task and what was said about it: a session that has only asked again has not done
    /// the work.
    pub(crate) fn after(self, task: &Task) -> Self {
        match task.stalled.clone() {
            // The hooks of the agent that did the work may be others, and have not judged it.
            Some(Self { agent, claim, .. }) if agent != self.agent => {
                Self { agent, claim, gate: Gate::BeforeSubmit, rejudged: true, ..self }
            }
            Some(Self { claim, .. }) => Self { claim, ..self },
            None => Self { claim: task.claim.clone(), ..self },
        }
    }

    /// Whether the hooks of a session are those that have let it pass so far.
    pub(crate) fn is_judged_for(&self, session: &Session) -> bool {
        self.config == session.config && self.agent == session.agent
    }
}

/// A gate between done and accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    BeforeSubmit,
    BeforeMerge,
}

impl Gate {
    pub const fn point(self) -> HookPoint {
        match self {
            Self::BeforeSubmit => HookPoint::BeforeSubmit,
            Self::BeforeMerge => HookPoint::BeforeMerge,
        }
    }

    /// The gate that a hook stands at.
    pub fn of(hook: &OwedHook) -> Option<Self> {
        [Self::BeforeSubmit, Self::BeforeMerge].into_iter().find(|gate| gate.point() == hook.point)
    }
}

impl OwedHook {
    /// Whether it judges the work: it stands at a gate, and is no step of git.
    pub fn is_check(&self) -> bool {
        self.class == HookClass::Gate && (self.point.is_gate())
    }
}

/// The hook that did not let the work pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Broken {
    pub hook: String,
    pub why: Why,
    /// In a few words.
    pub reason: String,
    /// For the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// Whoever was to judge it could not be started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unstarted: bool,
}

/// How a hook at a gate ended.
#[derive(Debug, Clone, Copy)]
pub struct HookEnd<'a> {
    pub outcome: HookOutcome,
    pub message: Option<&'a str>,
    pub feedback: Option<&'a str>,
    /// The program that was to judge the work could not be started.
    pub unstarted: bool,
}

/// In which way a hook did not let the work pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The work is not good enough.
    Blocked,
    /// It does not go together with the base.
    Conflicts,
    /// The hook could not do what it is for: that is not for the agent to mend.
    Failed,
    /// A person has to look.
    Escalated,
    /// A person has said something since the work was called done.
    Said,
    /// The work is at another commit than the one that is judged: on the newest base, or because its branch was moved.
    Moved,
}

impl Broken {
    /// What the end of a hook breaks, if it does. A hook that was not started or was cancelled has judged nothing, and at
    /// `before_merge` neither has one that ran out of time: before submission the work of the agent may be what hangs.
    pub fn by(hook: &OwedHook, end: &HookEnd<'_>) -> Option<Self> {
        let HookEnd { outcome, message, feedback, unstarted } = *end;
        let late = outcome == HookOutcome::TimedOut && Gate::of(hook) == Some(Gate::BeforeMerge);
        let unstarted = unstarted && outcome != HookOutcome::Block;
        let mute = unstarted || late;
        let why = match (Verdict::of(outcome, hook.on_failure), hook.on_failure) {
            (Verdict::Pass, _) | (Verdict::Fail, OnFailure::Ignore) => return None,
            _ if outcome == HookOutcome::Cancelled => Why::Failed,
            (Verdict::Continue, _)
                if outcome == HookOutcome::Continue && Gate::of(hook) == Some(Gate::BeforeSubmit) =>
            {
                Why::Blocked
            }
            (Verdict::Continue, _) => Why::Moved,
            (Verdict::Escalate, _) => Why::Escalated,
            (Verdict::Block, _) if mute => Why::Failed,
            (Verdict::Block, _) if outcome == HookOutcome::Block && hook.class == HookClass::Vcs => Why::Conflicts,
            (Verdict::Block, _) if outcome == HookOutcome::Block || feedback.is_some() => Why::Blocked,
            (Verdict::Block | Verdict::Fail, _) => Why::Failed,
        };
        let reason = message.map(gist).filter(|reason| !reason.is_empty());
        let reason = reason.unwrap_or_else(|| feedback.map(gist).unwrap_or_else(|| "it does not pass".to_owned()));
        let feedback = feedback.map(str::to_owned);
        Some(Self { hook: hook.hook.clone(), why, reason, feedback, unstarted })
    }

    /// Returns what a person is told where the work is merged already.
    pub(crate) fn objection_after_merge(&self) -> String {
        let Self { hook, why, reason, .. } = self;
        match why {
            Why::Escalated => format!("`{hook}` asks for a person after the merge: {reason}"),
            Why::Failed => format!("`{hook}` failed after the merge: {reason}"),
            _ => format!("`{hook}` does not pass after the merge: {reason}"),
        }
    }
}

/// What follows where a gate is not passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// The agent hears of it and goes on, in the same conversation.
    Remediate,
    /// The task is left as it is; the next run takes it up.
    GiveUp,
    /// The task is for anybody to take up again.
    Reject,
    /// A person has to look.
    Escalate,
    /// All of it once more, as the work is now.
    Again,
    /// The agent hears a person first, and goes on.
    Hear,
}

/// Work on its way through the gates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pipeline {
    pub run: RunId,
    /// How the session ends when all is well.
    pub closing: Closing,
    pub stage: Stage,
    /// The event whose hooks are the gate.
    pub at: Seq,
    /// What is on its way, where it lies in a worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkDone>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<Broken>,
    /// It is in the base: nothing takes that back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub merged: bool,
    /// What a hook has against the work after it was merged, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objection: Option<String>,
    /// The stop hooks judge it too: they judged it on another base, or were others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rejudged: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Submitting,
    Submitted,
    Merging,
}

impl Pipeline {
    /// Whether a hook that has not begun need not run: its gate is decided.
    pub(crate) fn is_decided(&self, at: Seq) -> bool {
        at == self.at && self.broken.is_some()
    }

    pub fn gate(&self) -> Gate {
        match self.stage {
            Stage::Submitting | Stage::Submitted => Gate::BeforeSubmit,
            Stage::Merging => Gate::BeforeMerge,
        }
    }
}
