//! The texts of a store that become prompts: those of its open tasks, of tasks under review, and of its open sessions.

use std::collections::BTreeSet;

use windlass_engine::{Event, FeedbackRef, RowChange, Seq, Session, Task, TaskId, TaskState};
use windlass_store::{StoreError, StoreSurvey};

use super::StoreHolding;
use crate::show;

/// The greatest number of open tasks whose texts are listed. For more, the commands that print the texts are named.
const MAX_SHOWN_TASKS: usize = 20;

/// Lists every text, uncut.
pub fn list_prompt_texts(survey: &StoreSurvey) -> Result<Vec<StoreHolding>, StoreError> {
    let tasks =
        || survey.rows.iter().filter_map(|row| if let RowChange::PutTask(task) = row { Some(task) } else { None });
    let is_open = |task: &Task| !matches!(task.state, TaskState::Completed | TaskState::Deleted);
    let open = tasks().filter(|task| is_open(task)).count();
    let mut texts = PromptTexts { survey, holdings: Vec::new() };
    if open > MAX_SHOWN_TASKS {
        let what = "their texts become prompts: `windlass task list --all --json` prints their goals, bodies, deliverables, \
                    findings and results, `windlass events --json --type note_added --type feedback_queued --type \
                    turn_finished` the others";
        texts.holdings.push(StoreHolding { kind: "open tasks", about: open.to_string(), what: what.to_owned() });
    } else {
        let reviewed: BTreeSet<TaskId> =
            tasks().filter(|task| is_open(task)).filter_map(|task| task.report.as_ref()?.reviews).collect();
        for task in tasks().filter(|task| is_open(task) || reviewed.contains(&task.id)) {
            texts.add_task(task)?;
        }
    }
    for row in &survey.rows {
        if let RowChange::PutSession(session) = row
            && !session.is_over()
        {
            texts.add_session(session)?;
        }
    }
    Ok(texts.holdings)
}

/// The collected texts, and the store to look up further ones.
struct PromptTexts<'a> {
    survey: &'a StoreSurvey,
    holdings: Vec<StoreHolding>,
}

impl PromptTexts<'_> {
    fn push_text(&mut self, owner: &str, name: &str, text: impl Into<String>) {
        self.holdings.push(StoreHolding { kind: "prompt", about: format!("of {owner}: {name}"), what: text.into() });
    }

    fn add_task(&mut self, task: &Task) -> Result<(), StoreError> {
        let owner = task.id.to_string();
        self.push_text(&owner, "goal", &task.goal);
        task.body.iter().for_each(|body| self.push_text(&owner, "body", body));
        task.deliverables.iter().for_each(|text| self.push_text(&owner, "deliverable", text));
        for at in &task.memo.notes {
            self.add_event(&owner, "note", *at)?;
        }
        for said in &task.memo.iterations {
            self.add_event(&owner, "earlier turn", said.at)?;
        }
        self.add_feedback(&owner, task.undelivered_messages.iter().chain(&task.undelivered_feedback))?;
        let answer = task.answer.as_ref().and_then(|answer| answer.text.as_ref());
        answer.into_iter().for_each(|text| self.push_text(&owner, "answer", text));
        let rejected = task.rejected.iter().filter(|rejected| !task.findings.contains(rejected));
        for finding in task.findings.iter().chain(rejected) {
            self.push_text(&owner, "finding", format!("{}: {}", finding.source, finding.text));
        }
        task.result.iter().for_each(|text| self.push_text(&owner, "result", text));
        Ok(())
    }

    fn add_session(&mut self, session: &Session) -> Result<(), StoreError> {
        let owner = session.name.as_str();
        if let Some(at) = session.last_turn {
            self.add_event(owner, "last turn", at)?;
        }
        self.add_feedback(owner, session.pending.iter())
    }

    fn add_feedback<'p>(
        &mut self,
        owner: &str,
        pieces: impl Iterator<Item = &'p FeedbackRef>,
    ) -> Result<(), StoreError> {
        pieces.map(|piece| piece.at).try_for_each(|at| self.add_event(owner, "feedback", at))
    }

    fn add_event(&mut self, owner: &str, name: &str, at: Seq) -> Result<(), StoreError> {
        let Some(record) = self.survey.store.read_event(at)? else { return Ok(()) };
        let text = match &record.envelope.event {
            Event::TurnFinished(finished) => finished.output.clone(),
            Event::FeedbackQueued(queued) => {
                let reason = queued.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
                format!("{}{reason}: {}", queued.source, queued.text)
            }
            _ => show::summarize_event(&record),
        };
        self.push_text(owner, name, text);
        Ok(())
    }
}
