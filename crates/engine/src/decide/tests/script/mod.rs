//! A small language for tests: one command per line, and one line for each event that it leads to.
//!
//! ```text
//! add mend the pump labels=agent prio=0 after=T1,T2     forced start T1      epoch=1 complete T1
//! later 90s                                             run=a.1 complete T1  claim T1 by=w1 for=60s
//! session a task=T1 by=w1 max=3 retries=1 failures=2    turn-done a.1 says=complete
//! hook check out=block tells=mend-it                    recover turn from=w1 by=w2
//! finish check asks=log:{};create_task:{"goal":"more"}  via=check add more
//! retry check after=flaky                               crash
//! turn-limited a.1 for=60s                              advance a            tell a ignore so be it
//! workspace a        work a commits=2                   unfit a conflict     finish pr opens=http://x/1
//! ```
//!
//! An effect is named by its id, by its hook, or, if it is a turn, by the word `turn`; `hook` begins and finishes one.
//! A refused line answers `! ` and the reason. A line `--` drops the answers so far. After a `crash` only the log is left.

mod pipeline;

use core::time::Duration;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::command::refusal::Refusal;
use crate::command::{
    Authority, Command, CommandOrigin, DeletionMode, HookReport, NewSession, NewTask, TaskPatch, TurnAnswer,
    TurnFailureReport,
};
use crate::decide::{EngineRules, decide};
use crate::effects::action::ActionRequest;
use crate::effects::hook_outcome::HookOutcome;
use crate::effects::outbox::{EffectKind, PendingEffect};
use crate::effects::registry::HookRegistry;
use crate::log::encoding::{decode_event, encode_event};
use crate::log::event::{Event, EventRecord};
use crate::log::event_type::EventType;
use crate::log::id::{Digest, EffectId, Epoch, OwnerName, RunId, Seq, SessionName, TaskId};
use crate::log::time::Timestamp;
use crate::session::usage::{AgentUsage, UsdCost};
use crate::session::{AfterIteration, GateAnswer, GateDecision, Session, SessionEndKind, SessionTerms, TurnPurpose};
use crate::task::{ReportRequest, Task};
use crate::view::StateView;
use crate::view::memory::MemoryView;

/// The configuration of every session that a script starts.
pub const CONFIG: &str = "hooks: {}";
const NONCE: u64 = 7;

/// A project that runs scripts.
pub struct Script {
    pub rules: EngineRules,
    pub memory: MemoryView,
    pub log: Vec<EventRecord>,
    now: Timestamp,
}

/// Returns the default registry, without effectful hooks.
pub fn default_rules() -> EngineRules {
    EngineRules { registry: HookRegistry::with_builtins(), ..EngineRules::default() }
}

/// Runs a script under the default rules and compares its answers, line by line.
#[track_caller]
pub fn check(script: &str, expected: &str) {
    check_with(default_rules(), script, expected);
}

#[track_caller]
pub fn check_with(rules: EngineRules, script: &str, expected: &str) {
    let answered = Script::new(rules).run(script);
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(answered, expected, "\n{}\n", answered.join("\n"));
}

impl Script {
    pub fn new(rules: EngineRules) -> Self {
        let now = "2026-01-17T10:00:00Z".parse().unwrap();
        Self { rules, memory: MemoryView::default(), log: Vec::new(), now }
    }

    /// Returns a project after a script whose every line was accepted.
    #[track_caller]
    pub fn after(rules: EngineRules, script: &str) -> Self {
        let mut project = Self::new(rules);
        let refused: Vec<_> = project.run(script).into_iter().filter(|line| line.starts_with('!')).collect();
        assert!(refused.is_empty(), "{refused:?}");
        project
    }

