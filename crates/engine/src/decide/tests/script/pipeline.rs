//! The commands for worktrees, gates and changes.

use super::ScriptLine;
use crate::command::Command;
use crate::delivery::{ChangeApproval, ChangeFact, ChangeRef, GateFinding, SubmissionCheck, SubmittedWork, Workspace};
use crate::log::event::Event;
use crate::log::id::{Digest, Epoch};

impl ScriptLine<'_> {
    pub(super) fn delivery_command(&self) -> Option<Command> {
        use Command as C;
        Some(match self.words[0] {
            "workspace" => {
                let (name, reused) = (self.word(1), false);
                let tells = self.options.get("conflicts").map(|text| (*text).to_owned());
                let feedback = tells.map(|text| GateFinding { source: "rebase_on_main".to_owned(), text });
                C::OpenWorkspace { name, workspace: sample_workspace(), reused, protected: None, feedback }
            }
            "work" => {
                let work = SubmittedWork {
                    head: self.options.get("head").copied().unwrap_or("abc").to_owned(),
                    commits: self.number_option("commits").unwrap_or(1),
                    files: 1,
                };
                let check = match self.options.contains_key("moved") {
                    true => SubmissionCheck::Unjudged(work),
                    false => SubmissionCheck::Work(work),
                };
                C::SubmitWork { name: self.word(1), check }
            }
            "report" => C::SubmitWork { name: self.word(1), check: SubmissionCheck::Report(self.text_from(2)) },
            "unfit" => {
                let (reason, feedback) = (self.text_from(2), format!("{}, in all of two files", self.text_from(2)));
                let hook = self.options.get("hook").copied().unwrap_or("commit").to_owned();
                C::SubmitWork { name: self.word(1), check: SubmissionCheck::NotSubmittable { hook, reason, feedback } }
            }
            "person" => C::LeaveToPerson { name: self.word(1), reason: self.text_from(2), commits: vec![] },
            "merged" => C::RecordMerge { id: self.task_id(), commit: self.words[2].to_owned(), seen: None },
            "expire" => {
                C::ExpireLease { id: self.task_id(), epoch: Epoch(self.number_option("epoch").unwrap().into()) }
            }
            _ => return None,
        })
    }

    /// Returns the branch of work that a person approves.
    pub(super) fn approved_work(&self) -> Option<ChangeRef> {
        let branch = self.options.get("branch")?;
        Some(ChangeRef { branch: Some((*branch).to_owned()), base: Some("main".to_owned()), url: None, number: None })
    }

    /// Returns the report of a hook about a change.
    pub(super) fn change(&self) -> Option<ChangeFact> {
        let opened = self.options.get("opens").map(|url| {
            let url = Some((*url).to_owned());
            ChangeFact::Opened(ChangeRef { branch: Some("windlass/t1".to_owned()), base: None, url, number: None })
        });
        opened.or_else(|| self.options.get("merges").map(|commit| ChangeFact::Merged((*commit).to_owned())))
    }
}

impl ScriptLine<'_> {
    /// Returns the approval of gatekeepers: `approves=qa+docs of=patch`.
    pub(super) fn approved(&self) -> Option<ChangeApproval> {
        let patch = Digest::of_bytes(self.options.get("of")?.as_bytes());
        let briefs = self.options.get("approves").map(|briefs| briefs.split('+').map(str::to_owned).collect());
        Some(ChangeApproval { patch, briefs: briefs.unwrap_or_default() })
    }
}

fn sample_workspace() -> Workspace {
    Workspace {
        branch: "windlass/t1".to_owned(),
        base: "main".to_owned(),
        start: "000".to_owned(),
        name: "t1".to_owned(),
        stacked_on: vec![],
        protected: None,
    }
}

pub(super) fn event_detail(event: &Event) -> String {
    match event {
        Event::PipelineFailed(failed) => {
            format!("{} {:?}: {:?} {}/{}", failed.hook, failed.why, failed.remedy, failed.count, failed.most)
        }
        Event::ChangeOpened(change) => change.url.clone().or(change.branch.clone()).unwrap_or_default(),
        Event::ChangeMerged(merged) => merged.commit.clone(),
        Event::TaskRejected(rejected) => format!("by {}", rejected.by),
        _ => String::new(),
    }
}
