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

use std::fs;
use std::path::Path;

use windlass_agents::{
    AgentDriver, OutputWatch, PromptRequest, TurnBudget, TurnEnd, TurnHost, TurnOutcome, TurnOutput,
};
use windlass_engine::{AgentTurn, Command, EngineLimits, Session, TurnFailure};
use windlass_hooks::{SecretMask, clean_output, excerpt_text};
use windlass_process::{OutputStream, ProgramOutcome, ProgramSpec, ProgramStartError};

use crate::effect_runner::run_under;
use crate::turn_record::{TurnRecord, with_extension};
use crate::{EffectRunner, RunError, RunnerEvent};

/// Origin of a prompt, and the place that its conversation is noted in.
pub(crate) enum PromptSource<'a> {
    /// A turn of a session. The log has the conversation.
    Turn { session: &'a Session, turn: &'a AgentTurn },
    /// A question outside the turns. `word` writes it for an agent that remembers the conversation, or for one that does not.
    Question { word: &'a mut dyn FnMut(bool) -> String, conversation: &'a mut Option<String> },
}

/// Host of one turn in progress: records it, and shows it to the observer.
struct TurnJournal<'j, 's, 'd> {
    effects: &'j mut EffectRunner<'d>,
    source: PromptSource<'s>,
    transcript: TurnRecord<'j>,
    stdout: TurnRecord<'j>,
    stderr: TurnRecord<'j>,
    /// Masked standard output of a program whose driver did not watch, unless a part of it was omitted.
    printed: Option<String>,
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
        let outcome = driver.run_turn(request, budget, &mut journal);
        journal.finish_turn(outcome)
    }
}

impl<'j, 's, 'd> TurnJournal<'j, 's, 'd> {
    fn new(effects: &'j mut EffectRunner<'d>, source: PromptSource<'s>, file: &Path, mask: &'j SecretMask) -> Self {
        let record = |end: &str| TurnRecord::new(mask, with_extension(file, end));
        Self {
            effects,
            source,
            transcript: record("turn"),
            stdout: record("stdout"),
            stderr: record("stderr"),
            printed: None,
            failure: None,
        }
    }

    /// Ends the turn, because the loop cannot go on.
    fn fail_turn(&mut self, error: RunError) -> TurnEnd {
        let end = TurnEnd::Broken(error.to_string());
        self.failure.get_or_insert(error);
        end
    }

    /// Runs a program. The driver interprets its output if it watches; otherwise the transcript gets the output as it is.
    fn run_turn_program(
        &mut self,
        spec: &ProgramSpec,
        mut watch: Option<&mut OutputWatch<'_>>,
    ) -> Result<Result<ProgramOutcome, ProgramStartError>, RunError> {
        let (control, owner_lock) = (self.effects.control.with_own_cancel(), self.effects.owner_lock);
        let mut supervisor = self.effects.take_supervisor()?;
        let mut observe = |stream, bytes: &[u8]| match &mut watch {
            Some(watch) => {
                if watch(self, stream, bytes).is_break() {
                    control.cancel_own_runs();
                }
            }
            None => {
                let masked = self.transcript.push_masked(stream, bytes);
                self.effects.show_output(stream, &masked);
            }
        };
        let ran = run_under(&mut supervisor, spec, owner_lock, &control, &mut observe);
        self.effects.supervisor.replace(supervisor);
        Ok(ran)
    }

    /// Shows and records the rest of the output, and names the record of the turn.
    fn finish_turn(self, outcome: TurnOutcome) -> Result<TurnOutcome, RunError> {
        let Self { effects: dispatch, transcript, stdout, stderr, printed, failure, .. } = self;
        dispatch.known.forget_changeable_facts();
        let (([said, complaints], transcript), (_, stdout), ([_, more], stderr)) =
            (transcript.finish_record(), stdout.finish_record(), stderr.finish_record());
        dispatch.show_output(OutputStream::Stdout, &said);
        dispatch.show_output(OutputStream::Stderr, &complaints);
        dispatch.show_output(OutputStream::Stderr, &more);
        if let Some(error) = failure {
            return Err(error);
        }
        let mut path = transcript.or(stdout).or(stderr);
        if matches!((&outcome.end, &printed), (TurnEnd::Answered(answer), Some(printed)) if answer == printed) {
            // The log has the whole output. A file that stays is removed with the other old records.
            path.take().map(fs::remove_file);
        }
        Ok(TurnOutcome { record: path.and_then(|path| dispatch.record_name(&path)), ..outcome })
    }
}