    pub fn run(&mut self, script: &str) -> Vec<String> {
        let mut answered = Vec::new();
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match Line::parse(line) {
                Line { words, .. } if words == ["--"] => answered.clear(),
                Line { words, .. } if words == ["crash"] => self.crash(),
                Line { words, .. } if words[0] == "later" => self.now = self.now.add_millis(millis(words[1])),
                mut line if line.words[0] == "hook" => {
                    for verb in ["begin", "finish"] {
                        line.words[0] = verb;
                        self.answer(&line, &mut answered);
                    }
                }
                line => self.answer(&line, &mut answered),
            }
        }
        answered
    }

    fn answer(&mut self, line: &Line<'_>, answered: &mut Vec<String>) {
        let command = line.command(self);
        let via = line.options.get("via").map(|word| self.effect(word));
        match self.give_via(via, line.authority(), line.run(), &command) {
            Ok(records) => answered.extend(records.iter().map(|record| self.shown(record))),
            Err(refusal) => answered.push(format!("! {refusal}")),
        }
    }

    pub fn give(
        &mut self,
        authority: Authority,
        run: Option<RunId>,
        command: &Command,
    ) -> Result<Vec<EventRecord>, Refusal> {
        self.give_via(None, authority, run, command)
    }

    /// Gives a command from inside a hook.
    pub fn give_via(
        &mut self,
        via: Option<EffectId>,
        authority: Authority,
        run: Option<RunId>,
        command: &Command,
    ) -> Result<Vec<EventRecord>, Refusal> {
        let origin = CommandOrigin { by: "ada".to_owned(), at: self.now, authority, run, via };
        let (entries, _) = decide(&self.memory, &self.rules, &origin, command)?.into_parts();
        let records: Vec<EventRecord> = entries.into_iter().map(|entry| entry.record).collect();
        records.iter().for_each(|record| self.memory.apply_event(record).unwrap());
        self.log.extend(records.iter().cloned());
        Ok(records)
    }

    /// Drops everything but the log, and folds that again from its bytes.
    pub fn crash(&mut self) {
        let before = std::mem::take(&mut self.memory);
        for record in &self.log {
            let envelope = decode_event(&encode_event(&record.envelope)).unwrap();
            self.memory.apply_event(&EventRecord { seq: record.seq, envelope }).unwrap();
        }
        assert_eq!(self.memory, before, "the log alone says what is there");
    }

    /// Gives a command of a person.
    pub fn ask(&mut self, command: &Command) -> Result<Vec<EventRecord>, Refusal> {
        self.give(Authority::Person, None, command)
    }

    pub fn task(&self, id: &str) -> Task {
        self.memory.find_task(id.parse().unwrap()).unwrap().unwrap()
    }

    pub fn session(&self, name: &str) -> Session {
        self.memory.find_session(&name.parse().unwrap()).unwrap().unwrap()
    }

    pub fn effects(&self) -> Vec<PendingEffect> {
        let mut effects: Vec<PendingEffect> = Vec::new();
        while let Some(effect) = self.memory.next_pending_effect(effects.last().map(|effect| effect.id)).unwrap() {
            effects.push(effect);
        }
        effects
    }

    /// Returns an effect by its id, by its hook's name, or the first turn. No effect has the id `1.0`.
    fn effect(&self, word: &str) -> EffectId {
        let named = |effect: &PendingEffect| match &effect.kind {
            EffectKind::Hook(hook) => hook.hook == word,
            EffectKind::Turn { .. } => word == "turn",
        };
        let found = || self.effects().into_iter().find(named).map(|effect| effect.id);
        word.parse().ok().or_else(found).unwrap_or(EffectId { seq: Seq(1), index: 0 })
    }

    /// Returns the data of the last event of a type, as the log has it.
    pub fn data(&self, kind: EventType) -> Value {
        let record = self.log.iter().rev().find(|record| record.kind() == kind).unwrap();
        serde_json::to_value(record).unwrap()["data"].take()
    }
}

