//! Prompts to an agent: one call for the turns of a session and for consultations, with any driver.
//!
//! ```text
//!   turn, consultation ─► prompt_agent ─► AgentDriver::prompt ─► TurnOutcome
//!                                            └─► TurnJournal: the prompt, the log, the records, the observer
//! ```
//!
//! Invariants:
//! - The log has a conversation of a session as soon as it has a name.
//! - All output of an agent is kept, however the turn ends, and no secret of it at any time.
//!
//! Not here: drivers (`agents`), when an agent is prompted (`turn`, `consultation`).

use std::path::{Path, PathBuf};

use windlass_agents::{
    AgentDriver, OutputWatch, PromptRequest, TurnBudget, TurnEnd, TurnHost, TurnOutcome, TurnOutput,
};
use windlass_engine::{Command, Fault, Limits, Session, Turn};
use windlass_hooks::{Mask, clean, cut};
use windlass_process::{Finished, NotStarted, Spec, Stream};

use crate::effect_runner::run_under;
use crate::record::{TurnRecord, named};
use crate::{EffectRunner, RunError, RunnerEvent};

/// Origin of a prompt, and the place that its conversation is noted in.
pub(crate) enum PromptSource<'a> {
    /// A turn of a session. The log has the conversation.
    Turn { session: &'a Session, turn: &'a Turn },
    /// A question outside the turns. `word` writes it for an agent that remembers the conversation, or for one that does not.
    Question { word: &'a mut dyn FnMut(bool) -> String, conversation: &'a mut Option<String> },
}

/// Host of one turn in progress: records it, and shows it to the observer.
struct TurnJournal<'j, 's, 'd> {
    dispatch: &'j mut EffectRunner<'d>,
    source: PromptSource<'s>,
    /// Path of the records, without the end of their names.
    file: PathBuf,
    transcript: TurnRecord<'j>,
    stdout: TurnRecord<'j>,
    stderr: TurnRecord<'j>,
    /// Masked output of a program whose driver does not interpret it.
    printed: Option<Finished>,
    /// Error that ends the loop.
    failure: Option<RunError>,
}

impl EffectRunner<'_> {
    /// Prompts an agent, and waits for the end of its turn. The outcome names the record of the turn.
    pub(crate) fn prompt_agent(
        &mut self,
        driver: &mut dyn AgentDriver,
        request: &PromptRequest,
        budget: &mut TurnBudget,
        source: PromptSource<'_>,
    ) -> Result<TurnOutcome, RunError> {
        let mask = self.settings.mask.clone();
        let mut journal = TurnJournal::new(self, source, &request.record, &mask);
        let outcome = driver.prompt(request, budget, &mut journal);
        journal.finish(outcome)
    }
}

impl<'j, 's, 'd> TurnJournal<'j, 's, 'd> {
    fn new(dispatch: &'j mut EffectRunner<'d>, source: PromptSource<'s>, file: &Path, mask: &'j Mask) -> Self {
        let record = |end: &str| TurnRecord::new(mask, named(file, end));
        Self {
            dispatch,
            source,
            file: file.to_owned(),
            transcript: record("turn"),
            stdout: record("stdout"),
            stderr: record("stderr"),
            printed: None,
            failure: None,
        }
    }

    /// Ends the turn, because the loop cannot go on.
    fn fail(&mut self, error: RunError) -> TurnEnd {
        let end = TurnEnd::Broken(error.to_string());
        self.failure.get_or_insert(error);
        end
    }

    /// Runs a program whose output the driver interprets.
    fn run_watched(
        &mut self,
        spec: &Spec,
        watch: &mut OutputWatch<'_>,
    ) -> Result<Result<Finished, NotStarted>, RunError> {
        let (control, roster) = (self.dispatch.control.apart(), self.dispatch.roster);
        let mut supervisor = self.dispatch.take_supervisor()?;
        let mut observe = |stream, bytes: &[u8]| {
            if watch(self, stream, bytes).is_break() {
                control.call_off();
            }
        };
        let ran = run_under(&mut supervisor, spec, roster, &control, &mut observe);
        self.dispatch.supervisor.replace(supervisor);
        Ok(ran)
    }

