//! Agents with a new process for each prompt, which goes on in the conversation before.
//!
//! ```text
//!   conversation before? ── yes ─► said in it ── it is gone ─┐
//!            └── no ─────────────────────────────────────────┴─► begun anew, with all that was before
//! ```
//!
//! Invariants:
//! - A conversation is in the log before anything is said in it where its name is ours to give, else when it is first seen.
//! - What an agent tells of a whole conversation is counted from where it was.
//! - All that it writes is kept, however the turn ends, and no secret of it at any time: its stream as it is, and beside it
//!   what it said and did, in words.
//!
//! Not here: command lines and streams (`agents`), when the agent has the word (`turn`).

use std::path::Path;
use std::time::Instant;

use windlass_agents::TurnEnd;
use windlass_agents::headless::{self, Dialect, Ended, Heard, Hearing, Place, Said};
use windlass_engine::{Command, Limits, Session, Turn, Usage};
use windlass_hooks::{clean, cut};
use windlass_process::{Spec, Stream};

use crate::record::{TurnRecord, named};
use crate::turn::{Patience, TurnOutcome};
use crate::{Dispatch, RunError, Runner, Told};

/// Why a conversation is another one although the one before was taken up.
const RENAMED: &str = "the agent goes on under another name";

/// What is said to an agent, and where.
struct Saying<'a> {
    dialect: Dialect,
    session: &'a Session,
    turn: &'a Turn,
    place: Place<'a>,
    prompt: &'a str,
    /// Why it is not said in the conversation before.
    anew: Option<String>,
}

/// What was heard.
pub(crate) struct Listened {
    pub heard: Heard,
    pub leaky: bool,
    pub record: Option<String>,
}

impl Runner<'_> {
    /// Has the agent answer in the conversation of the session, or in a new one.
    pub(crate) fn speak(
        &mut self,
        dialect: Dialect,
        session: &Session,
        turn: &Turn,
        patience: &Patience,
    ) -> Result<(), RunError> {
        let mut anew = None;
        if let Some(before) = session.conversation.as_deref().filter(|name| headless::is_name(name)) {
            let Some(prompt) = self.worded(session, turn, true)? else { return Ok(()) };
            let place = Place::Before(before);
            let saying = Saying { dialect, session, turn, place, prompt: &prompt, anew: Some(RENAMED.to_owned()) };
            match self.say(&saying, patience)? {
                Ok(asked) => return self.report(session, turn, asked),
                Err(gone) => anew = Some(cut(&self.dispatch.settings.mask.text(&clean(&gone)), Limits::REASON)),
            }
        }
        let Some(prompt) = self.worded(session, turn, false)? else { return Ok(()) };
        let random = (self.dispatch.outside.random)().map_err(RunError::Random)?;
        let name = dialect.name(random);
        if let Some(conversation) = name.clone() {
            let (run, anew) = (turn.run.clone(), anew.clone());
            self.give(&Command::OpenConversation { run, conversation, anew })?;
        }
        let saying = Saying { dialect, session, turn, place: Place::New(name.as_deref()), prompt: &prompt, anew };
        let asked = self.say(&saying, patience)?;
        let broken = |why| TurnOutcome::ended(TurnEnd::Broken(why), patience.time);
        self.report(session, turn, asked.unwrap_or_else(broken))
    }

    /// Has a process of the agent answer a prompt, to its end, or says why the conversation is gone.
    fn say(&mut self, saying: &Saying<'_>, patience: &Patience) -> Result<Result<TurnOutcome, String>, RunError> {
        let Saying { dialect, session, turn, place, prompt, .. } = saying;
        let directory = self.dispatch.directory_of(Some(session));
        let tools = self.own_server(turn);
        let script = headless::script(&self.agent, *dialect, *place, tools.as_ref());
        let environment = dialect.with_tools(tools.as_ref(), self.variables(session, turn));
        let mut spec = headless::spec(script, prompt, &directory, environment);
        spec.silence = self.allowance.silence;
        spec.timeout = patience.until.map(|until| until.saturating_duration_since(Instant::now()));
        let before = match place {
            Place::Before(_) => session.watch.used_in_conversation,
            Place::New(_) => Usage::default(),
        };
        let file = self.dispatch.settings.records.join(turn.effect.to_string());
        let listened = self.dispatch.listen((*dialect, *place), &spec, &file, &mut |dispatch, name| {
            let (run, conversation, anew) = (turn.run.clone(), name.to_owned(), saying.anew.clone());
            dispatch.give(&Command::OpenConversation { run, conversation, anew }).map(drop)
        })?;
        let Listened { heard, leaky, record } = listened;
        let usage = heard.used(before);
        Ok(match heard.ended {
            Ended::Turn(end) => Ok(TurnOutcome { end, time: patience.time, leaky, record, usage }),
            Ended::Gone(why) => Err(why),
        })
    }
}

impl Dispatch<'_> {
    /// Hears an agent while it works: shows it to the observer, and has the conversation noted as soon as it has a name. Its
    /// records are called like `file` but for the end of the name.
    pub(crate) fn listen(
        &mut self,
        (dialect, place): (Dialect, Place<'_>),
        spec: &Spec,
        file: &Path,
        note: &mut dyn FnMut(&mut Self, &str) -> Result<(), RunError>,
    ) -> Result<Listened, RunError> {
        let (resumes, mut known) = match place {
            Place::Before(name) => (true, Some(name.to_owned())),
            Place::New(name) => (false, name.map(str::to_owned)),
        };
        let mut hearing = Hearing::new(dialect, resumes);
        let control = self.control.apart();
        let mask = self.settings.mask.clone();
        let record = |end: &str| TurnRecord::new(&mask, named(file, end));
        let (mut words, mut out, mut err) = (record("turn"), record("stdout"), record("stderr"));
        let mut failure = None;
        let ran = self.start_watched(spec, &control, &mut |dispatch, stream, bytes| {
            let shown = dispatch.outside.shows_output;
            let record = if stream == Stream::Stdout { &mut out } else { &mut err };
            let sure = record.push(bytes);
            if stream == Stream::Stderr && shown {
                (dispatch.outside.tell)(Told::Output(stream, &sure));
            }
            for said in hearing.hear(stream, bytes) {
                match said {
                    Said::Text(text) => {
                        let sure = words.push(text.as_bytes());
                        if shown {
                            (dispatch.outside.tell)(Told::Output(Stream::Stdout, &sure));
                        }
                    }
                    Said::Conversation(name) if known.as_ref() == Some(&name) => {}
                    Said::Conversation(name) => {
                        failure = failure.take().or(note(dispatch, &name).err());
                        known = Some(name);
                    }
                }
            }
            if hearing.is_enough() || failure.is_some() {
                control.call_off();
            }
        })?;
        let ((rest, words), (_, stdout), (complaints, stderr)) = (words.finish(), out.finish(), err.finish());
        if self.outside.shows_output {
            for (stream, rest) in [(Stream::Stdout, rest), (Stream::Stderr, complaints)] {
                (self.outside.tell)(Told::Output(stream, &rest));
            }
        }
        if let Some(error) = failure {
            return Err(error);
        }
        // One that was called off had no time to end what it had started.
        let leaky = ran.as_ref().is_ok_and(|finished| finished.leaky) && !hearing.is_enough();
        let record = words.or(stdout).or(stderr).and_then(|path| self.record_name(&path));
        Ok(Listened { heard: hearing.end(&ran), leaky, record })
    }
}
