//! Worktrees, gates and changes in random histories.

use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use windlass_engine::{ChangeFact, ChangeRef, Command, GateFinding, SubmissionCheck, SubmittedWork, Workspace};

use crate::history::StepAction;
use crate::steps::arbitrary_session;

/// Returns the worktree of all sessions. No rule depends on its location.
pub fn sample_workspace() -> Workspace {
    Workspace {
        branch: "windlass/t1".to_owned(),
        base: "main".to_owned(),
        start: "000".to_owned(),
        name: "T1".to_owned(),
        stacked_on: vec![],
        protected: None,
    }
}

/// Generates mostly some work, sometimes none, and sometimes work that is unfit.
pub fn arbitrary_submission() -> impl Strategy<Value = SubmissionCheck> {
    let done = |(head, commits): (&str, u32)| SubmittedWork { head: head.to_owned(), commits, files: 1 };
    let (work, moved) = (move |found| SubmissionCheck::Work(done(found)), SubmissionCheck::Unjudged(done(("abd", 1))));
    let unfit = || SubmissionCheck::NotSubmittable {
        hook: "commit".to_owned(),
        reason: "markers".to_owned(),
        feedback: "markers are left".to_owned(),
    };
    let head = prop_oneof![6 => Just("abc"), 1 => Just("abd")];
    let nothing = work(("abc", 0));
    prop_oneof![8 => (head, 1..3_u32).prop_map(work), 1 => Just(nothing), 1 => Just(moved), 1 => Just(unfit())]
}

/// Generates the new head of work that a hook moved. Most hooks move nothing.
pub fn arbitrary_moved_head() -> impl Strategy<Value = Option<String>> {
    option::weighted(0.1, select(vec!["abc", "abd"]).prop_map(str::to_owned))
}

pub fn arbitrary_change() -> impl Strategy<Value = Option<ChangeFact>> {
    let opened = select(vec!["http://x/1", "http://x/2"]).prop_map(|url| {
        ChangeFact::Opened(ChangeRef { branch: None, base: None, url: Some(url.to_owned()), number: None })
    });
    option::weighted(0.4, prop_oneof![2 => opened, 1 => Just(ChangeFact::Merged("def".to_owned()))])
}

/// Generates commands of runners, including commands that no session waits for.
pub fn gate_steps() -> impl Strategy<Value = StepAction> {
    let files = option::weighted(0.2, Just("{}".to_owned()));
    prop_oneof![
        2 => (arbitrary_session(), any::<bool>(), files, any::<bool>()).prop_map(|(name, reused, protected, conflicts)| {
            let finding = || GateFinding { source: "rebase_on_main".to_owned(), text: "both change a".to_owned() };
            let feedback = conflicts.then(finding);
            StepAction::Fixed(Command::OpenWorkspace { name, workspace: sample_workspace(), reused, protected, feedback })
        }),
        1 => arbitrary_session().prop_map(|name| StepAction::Fixed(Command::LeaveToPerson { name, reason: "look".to_owned(), commits: vec!["0a1b".to_owned()] })),
        1 => (arbitrary_session(), arbitrary_submission()).prop_map(|(name, check)| StepAction::Fixed(Command::SubmitWork { name, check })),
    ]
}
