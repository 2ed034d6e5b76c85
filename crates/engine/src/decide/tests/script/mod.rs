//! A small language for tests: one command per line, and one line for each resulting event.
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
//! A script names an effect by its ID, by its hook, or, for a turn, by the word `turn`. `hook` begins and finishes an effect.
//! A refused line answers `! ` and the reason. A line `--` drops the answers so far. After a `crash`, only the log remains.

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
pub const SESSION_CONFIG: &str = "hooks: {}";
const SESSION_NONCE: u64 = 7;

/// A project that runs scripts.
pub struct ScriptProject {
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
    let answered = ScriptProject::new(rules).run_script(script);
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(answered, expected, "\n{}\n", answered.join("\n"));
}

impl ScriptProject {
    pub fn new(rules: EngineRules) -> Self {
        let now = "2026-01-17T10:00:00Z".parse().unwrap();
        Self { rules, memory: MemoryView::default(), log: Vec::new(), now }
    }

    /// Returns a project after a script without refused lines.
    #[track_caller]
    pub fn after(rules: EngineRules, script: &str) -> Self {
        let mut project = Self::new(rules);
        let refused: Vec<_> = project.run_script(script).into_iter().filter(|line| line.starts_with('!')).collect();
        assert!(refused.is_empty(), "{refused:?}");
        project
    }

    pub fn run_script(&mut self, script: &str) -> Vec<String> {
        let mut answered = Vec::new();
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match ScriptLine::parse(line) {
                ScriptLine { words, .. } if words == ["--"] => answered.clear(),
                ScriptLine { words, .. } if words == ["crash"] => self.simulate_crash(),
                ScriptLine { words, .. } if words[0] == "later" => self.now = self.now.add_millis(to_millis(words[1])),
                mut line if line.words[0] == "hook" => {
                    for verb in ["begin", "finish"] {
                        line.words[0] = verb;
                        self.run_line(&line, &mut answered);
                    }
                }
                line => self.run_line(&line, &mut answered),
            }
        }
        answered
    }

    fn run_line(&mut self, line: &ScriptLine<'_>, answered: &mut Vec<String>) {
        let command = line.to_command(self);
        let via = line.options.get("via").map(|word| self.effect_id(word));
        match self.commit_via_hook(via, line.authority(), line.turn_run(), &command) {
            Ok(records) => answered.extend(records.iter().map(|record| self.describe_event(record))),
            Err(refusal) => answered.push(format!("! {refusal}")),
        }
    }

    pub fn commit_as(
        &mut self,
        authority: Authority,
        run: Option<RunId>,
        command: &Command,
    ) -> Result<Vec<EventRecord>, Refusal> {
        self.commit_via_hook(None, authority, run, command)
    }

    /// Commits a command, inside a hook if `via` names one.
    pub fn commit_via_hook(
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

    /// Drops the state, and folds it again from the bytes of the log.
    pub fn simulate_crash(&mut self) {
        let before = std::mem::take(&mut self.memory);
        for record in &self.log {
            let envelope = decode_event(&encode_event(&record.envelope)).unwrap();
            self.memory.apply_event(&EventRecord { seq: record.seq, envelope }).unwrap();
        }
        assert_eq!(self.memory, before, "the log alone determines the state");
    }

    /// Commits a command of a person.
    pub fn commit_as_person(&mut self, command: &Command) -> Result<Vec<EventRecord>, Refusal> {
        self.commit_as(Authority::Person, None, command)
    }

    pub fn find_task(&self, id: &str) -> Task {
        self.memory.find_task(id.parse().unwrap()).unwrap().unwrap()
    }

    pub fn find_session(&self, name: &str) -> Session {
        self.memory.find_session(&name.parse().unwrap()).unwrap().unwrap()
    }

    pub fn pending_effects(&self) -> Vec<PendingEffect> {
        let mut effects: Vec<PendingEffect> = Vec::new();
        while let Some(effect) = self.memory.next_pending_effect(effects.last().map(|effect| effect.id)).unwrap() {
            effects.push(effect);
        }
        effects
    }

    /// Returns an effect by its id, by its hook's name, or the first turn. No effect has the id `1.0`.
    fn effect_id(&self, word: &str) -> EffectId {
        let named = |effect: &PendingEffect| match &effect.kind {
            EffectKind::Hook(hook) => hook.hook == word,
            EffectKind::Turn { .. } => word == "turn",
        };
        let found = || self.pending_effects().into_iter().find(named).map(|effect| effect.id);
        word.parse().ok().or_else(found).unwrap_or(EffectId { seq: Seq(1), index: 0 })
    }

    /// Returns the data of the last event of a type, in the format of the log.
    pub fn event_data(&self, kind: EventType) -> Value {
        let record = self.log.iter().rev().find(|record| record.kind() == kind).unwrap();
        serde_json::to_value(record).unwrap()["data"].take()
    }
}