/// The parts of a line `forced verb word word key=value`.
struct Line<'a> {
    forced: bool,
    words: Vec<&'a str>,
    options: BTreeMap<&'a str, &'a str>,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Self {
        let (forced, line) = line.strip_prefix("forced ").map_or((false, line), |rest| (true, rest));
        let (options, words): (Vec<_>, Vec<_>) = line.split_whitespace().partition(|word| word.contains('='));
        let options = options.into_iter().filter_map(|option| option.split_once('=')).collect();
        Self { forced, words, options }
    }

    fn authority(&self) -> Authority {
        match self.options.get("epoch") {
            _ if self.forced => Authority::Forced,
            Some(epoch) => Authority::Holder(Epoch(epoch.parse().unwrap())),
            None => Authority::Person,
        }
    }

    fn run(&self) -> Option<RunId> {
        self.options.get("run").map(|run| run_id(run))
    }

    fn list(&self, option: &str) -> Vec<String> {
        self.options.get(option).map_or(vec![], |list| list.split(',').map(str::to_owned).collect())
    }

    /// Returns the owner; `w1` by default.
    fn owner(&self) -> OwnerName {
        self.options.get("by").copied().unwrap_or("w1").parse().unwrap()
    }

    fn dead(&self) -> OwnerName {
        self.options.get("from").copied().unwrap_or("w1").parse().unwrap()
    }

    fn id(&self) -> TaskId {
        self.words[1].parse().unwrap()
    }

    fn rest(&self, from: usize) -> String {
        self.words.get(from..).unwrap_or_default().join(" ")
    }

    fn reason(&self) -> String {
        Some(self.rest(2)).filter(|reason| !reason.is_empty()).unwrap_or_else(|| "because".to_owned())
    }

    fn command(&self, project: &Script) -> Command {
        use Command as C;
        match self.words[0] {
            "add" => C::CreateTask(self.new_task()),
            "relabel" => {
                let labels = Some(self.list("labels"));
                C::UpdateTask { id: self.id(), patch: TaskPatch { labels, ..TaskPatch::default() } }
            }
            "reword" => {
                let goal = Some(self.rest(2));
                C::UpdateTask { id: self.id(), patch: TaskPatch { goal, ..TaskPatch::default() } }
            }
            "describe" => {
                let body = Some(self.rest(2));
                C::UpdateTask { id: self.id(), patch: TaskPatch { body, ..TaskPatch::default() } }
            }
            "retype" => {
                let kind = Some(Some(self.word(2)));
                C::UpdateTask { id: self.id(), patch: TaskPatch { kind, ..TaskPatch::default() } }
            }
            "claim" => C::ClaimTask {
                id: self.words.get(1).map(|id| id.parse().unwrap()),
                owner: self.owner(),
                until: project.now.add_millis(millis(self.options["for"])),
                agent: self.options.get("agent").map(|name| (*name).to_owned()),
            },
            "start" => C::StartTask { id: self.id(), context: Value::Null },
            "submit" => C::SubmitTask { id: self.id() },
            "complete" => {
                let result = Some(self.rest(2)).filter(|result| !result.is_empty());
                C::CompleteTask { id: self.id(), result, artifacts: vec![] }
            }
            "block" => C::BlockTask { id: self.id(), reason: self.reason(), required_knowledge: vec![] },
            "unblock" => C::UnblockTask { id: self.id() },
            "answer" => C::AnswerTask {
                id: self.id(),
                answer: self.word(2),
                text: Some(self.rest(3)).filter(|text| !text.is_empty()),
                ignores: self.list("ignores"),
                work: self.approved_work(),
            },
            "continue" => C::NeedContinuation { id: self.id(), reason: self.reason() },
            "release" => C::ReleaseTask { id: self.id(), reason: self.reason() },
            "fail" => C::FailTask { id: self.id(), reason: self.reason() },
            "reopen" => C::ReopenTask { id: self.id(), reason: self.reason() },
            "delete" => C::DeleteTask { id: self.id(), deletion: deletion(self.words.get(2).copied()) },
            "link" => C::AddEdge { from: self.id(), kind: self.word(2), to: self.word(3) },
            "unlink" => C::RemoveEdge { from: self.id(), kind: self.word(2), to: self.word(3) },
            _ => self.session_or_effect(project),
        }
    }

    fn session_or_effect(&self, project: &Script) -> Command {
        use Command as C;
        let run = || run_id(self.words[1]);
        let effect = || project.effect(self.words[1]);
        match self.words[0] {
            "session" => C::StartSession(self.new_session()),
            "resume" => C::ResumeSession {
                name: self.word(1),
                dead: self.dead(),
                owner: self.owner(),
                max_iterations: self.number("max"),
            },
            "stop" => C::StopSession { name: self.word(1), ending: ending(self.words.get(2).copied()), reason: None },
            "cancel" => C::CancelSession { name: self.word(1), reason: None },
            "advance" => C::AdvanceSession { name: self.word(1) },
            "say" => C::Say { session: self.word(1), text: self.rest(2) },
            "talks" => C::OpenConversation {
                run: run(),
                conversation: self.words[2].to_owned(),
                anew: self.options.get("anew").map(|why| (*why).to_owned()),
            },
            "turn-done" => C::FinishTurn {
                run: run(),
                answer: TurnAnswer {
                    output: "said".to_owned(),
                    promise: self.option("says"),
                    uncounted: self.options.contains_key("misplaced").then_some("the tag does not count there"),
                    usage: self.usage(),
                    tree: self.options.get("tree").map(|text| Digest::of_bytes(text.as_bytes())),
                    ..TurnAnswer::default()
                },
            },
            "turn-limited" => C::PostponeTurn {
                run: run(),
                failing: TurnFailureReport::from_error(self.reason()),
                until: self.options.get("for").map(|text| project.now.add_millis(millis(text))),
            },
            "tell" => C::AnswerGate {
                session: self.word(1),
                answer: answer(self.words[2]),
                text: Some(self.rest(3)).filter(|text| !text.is_empty()),
            },
            "turn-failed" => C::FailTurn { run: run(), failing: TurnFailureReport::from_error(self.reason()) },
            "turn-interrupted" => C::InterruptTurn { run: run(), record: None, usage: self.usage() },
            "begin" => C::BeginEffect { effect: effect(), owner: self.owner() },
            "finish" => C::FinishEffect {
                effect: effect(),
                owner: self.owner(),
                report: Box::new(HookReport {
                    feedback: self.options.get("tells").map(|text| (*text).to_owned()),
                    message: self.options.get("message").map(|text| (*text).to_owned()),
                    actions: self.actions(),
                    change: self.change(),
                    approved: self.approved(),
                    used: AgentUsage { input: self.number("used").unwrap_or(0).into(), ..AgentUsage::default() },
                    head: self.options.get("moves").map(|head| (*head).to_owned()),
                    unstarted: self.options.contains_key("unstarted"),
                    ..self.option("out").unwrap_or(HookOutcome::Success).into()
                }),
            },
            "rest" => C::RestEffect {
                effect: effect(),
                owner: self.owner(),
                error: self.options.get("after").copied().unwrap_or_default().to_owned(),
            },
            "retry" => C::RetryEffect {
                effect: effect(),
                owner: self.owner(),
                after: self.options.get("after").copied().unwrap_or_default().to_owned(),
            },
            "recover" => C::RecoverEffect { effect: effect(), dead: self.dead(), owner: self.owner() },
            verb => self.delivering().unwrap_or_else(|| panic!("no command is called `{verb}`")),
        }
    }

    fn usage(&self) -> AgentUsage {
        AgentUsage {
            input: self.number("reads").unwrap_or_default().into(),
            output: self.number("writes").unwrap_or_default().into(),
            cost: self.options.get("costs").map(|cost| UsdCost(cost.parse().unwrap())),
            ..AgentUsage::default()
        }
    }

    /// Parses `type:payload;type:payload`.
    fn actions(&self) -> Vec<ActionRequest> {
        let requests = self.options.get("asks").into_iter().flat_map(|asks| asks.split(';'));
        let request = |text: &str| {
            let (kind, payload) = text.split_once(':').unwrap_or((text, "null"));
            ActionRequest { kind: kind.to_owned(), payload: serde_json::from_str(payload).unwrap() }
        };
        requests.map(request).collect()
    }

    /// Returns a new session with the default terms, apart from those of the line.
    fn new_session(&self) -> NewSession {
        let usual = SessionTerms::default();
        NewSession {
            name: self.word(1),
            task: self.options.get("task").map(|id| id.parse().unwrap()),
            goal: self.options.get("goal").map(|goal| (*goal).to_owned()),
            work: self.option("work").unwrap_or_default(),
            grounds: self.option("grounds").unwrap_or_default(),
            config: self.options.get("config").copied().unwrap_or(CONFIG).to_owned(),
            protected: None,
            agent: self.options.get("agent").copied().unwrap_or("command:true").to_owned(),
            terms: SessionTerms {
                max_iterations: self.number("max").unwrap_or(usual.max_iterations),
                max_hook_retries: self.number("retries").unwrap_or(usual.max_hook_retries),
                max_failures: self.number("failures").unwrap_or(usual.max_failures),
                failure_span: self.span("span").unwrap_or_default(),
                completion: self.option("completion").unwrap_or(usual.completion),
                strict: self.option("strict").unwrap_or(usual.strict),
                on_retry_limit: self.option("limit").unwrap_or(usual.on_retry_limit),
                wall_time: self.span("time"),
                cost: self.options.get("cost").map(|cost| UsdCost(cost.parse().unwrap())),
                tokens: self.number("tokens").map(u64::from),
                thrashing: self.number("thrashing").unwrap_or(usual.thrashing),
                max_remediations: self.number("remediations").unwrap_or(usual.max_remediations),
                max_rejections: self.number("rejections").unwrap_or(usual.max_rejections),
            },
            owner: self.owner(),
            nonce: NONCE,
            fresh: self.option("fresh").unwrap_or_default(),
        }
    }

    fn span(&self, option: &str) -> Option<Duration> {
        self.options.get(option).map(|text| Duration::from_millis(millis(text).unsigned_abs()))
    }

    fn number(&self, option: &str) -> Option<u32> {
        self.options.get(option).map(|number| number.parse().unwrap())
    }

    /// Returns an option in the form that the log has.
    fn option<T: serde::de::DeserializeOwned>(&self, option: &str) -> Option<T> {
        let read = |word: &&str| {
            let spellings = [(*word).to_owned(), format!("\"{word}\""), format!("\"{}\"", word.to_uppercase())];
            spellings.iter().find_map(|text| serde_json::from_str(text).ok())
        };
        self.options.get(option).map(|word| read(word).unwrap_or_else(|| panic!("{option} cannot be {word}")))
    }

    fn word<T: std::str::FromStr<Err: std::fmt::Debug>>(&self, place: usize) -> T {
        self.words[place].parse().unwrap()
    }

    fn report_request(&self) -> Option<ReportRequest> {
        let reviews = self.options.get("reviews").map(|id| id.parse().unwrap());
        (reviews.is_some() || self.options.contains_key("report")).then_some(ReportRequest { reviews, by_type: false })
    }

    fn new_task(&self) -> NewTask {
        NewTask {
            goal: self.rest(1),
            labels: self.list("labels"),
            priority: self.options.get("prio").map_or_else(Default::default, |prio| prio.parse().unwrap()),
            depends_on: self.list("after").iter().map(|id| id.parse().unwrap()).collect(),
            parent: self.options.get("parent").map(|id| id.parse().unwrap()),
            kind: self.options.get("type").map(|kind| kind.parse().unwrap()),
            report: self.report_request(),
            ..NewTask::default()
        }
    }
}