impl TurnHost for TurnJournal<'_, '_, '_> {
    fn word_prompt(&mut self, remembers: bool) -> Result<String, TurnEnd> {
        match &mut self.source {
            PromptSource::Question { word, .. } => Ok(word(remembers)),
            PromptSource::Turn { session, turn } => match self.effects.build_prompt(session, turn, remembers) {
                Ok(Ok(prompt)) => Ok(prompt),
                Ok(Err(fault)) => {
                    Err(TurnEnd::from_failure(TurnFailure::Prompt, format!("cannot make the prompt: {fault}")))
                }
                Err(error) => Err(self.fail_turn(error)),
            },
        }
    }

    fn open_conversation(&mut self, name: &str, restarted_because: Option<&str>) -> Result<(), TurnEnd> {
        let anew = restarted_because.map(|why| self.effects.mask_reason(why));
        match &mut self.source {
            PromptSource::Question { conversation, .. } => **conversation = Some(name.to_owned()),
            PromptSource::Turn { turn, .. } => {
                let (run, conversation) = (turn.run.clone(), name.to_owned());
                let opened = self.effects.commit_command(&Command::OpenConversation { run, conversation, anew });
                opened.map_err(|error| self.fail_turn(error))?;
            }
        }
        Ok(())
    }

    fn write_output(&mut self, output: TurnOutput<'_>) {
        match output {
            TurnOutput::Transcript(text) => {
                let masked = self.transcript.push_masked(OutputStream::Stdout, text.as_bytes());
                self.effects.show_output(OutputStream::Stdout, &masked);
            }
            TurnOutput::Stdout(bytes) => drop(self.stdout.push_masked(OutputStream::Stdout, bytes)),
            TurnOutput::Stderr(bytes) => {
                let masked = self.stderr.push_masked(OutputStream::Stderr, bytes);
                self.effects.show_output(OutputStream::Stderr, &masked);
            }
            TurnOutput::Notice(text) => {
                let text = self.effects.mask_reason(text);
                (self.effects.env.observe)(RunnerEvent::Note(&text));
            }
        }
    }

    fn run_program(
        &mut self,
        spec: &ProgramSpec,
        watch: Option<&mut OutputWatch<'_>>,
    ) -> Result<ProgramOutcome, TurnEnd> {
        let is_watched = watch.is_some();
        let finished = match self.run_turn_program(spec, watch) {
            Ok(Ok(finished)) => finished,
            Ok(Err(error)) => return Err(TurnEnd::Broken(error.to_string())),
            Err(error) => return Err(self.fail_turn(error)),
        };
        if is_watched {
            return Ok(finished);
        }
        let is_whole = finished.stdout.omitted_byte_count() == 0;
        let finished = self.effects.settings.mask.mask_run(finished);
        self.printed = is_whole.then(|| finished.stdout.to_text_lossy());
        Ok(finished)
    }
}

impl EffectRunner<'_> {
    /// Shows masked output to the observer.
    fn show_output(&mut self, stream: OutputStream, masked: &[u8]) {
        if self.env.shows_output && !masked.is_empty() {
            (self.env.observe)(RunnerEvent::Output(stream, masked));
        }
    }

    /// Masks a reason, and cuts it to the length that the log takes.
    fn mask_reason(&self, why: &str) -> String {
        excerpt_text(&self.settings.mask.mask_text(&clean_output(why)), EngineLimits::REASON_BYTES)
    }
}