/// The parts of a line `forced verb word word key=value`.
struct ScriptLine<'a> {
    forced: bool,
    words: Vec<&'a str>,
    options: BTreeMap<&'a str, &'a str>,
}

impl<'a> ScriptLine<'a> {
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

    fn turn_run(&self) -> Option<RunId> {
        self.options.get("run").map(|run| run_id(run))
    }

    fn list_option(&self, option: &str) -> Vec<String> {
        self.options.get(option).map_or(vec![], |list| list.split(',').map(str::to_owned).collect())
    }

    /// Returns the owner; `w1` by default.
    fn owner(&self) -> OwnerName {
        self.options.get("by").copied().unwrap_or("w1").parse().unwrap()
    }

    fn dead_owner(&self) -> OwnerName {
        self.options.get("from").copied().unwrap_or("w1").parse().unwrap()
    }

    fn task_id(&self) -> TaskId {
        self.words[1].parse().unwrap()
    }

    fn text_from(&self, from: usize) -> String {
        self.words.get(from..).unwrap_or_default().join(" ")
    }

    fn reason(&self) -> String {
        Some(self.text_from(2)).filter(|reason| !reason.is_empty()).unwrap_or_else(|| "because".to_owned())
    }

    fn to_command(&self, project: &ScriptProject) -> Command {
        use Command as C;
        match self.words[0] {
            "add" => C::CreateTask(self.new_task()),
            "relabel" => {
                let labels = Some(self.list_option("labels"));
                C::UpdateTask { id: self.task_id(), patch: TaskPatch { labels, ..TaskPatch::default() } }
            }
            "reword" => {
                let goal = Some(self.text_from(2));
                C::UpdateTask { id: self.task_id(), patch: TaskPatch { goal, ..TaskPatch::default() } }
            }
            "describe" => {
                let body = Some(self.text_from(2));
                C::UpdateTask { id: self.task_id(), patch: TaskPatch { body, ..TaskPatch::default() } }
            }
            "retype" => {
                let kind = Some(Some(self.word(2)));
                C::UpdateTask { id: self.task_id(), patch: TaskPatch { kind, ..TaskPatch::default() } }
            }
            "claim" => C::ClaimTask {
                id: self.words.get(1).map(|id| id.parse().unwrap()),
                owner: self.owner(),
                until: project.now.add_millis(to_millis(self.options["for"])),
                agent: self.options.get("agent").map(|name| (*name).to_owned()),
            },
            "start" => C::StartTask { id: self.task_id(), context: Value::Null },
            "submit" => C::SubmitTask { id: self.task_id() },
            "complete" => {
                let result = Some(self.text_from(2)).filter(|result| !result.is_empty());
                C::CompleteTask { id: self.task_id(), result, artifacts: vec![] }
            }
            "block" => C::BlockTask { id: self.task_id(), reason: self.reason(), required_knowledge: vec![] },
            "unblock" => C::UnblockTask { id: self.task_id() },
            "answer" => C::AnswerTask {
                id: self.task_id(),
                answer: self.word(2),
                text: Some(self.text_from(3)).filter(|text| !text.is_empty()),
                ignores: self.list_option("ignores"),
                work: self.approved_work(),
            },
            "continue" => C::NeedContinuation { id: self.task_id(), reason: self.reason() },
            "release" => C::ReleaseTask { id: self.task_id(), reason: self.reason() },
            "fail" => C::FailTask { id: self.task_id(), reason: self.reason() },
            "reopen" => C::ReopenTask { id: self.task_id(), reason: self.reason() },
            "delete" => C::DeleteTask { id: self.task_id(), deletion: parse_deletion_mode(self.words.get(2).copied()) },
            "link" => C::AddEdge { from: self.task_id(), kind: self.word(2), to: self.word(3) },
            "unlink" => C::RemoveEdge { from: self.task_id(), kind: self.word(2), to: self.word(3) },
            _ => self.session_or_effect_command(project),
        }
    }