fn deletion(word: Option<&str>) -> DeletionMode {
    match word {
        None => DeletionMode::Alone,
        Some("cascade") => DeletionMode::Cascade,
        Some("block") => DeletionMode::BlockDependents,
        Some(word) => panic!("no way to delete is called `{word}`"),
    }
}

fn ending(word: Option<&str>) -> SessionEndKind {
    serde_json::from_str(&format!("\"{}\"", word.unwrap_or("cancelled"))).unwrap()
}

fn answer(word: &str) -> GateAnswer {
    serde_json::from_str(&format!("\"{word}\"")).unwrap()
}

/// Parses `session.iteration`.
pub fn run_id(text: &str) -> RunId {
    let (session, iteration) = text.split_once('.').unwrap();
    RunId { session: session.parse().unwrap(), iteration: iteration.parse().unwrap(), nonce: NONCE }
}

fn millis(text: &str) -> i64 {
    1000 * text.strip_suffix('s').unwrap().parse::<i64>().unwrap()
}

impl Script {
    /// Returns an event on one line: its task, its type, and the part of it that a test is about.
    fn shown(&self, record: &EventRecord) -> String {
        let envelope = &record.envelope;
        let detail = match &envelope.session {
            Some(name) => self.session_detail(name, &envelope.event).unwrap_or_else(|| detail(&envelope.event)),
            None => detail(&envelope.event),
        };
        let forced = if envelope.metadata.forced { "(forced)" } else { "" };
        let words = [envelope.node.to_string(), record.kind().to_string(), detail, forced.to_owned()];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    fn session_detail(&self, name: &SessionName, event: &Event) -> Option<String> {
        Some(match event {
            Event::SessionResumed(resumed) => format!("by {}", resumed.owner),
            Event::SessionStopping(stopping) => reasoned(stopping.ending, stopping.reason.as_deref()),
            Event::SessionEnded(ended) => reasoned(ended.ending, ended.reason.as_deref()),
            Event::IterationStarted(started) => turn(&started.run),
            Event::TurnStarted(started) => {
                let purpose = match &started.purpose {
                    TurnPurpose::Work => "to work",
                    TurnPurpose::SendBack => "sent back",
                    TurnPurpose::Recovery => "to recover",
                    TurnPurpose::Delivery | TurnPurpose::UnjudgedDelivery(_) => "to listen",
                };
                format!("{} {purpose}{}", turn(&started.run), self.heard(name))
            }
            Event::ConversationOpened(opened) => {
                let reason = opened.reason.as_ref().map(|reason| format!(" {reason}")).unwrap_or_default();
                format!("{} {:?}{reason}", opened.conversation, opened.opening)
            }
            Event::PromiseDetected(detected) => format!("{:?}", detected.promise),
            Event::GateDecided(decided) => {
                let next = match &decided.decision {
                    GateDecision::SendBack => format!("send back {}", decided.retries),
                    GateDecision::Ask => "ask".to_owned(),
                    GateDecision::Next(AfterIteration::Close(closing)) => {
                        reasoned(closing.ending, closing.reason.as_deref())
                    }
                    GateDecision::Next(next) => format!("{next:?}"),
                };
                format!("{:?}: {next}", decided.verdict)
            }
            Event::GateAnswered(answered) => format!("{:?}", answered.answer),
            Event::IterationInterrupted(interrupted) => turn(&interrupted.run),
            Event::IterationPostponed(postponed) => format!("{} until {}", turn(&postponed.run), postponed.until),
            Event::MessageAdded(said) => format!("by {}", said.source),
            Event::FeedbackQueued(queued) => format!("{} from {}", queued.text, queued.source),
            Event::FeedbackDelivered(delivered) => {
                delivered.feedback.iter().map(|at| self.queued(*at)).collect::<Vec<_>>().join(" ")
            }
            _ => return None,
        })
    }

    /// Returns the feedback of the turn in progress, with a mark if the agent may have seen it.
    fn heard(&self, name: &SessionName) -> String {
        let session = self.session(name.as_str());
        let pieces = session.current_turn().map_or(&[][..], |turn| &turn.feedback).iter();
        pieces
            .map(|piece| format!(" {}{}", self.queued(piece.at), if piece.possibly_seen { "?" } else { "" }))
            .collect()
    }

    fn queued(&self, at: Seq) -> String {
        let record = self.log.iter().find(|record| record.seq == at).unwrap();
        match &record.envelope.event {
            Event::FeedbackQueued(queued) => queued.text.clone(),
            other => panic!("{at} is {other:?}"),
        }
    }
}

fn turn(run: &RunId) -> String {
    format!("{}.{}", run.session, run.iteration)
}

fn reasoned(ending: SessionEndKind, reason: Option<&str>) -> String {
    reason.map_or_else(|| format!("{ending:?}"), |reason| format!("{ending:?}, {reason}"))
}

fn detail(event: &Event) -> String {
    match event {
        Event::TaskBlocked(blocked) => blocked.by.map_or_else(|| blocked.reason.clone(), |by| format!("by {by}")),
        Event::TaskClaimed(claimed) => format!("{} epoch {}", claimed.owner, claimed.epoch),
        Event::LeaseExpired(expired) => format!("{} epoch {}", expired.owner, expired.epoch),
        Event::TaskAnswered(answered) => {
            format!("{} {}", answered.answer, answered.text.as_deref().unwrap_or("without a word"))
        }
        Event::TaskReopened(reopened) => format!("from {}", reopened.from),
        Event::CompletionClaimed(claim) => turn(&claim.run),
        Event::DependencyAdded(added) => format!("{} {}", added.edge_type, added.to_id),
        Event::DependencyRemoved(removed) => removed.to_id.to_string(),
        Event::DependencySatisfied(satisfied) => satisfied.completed_task_id.to_string(),
        Event::AutoLabelSuggestion(suggestion) => suggestion.labels.join(","),
        Event::FactLogged(fact) => fact.kind.to_string(),
        Event::HookStarted(started) => {
            let after = started.after.as_ref().map_or_else(String::new, |after| format!(" after {after}"));
            format!("{} {} by {}{after}", started.hook, started.attempt, started.owner)
        }
        Event::HookFinished(finished) => format!("{} {:?}", finished.hook, finished.outcome),
        Event::HookError(error) => format!("{}: {}", error.hook_name, error.error),
        Event::ActionError(error) => format!("{}: {}", error.action_type, error.error),
        event => pipeline::detail(event),
    }
}
