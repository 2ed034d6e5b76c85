//! Content of a prompt: the task, what was said about it, and the feedback that the turn carries.
//!
//! Invariant: the content is bounded, however long the work on the task has taken.

use windlass_engine::{
    AgentTurn, CompletionMode, EarlierIteration, Event, FeedbackItem, FeedbackRef, MessageAuthor, NoteKind,
    PromptInputs, PromptNote, ReportBrief, Seq, Session, StateView, Task, TaskId, TurnPurpose, Workspace, payload,
};
use windlass_expr::EvaluationError;
use windlass_hooks::excerpt_text;

use crate::{EffectRunner, RunError};

/// Maximum size of the last answer in a prompt.
const MAX_LAST_OUTPUT: usize = 4 * 1024;
/// Maximum size of the excerpt of an earlier iteration.
const MAX_ITERATION_EXCERPT: usize = 400;
/// Maximum size of one note, and of all notes.
const MAX_NOTE: usize = 1024;
const MAX_NOTES_TOTAL: usize = 4 * 1024;

/// History of a task: iterations oldest first, notes newest first.
#[derive(Default)]
struct PromptHistory {
    iterations: Vec<(u32, String)>,
    notes: Vec<(NoteKind, String)>,
}

/// A piece of feedback, with its context.
struct FeedbackPiece {
    queued: payload::FeedbackQueued,
    about: Option<TaskId>,
    possibly_seen: bool,
}

impl FeedbackPiece {
    fn as_note(&self) -> FeedbackItem<'_> {
        let Self { queued, about, possibly_seen } = self;
        FeedbackItem {
            source: &queued.source,
            about: *about,
            reason: queued.reason.as_deref(),
            text: &queued.text,
            voice: queued.voice,
            possibly_seen: *possibly_seen,
        }
    }
}