    fn session_or_effect_command(&self, project: &ScriptProject) -> Command {
        use Command as C;
        let run = || run_id(self.words[1]);
        let effect = || project.effect_id(self.words[1]);
        match self.words[0] {
            "session" => C::StartSession(self.new_session()),
            "resume" => C::ResumeSession {
                name: self.word(1),
                dead: self.dead_owner(),
                owner: self.owner(),
                max_iterations: self.number_option("max"),
            },
            "stop" => {
                C::StopSession { name: self.word(1), ending: parse_ending(self.words.get(2).copied()), reason: None }
            }
            "cancel" => C::CancelSession { name: self.word(1), reason: None },
            "advance" => C::AdvanceSession { name: self.word(1) },
            "say" => C::Say { session: self.word(1), text: self.text_from(2) },
            "talks" => C::OpenConversation {
                run: run(),
                conversation: self.words[2].to_owned(),
                anew: self.options.get("anew").map(|why| (*why).to_owned()),
            },
            "turn-done" => C::FinishTurn {
                run: run(),
                answer: TurnAnswer {
                    output: "said".to_owned(),
                    promise: self.parse_option("says"),
                    uncounted: self.options.contains_key("misplaced").then_some("the tag does not count there"),
                    usage: self.usage(),
                    tree: self.options.get("tree").map(|text| Digest::of_bytes(text.as_bytes())),
                    ..TurnAnswer::default()
                },
            },
            "turn-limited" => C::PostponeTurn {
                run: run(),
                failing: TurnFailureReport::from_error(self.reason()),
                until: self.options.get("for").map(|text| project.now.add_millis(to_millis(text))),
            },
            "tell" => C::AnswerGate {
                session: self.word(1),
                answer: parse_gate_answer(self.words[2]),
                text: Some(self.text_from(3)).filter(|text| !text.is_empty()),
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
                    used: AgentUsage { input: self.number_option("used").unwrap_or(0).into(), ..AgentUsage::default() },
                    head: self.options.get("moves").map(|head| (*head).to_owned()),
                    unstarted: self.options.contains_key("unstarted"),
                    ..self.parse_option("out").unwrap_or(HookOutcome::Success).into()
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
            "recover" => C::RecoverEffect { effect: effect(), dead: self.dead_owner(), owner: self.owner() },
            verb => self.delivery_command().unwrap_or_else(|| panic!("no command is called `{verb}`")),
        }
    }

    fn usage(&self) -> AgentUsage {
        AgentUsage {
            input: self.number_option("reads").unwrap_or_default().into(),
            output: self.number_option("writes").unwrap_or_default().into(),
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

    /// Returns a new session with the terms of the line, and the default ones for all others.
    fn new_session(&self) -> NewSession {
        let usual = SessionTerms::default();
        NewSession {
            name: self.word(1),
            task: self.options.get("task").map(|id| id.parse().unwrap()),
            goal: self.options.get("goal").map(|goal| (*goal).to_owned()),
            work: self.parse_option("work").unwrap_or_default(),
            workspace_mode: self.parse_option("grounds").unwrap_or_default(),
            config: self.options.get("config").copied().unwrap_or(SESSION_CONFIG).to_owned(),
            protected: None,
            agent: self.options.get("agent").copied().unwrap_or("command:true").to_owned(),
            terms: SessionTerms {
                max_iterations: self.number_option("max").unwrap_or(usual.max_iterations),
                max_hook_retries: self.number_option("retries").unwrap_or(usual.max_hook_retries),
                max_failures: self.number_option("failures").unwrap_or(usual.max_failures),
                failure_span: self.duration_option("span").unwrap_or_default(),
                completion: self.parse_option("completion").unwrap_or(usual.completion),
                strict: self.parse_option("strict").unwrap_or(usual.strict),
                on_retry_limit: self.parse_option("limit").unwrap_or(usual.on_retry_limit),
                wall_time: self.duration_option("time"),
                cost: self.options.get("cost").map(|cost| UsdCost(cost.parse().unwrap())),
                tokens: self.number_option("tokens").map(u64::from),
                thrashing: self.number_option("thrashing").unwrap_or(usual.thrashing),
                max_remediations: self.number_option("remediations").unwrap_or(usual.max_remediations),
                max_rejections: self.number_option("rejections").unwrap_or(usual.max_rejections),
            },
            owner: self.owner(),
            nonce: SESSION_NONCE,
            fresh: self.parse_option("fresh").unwrap_or_default(),
        }
    }

    fn duration_option(&self, option: &str) -> Option<Duration> {
        self.options.get(option).map(|text| Duration::from_millis(to_millis(text).unsigned_abs()))
    }

    fn number_option(&self, option: &str) -> Option<u32> {
        self.options.get(option).map(|number| number.parse().unwrap())
    }

    /// Parses an option in the format of the log.
    fn parse_option<T: serde::de::DeserializeOwned>(&self, option: &str) -> Option<T> {
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
            goal: self.text_from(1),
            labels: self.list_option("labels"),
            priority: self.options.get("prio").map_or_else(Default::default, |prio| prio.parse().unwrap()),
            depends_on: self.list_option("after").iter().map(|id| id.parse().unwrap()).collect(),
            parent: self.options.get("parent").map(|id| id.parse().unwrap()),
            kind: self.options.get("type").map(|kind| kind.parse().unwrap()),
            report: self.report_request(),
            ..NewTask::default()
        }
    }
}

fn parse_deletion_mode(word: Option<&str>) -> DeletionMode {
    match word {
        None => DeletionMode::Alone,
        Some("cascade") => DeletionMode::Cascade,
        Some("block") => DeletionMode::BlockDependents,
        Some(word) => panic!("no way to delete is called `{word}`"),
    }
}

fn parse_ending(word: Option<&str>) -> SessionEndKind {
    serde_json::from_str(&format!("\"{}\"", word.unwrap_or("cancelled"))).unwrap()
}

fn parse_gate_answer(word: &str) -> GateAnswer {
    serde_json::from_str(&format!("\"{word}\"")).unwrap()
}

/// Parses `session.iteration`.
pub fn run_id(text: &str) -> RunId {
    let (session, iteration) = text.split_once('.').unwrap();
    RunId { session: session.parse().unwrap(), iteration: iteration.parse().unwrap(), nonce: SESSION_NONCE }
}

fn to_millis(text: &str) -> i64 {
    1000 * text.strip_suffix('s').unwrap().parse::<i64>().unwrap()
}

impl ScriptProject {
    /// Returns an event as one line: its task, its type, and its most relevant field.
    fn describe_event(&self, record: &EventRecord) -> String {
        let envelope = &record.envelope;
        let detail = match &envelope.session {
            Some(name) => self.session_detail(name, &envelope.event).unwrap_or_else(|| event_detail(&envelope.event)),
            None => event_detail(&envelope.event),
        };
        let forced = if envelope.metadata.forced { "(forced)" } else { "" };
        let words = [envelope.node.to_string(), record.kind().to_string(), detail, forced.to_owned()];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    fn session_detail(&self, name: &SessionName, event: &Event) -> Option<String> {
        Some(match event {
            Event::SessionResumed(resumed) => format!("by {}", resumed.owner),
            Event::SessionStopping(stopping) => format_ending(stopping.ending, stopping.reason.as_deref()),
            Event::SessionEnded(ended) => format_ending(ended.ending, ended.reason.as_deref()),
            Event::IterationStarted(started) => format_turn(&started.run),
            Event::TurnStarted(started) => {
                let purpose = match &started.purpose {
                    TurnPurpose::Work => "to work",
                    TurnPurpose::SendBack => "sent back",
                    TurnPurpose::Recovery => "to recover",
                    TurnPurpose::Delivery | TurnPurpose::UnjudgedDelivery(_) => "to listen",
                };
                format!("{} {purpose}{}", format_turn(&started.run), self.describe_turn_feedback(name))
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
                        format_ending(closing.ending, closing.reason.as_deref())
                    }
                    GateDecision::Next(next) => format!("{next:?}"),
                };
                format!("{:?}: {next}", decided.verdict)
            }
            Event::GateAnswered(answered) => format!("{:?}", answered.answer),
            Event::IterationInterrupted(interrupted) => format_turn(&interrupted.run),
            Event::IterationPostponed(postponed) => {
                format!("{} until {}", format_turn(&postponed.run), postponed.until)
            }
            Event::MessageAdded(said) => format!("by {}", said.source),
            Event::FeedbackQueued(queued) => format!("{} from {}", queued.text, queued.source),
            Event::FeedbackDelivered(delivered) => {
                delivered.feedback.iter().map(|at| self.feedback_text(*at)).collect::<Vec<_>>().join(" ")
            }
            _ => return None,
        })
    }

    /// Returns the feedback of the turn in progress, with a mark if the agent may have seen it.
    fn describe_turn_feedback(&self, name: &SessionName) -> String {
        let session = self.find_session(name.as_str());
        let pieces = session.current_turn().map_or(&[][..], |turn| &turn.feedback).iter();
        pieces
            .map(|piece| format!(" {}{}", self.feedback_text(piece.at), if piece.possibly_seen { "?" } else { "" }))
            .collect()
    }

    fn feedback_text(&self, at: Seq) -> String {
        let record = self.log.iter().find(|record| record.seq == at).unwrap();
        match &record.envelope.event {
            Event::FeedbackQueued(queued) => queued.text.clone(),
            other => panic!("{at} is {other:?}"),
        }
    }
}

fn format_turn(run: &RunId) -> String {
    format!("{}.{}", run.session, run.iteration)
}

fn format_ending(ending: SessionEndKind, reason: Option<&str>) -> String {
    reason.map_or_else(|| format!("{ending:?}"), |reason| format!("{ending:?}, {reason}"))
}

fn event_detail(event: &Event) -> String {
    match event {
        Event::TaskBlocked(blocked) => blocked.by.map_or_else(|| blocked.reason.clone(), |by| format!("by {by}")),
        Event::TaskClaimed(claimed) => format!("{} epoch {}", claimed.owner, claimed.epoch),
        Event::LeaseExpired(expired) => format!("{} epoch {}", expired.owner, expired.epoch),
        Event::TaskAnswered(answered) => {
            format!("{} {}", answered.answer, answered.text.as_deref().unwrap_or("without a word"))
        }
        Event::TaskReopened(reopened) => format!("from {}", reopened.from),
        Event::CompletionClaimed(claim) => format_turn(&claim.run),
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
        event => pipeline::event_detail(event),
    }
}