    /// Shows and records the rest of the output, and names the record of the turn.
    fn finish(self, outcome: TurnOutcome) -> Result<TurnOutcome, RunError> {
        let Self { dispatch, file, transcript, stdout, stderr, printed, failure, .. } = self;
        dispatch.known.forget_changeable();
        let ((said, transcript), (_, stdout), (complaints, stderr)) =
            (transcript.finish(), stdout.finish(), stderr.finish());
        dispatch.show(Stream::Stdout, &said);
        dispatch.show(Stream::Stderr, &complaints);
        if let Some(error) = failure {
            return Err(error);
        }
        let record = match &printed {
            Some(printed) => dispatch.record(printed).or_else(|| dispatch.keep_printed(&file, printed, &outcome.end)),
            None => transcript.or(stdout).or(stderr).and_then(|path| dispatch.record_name(&path)),
        };
        Ok(TurnOutcome { record, ..outcome })
    }
}

impl TurnHost for TurnJournal<'_, '_, '_> {
    fn word_prompt(&mut self, remembers: bool) -> Result<String, TurnEnd> {
        match &mut self.source {
            PromptSource::Question { word, .. } => Ok(word(remembers)),
            PromptSource::Turn { session, turn } => match self.dispatch.prompt(session, turn, remembers) {
                Ok(Ok(prompt)) => Ok(prompt),
                Ok(Err(fault)) => Err(TurnEnd::failed(Fault::Prompt, format!("cannot make the prompt: {fault}"))),
                Err(error) => Err(self.fail(error)),
            },
        }
    }

    fn open_conversation(&mut self, name: &str, restarted_because: Option<&str>) -> Result<(), TurnEnd> {
        let anew = restarted_because.map(|why| self.dispatch.fit_reason(why));
        match &mut self.source {
            PromptSource::Question { conversation, .. } => **conversation = Some(name.to_owned()),
            PromptSource::Turn { turn, .. } => {
                let (run, conversation) = (turn.run.clone(), name.to_owned());
                let opened = self.dispatch.commit(&Command::OpenConversation { run, conversation, anew });
                opened.map_err(|error| self.fail(error))?;
            }
        }
        Ok(())
    }

    fn write(&mut self, output: TurnOutput<'_>) {
        match output {
            TurnOutput::Transcript(text) => {
                let masked = self.transcript.push(text.as_bytes());
                self.dispatch.show(Stream::Stdout, &masked);
            }
            TurnOutput::Stdout(bytes) => drop(self.stdout.push(bytes)),
            TurnOutput::Stderr(bytes) => {
                let masked = self.stderr.push(bytes);
                self.dispatch.show(Stream::Stderr, &masked);
            }
            TurnOutput::Notice(text) => {
                let text = self.dispatch.fit_reason(text);
                (self.dispatch.outside.tell)(RunnerEvent::Note(&text));
            }
        }
    }

    fn run_program(&mut self, spec: &Spec, watch: Option<&mut OutputWatch<'_>>) -> Result<Finished, TurnEnd> {
        let (ran, is_watched) = match watch {
            Some(watch) => (self.run_watched(spec, watch), true),
            None => (self.dispatch.start(spec), false),
        };
        let finished = match ran {
            Ok(Ok(finished)) => finished,
            Ok(Err(error)) => return Err(TurnEnd::Broken(error.to_string())),
            Err(error) => return Err(self.fail(error)),
        };
        if is_watched {
            return Ok(finished);
        }
        let mask = &self.dispatch.settings.mask;
        mask.spilled(&finished);
        let finished = mask.run(finished);
        self.printed = Some(finished.clone());
        Ok(finished)
    }
}

impl EffectRunner<'_> {
    /// Shows masked output to the observer.
    fn show(&mut self, stream: Stream, masked: &[u8]) {
        if self.outside.shows_output && !masked.is_empty() {
            (self.outside.tell)(RunnerEvent::Output(stream, masked));
        }
    }

    /// Masks a reason, and cuts it to the length that the log takes.
    fn fit_reason(&self, why: &str) -> String {
        cut(&self.settings.mask.text(&clean(why)), Limits::REASON)
    }

    /// Records the output of a program in a file, unless it is the answer itself.
    fn keep_printed(&self, file: &Path, printed: &Finished, end: &TurnEnd) -> Option<String> {
        let (stdout, stderr) = (printed.stdout.text(), printed.stderr.text());
        if matches!(end, TurnEnd::Said(said) if *said == stdout) {
            return None;
        }
        let mut record = TurnRecord::new(&self.settings.mask, named(file, "turn"));
        for text in [stdout, stderr] {
            record.push(text.as_bytes());
        }
        self.record_name(&record.finish().1?)
    }
}