impl EffectRunner<'_> {
    /// Returns the prompt of a turn, or the error of the user's template. An agent that remembers is not told its own output.
    pub(crate) fn build_prompt(
        &self,
        session: &Session,
        turn: &AgentTurn,
        remembers: bool,
    ) -> Result<Result<String, EvaluationError>, RunError> {
        // One snapshot for all rows is cheaper than one for each.
        let moment = self.store.begin_snapshot()?;
        let task = session.task.map(|id| moment.find_task(id)).transpose()?.flatten();
        let pieces: Vec<FeedbackPiece> =
            turn.feedback.iter().map(|piece| self.load_feedback_piece(session, piece)).collect::<Result<_, _>>()?;
        let last_output = if remembers { None } else { self.last_turn_output(session)? };
        let last_output = last_output.map(|output| excerpt_text(&output, MAX_LAST_OUTPUT));
        let mut memories = match &task {
            Some(task) if turn.purpose == TurnPurpose::Work => self.load_prompt_history(session, task)?,
            _ => PromptHistory::default(),
        };
        if remembers {
            memories.iterations.clear();
        }
        let goal = task.as_ref().map_or_else(|| session.goal.clone().unwrap_or_default(), Task::goal_and_body);
        let error = self.recovery_error(session, turn)?;
        let reviewed = task.as_ref().and_then(|task| task.report.as_ref()?.reviews);
        let reviewed = reviewed.map(|id| moment.find_task(id)).transpose()?.flatten();
        let checkout = session.workspace.as_ref().filter(|_| reviewed.is_some());
        let base = checkout.map(|workspace| self.shown_base(workspace));
        let report = session.report.then_some(ReportBrief { reviewed: reviewed.as_ref(), base: base.as_deref() });
        let prompt = PromptInputs {
            task: task.as_ref(),
            goal: &goal,
            session: session.name.as_str(),
            iteration: session.iteration,
            max_iterations: session.terms.max_iterations,
            purpose: &turn.purpose,
            last_output: last_output.as_deref(),
            error: error.as_deref(),
            history: memories
                .iterations
                .iter()
                .map(|(iteration, text)| EarlierIteration { iteration: *iteration, text })
                .collect(),
            notes: memories.notes.iter().map(|(kind, text)| PromptNote { kind: *kind, text }).collect(),
            feedback: open_rejection(task.as_ref(), &pieces)
                .into_iter()
                .chain(pieces.iter().map(FeedbackPiece::as_note))
                .collect(),
            report,
            asks_for_promise: session.terms.completion == CompletionMode::Promise,
            template: self.settings.prompt.as_ref(),
        };
        Ok(prompt.render_prompt())
    }

    /// Returns the base that the work in a worktree is compared with, under the name that git has for it there.
    fn shown_base(&self, workspace: &Workspace) -> String {
        let base = self.with_git(|git| self.last_known_base(git).map(|base| base.display_name()));
        base.unwrap_or_else(|_| workspace.base.clone())
    }

    fn load_feedback_piece(&self, session: &Session, piece: &FeedbackRef) -> Result<FeedbackPiece, RunError> {
        let envelope = self.load_event(piece.at)?.envelope;
        let Event::FeedbackQueued(queued) = envelope.event else { return Err(RunError::MissingEvent(piece.at)) };
        let about = envelope.node.task_id().filter(|task| Some(*task) != session.task);
        Ok(FeedbackPiece { queued, about, possibly_seen: piece.possibly_seen })
    }

    /// Returns the failure of the iteration that the agent has to recover from.
    fn recovery_error(&self, session: &Session, turn: &AgentTurn) -> Result<Option<String>, RunError> {
        let Some(at) = session.watch.failure.filter(|_| turn.purpose == TurnPurpose::Recovery) else { return Ok(None) };
        match self.load_event(at)?.envelope.event {
            Event::IterationFailed(failed) => Ok(Some(failed.error)),
            _ => Err(RunError::MissingEvent(at)),
        }
    }

    fn load_prompt_history(&self, session: &Session, task: &Task) -> Result<PromptHistory, RunError> {
        let mut memories = PromptHistory::default();
        // The prompt has the last output of the agent in full.
        for said in task.memo.iterations.iter().filter(|said| Some(said.at) != session.last_turn) {
            memories.iterations.push((said.iteration, self.summary_or_excerpt(said.at)?));
        }
        let mut room = MAX_NOTES_TOTAL;
        for at in task.memo.notes.iter().rev() {
            let Event::NoteAdded(note) = self.load_event(*at)?.envelope.event else {
                return Err(RunError::MissingEvent(*at));
            };
            let text = excerpt_text(&note.text, MAX_NOTE);
            let Some(left) = room.checked_sub(text.len()) else { break };
            room = left;
            memories.notes.push((note.kind, text));
        }
        Ok(memories)
    }

    /// Returns the text of a summary, or the end of an agent's output.
    fn summary_or_excerpt(&self, at: Seq) -> Result<String, RunError> {
        match self.load_event(at)?.envelope.event {
            Event::NoteAdded(note) => Ok(excerpt_text(&note.text, MAX_NOTE)),
            Event::TurnFinished(finished) => Ok(last_lines(&finished.output).to_owned()),
            _ => Err(RunError::MissingEvent(at)),
        }
    }
}

/// Returns the reason of the last rejection, unless the feedback has it. It stays in all prompts until the work is judged again.
fn open_rejection<'a>(task: Option<&'a Task>, pieces: &[FeedbackPiece]) -> Option<FeedbackItem<'a>> {
    let rejected = task?.rejected.as_ref()?;
    let is_delivered =
        |piece: &FeedbackPiece| piece.queued.source == rejected.source && piece.queued.text == rejected.text;
    (!pieces.iter().any(is_delivered)).then_some(FeedbackItem {
        source: &rejected.source,
        about: None,
        reason: Some("rejected for this reason, and not judged again yet"),
        text: &rejected.text,
        voice: MessageAuthor::Hook,
        possibly_seen: false,
    })
}

/// Returns the last lines of a text.
fn last_lines(text: &str) -> &str {
    let text = text.trim_end();
    let from = text.ceil_char_boundary(text.len().saturating_sub(MAX_ITERATION_EXCERPT));
    let tail = &text[from..];
    match tail.find('\n') {
        Some(line) if from > 0 => &tail[line + 1..],
        _ => tail,
    }
}

#[cfg(test)]
mod tests {
    use super::last_lines;

    #[test]
    fn excerpt_starts_at_line_break() {
        assert_eq!(last_lines("one\ntwo\n"), "one\ntwo");
        let long = format!("{}\nlast é line", "x".repeat(500));
        assert_eq!(last_lines(&long), "last é line");
        assert_eq!(last_lines(&"é".repeat(300)).chars().count(), 200);
    }
}
