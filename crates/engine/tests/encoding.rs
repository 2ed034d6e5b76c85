//! The encoding of events: existing logs depend on these bytes.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use windlass_engine::validation::RuleResult;
use windlass_engine::workflow::StepResult;
use windlass_engine::{
    ActionRequest, AfterIteration, AgentUsage, CallRuling, ChangeApproval, CheckpointTrigger, ConversationStart,
    DeliveryGate, Digest, EdgeKind, Epoch, Event, EventCause, EventEnvelope, EventMetadata, EventSubject, EventType,
    GateAnswer, GateDecision, GateFailureKind, GateRemedy, GateVerdict, HookBatch, HookClass, HookEffect,
    HookFailurePolicy, HookId, HookMetadata, HookOutcome, HookPoint, MessageAuthor, NoteKind, OutputFingerprint,
    OwnerName, Promise, ReportRequest, RuleAction, RuleListSource, RunId, Seq, SeriesGuard, SeriesId, SeriesSignal,
    SessionEnd, SessionEndKind, SessionTerms, StopHook, SubmittedWork, TaskId, TaskPriority, TaskResolution, TaskState,
    Timestamp, TurnFailure, TurnPurpose, UsdCost, WorkSource, Workspace, WorkspaceMode, decode_event, encode_event,
    payload,
};
use windlass_testkit::{MemoryProject, histories, test_rules};

fn wrap_in_envelope(node: EventSubject, event: impl Into<Event>) -> EventEnvelope {
    EventEnvelope {
        timestamp: Timestamp::from_millis(1_768_644_000_000),
        node,
        session: None,
        iteration: None,
        event: event.into(),
        metadata: EventMetadata {
            triggered_by: "ada".to_owned(),
            cause: None,
            depth: 0,
            via: None,
            forced: false,
            owes: None,
        },
    }
}

fn run() -> RunId {
    RunId { session: "main".parse().expect("a name"), iteration: 3, nonce: 255 }
}

#[track_caller]
fn check_encoding(envelope: &EventEnvelope, bytes: &str) {
    assert_eq!(String::from_utf8(encode_event(envelope)).expect("JSON"), bytes);
    assert_eq!(&decode_event(bytes.as_bytes()).expect("an event"), envelope);
}

#[test]
fn claim_inside_turn_keeps_its_encoding() {
    let claim = payload::CompletionClaimed { run: run(), result: Some("done".to_owned()), artifacts: vec![] };
    let inside = EventEnvelope {
        session: Some("main".parse().expect("a name")),
        iteration: Some(3),
        ..wrap_in_envelope(EventSubject::Task(TaskId(7)), claim)
    };
    check_encoding(
        &inside,
        r#"{"v":1,"type":"completion_claimed","timestamp":"2026-01-17T10:00:00.000Z","nodeId":"T7","session":"main","iteration":3,"data":{"run":"main.3.00000000000000ff","result":"done","artifacts":[]},"metadata":{"triggeredBy":"ada","depth":0}}"#,
    );
}

#[test]
fn event_with_hooks_and_cause_keeps_its_encoding() {
    let mut owing = wrap_in_envelope(
        EventSubject::Task(TaskId(7)),
        payload::TaskStarted { context: json!({"b": 1, "a": [1.5, null]}) },
    );
    let hook = HookEffect {
        hook: "push".to_owned(),
        point: "task_started".parse().expect("a hook point"),
        class: HookClass::Vcs,
        on_failure: HookFailurePolicy::Block,
        send_backs: None,
    };
    let config = Digest::of_bytes(b"hooks: {}");
    let owes = HookBatch { config, owner: "w1".parse().expect("a name"), hooks: vec![hook], share: 256, nesting: 0 };
    owing.metadata =
        EventMetadata { cause: Some(EventCause::Back(2)), depth: 1, forced: true, owes: Some(owes), ..owing.metadata };
    let bytes = r#"{"v":1,"type":"task_started","timestamp":"2026-01-17T10:00:00.000Z","nodeId":"T7","data":{"context":{"a":[1.5,null],"b":1}},"metadata":{"triggeredBy":"ada","cause":-2,"depth":1,"forced":true,"owes":{"config":"CONFIG","owner":"w1","hooks":[{"hook":"push","point":"task_started","class":"vcs","onFailure":"block"}],"share":256}}}"#;
    check_encoding(&owing, &bytes.replace("CONFIG", &config.to_string()));
}

#[test]
fn hook_without_task_keeps_its_encoding() {
    let effect = "12.1".parse().expect("a debt");
    let finished = payload::HookFinished {
        effect,
        hook: "tell".to_owned(),
        outcome: HookOutcome::Interrupted,
        message: None,
        feedback: None,
        duration_ms: None,
        record: None,
        actions: vec![],
        context: HookMetadata::new(),
        approved: None,
        used: AgentUsage::default(),
        head: None,
        unstarted: false,
        results: vec![],
    };
    check_encoding(
        &wrap_in_envelope(EventSubject::System, finished),
        r#"{"v":1,"type":"hook_finished","timestamp":"2026-01-17T10:00:00.000Z","nodeId":"system","data":{"debt":"12.1","hook":"tell","outcome":"interrupted"},"metadata":{"triggeredBy":"ada","depth":0}}"#,
    );
}

/// Checks the encoding of a payload.
#[track_caller]
fn check_data_encoding(event: impl Into<Event>, data: &str) {
    let event = wrap_in_envelope(EventSubject::System, event);
    let kind = event.event.kind();
    let rest = r#""metadata":{"triggeredBy":"ada","depth":0}"#;
    let bytes = format!(
        r#"{{"v":1,"type":"{kind}","timestamp":"2026-01-17T10:00:00.000Z","nodeId":"system","data":{data},{rest}}}"#
    );
    check_encoding(&event, &bytes);
}

#[test]
fn session_events_keep_their_encoding() {
    let config = Digest::of_bytes(b"hooks: {}");
    let terms = r#"{"maxIterations":25,"maxHookRetries":5,"maxFailures":3,"failureSpanMs":300000,"completion":"promise","strict":true,"onRetryLimit":"escalate"}"#;
    let started = payload::SessionStarted {
        config,
        protected: None,
        goal: None,
        work: WorkSource::Given,
        workspace_mode: WorkspaceMode::InPlace,
        agent: "command:true".to_owned(),
        terms: SessionTerms::default(),
        owner: sample_owner(),
        nonce: 255,
        keeps_feedback: false,
        fresh: false,
    };
    check_data_encoding(
        started,
        &format!(r#"{{"config":"{config}","agent":"command:true","terms":{terms},"owner":"w1","nonce":255}}"#),
    );
    let resumed = payload::SessionResumed { owner: sample_owner(), terms: SessionTerms::default() };
    check_data_encoding(resumed, &format!(r#"{{"owner":"w1","terms":{terms}}}"#));
    let bounded = SessionTerms {
        wall_time: Some(Duration::from_millis(1500)),
        cost: Some(UsdCost(2_500_000)),
        tokens: Some(9),
        thrashing: 0,
        ..SessionTerms::default()
    };
    let more = terms
        .replace("\"escalate\"}", "\"escalate\",\"wallTimeMs\":1500,\"cost\":2500000,\"tokens\":9,\"thrashing\":0}");
    let resumed = payload::SessionResumed { owner: sample_owner(), terms: bounded };
    check_data_encoding(resumed, &format!(r#"{{"owner":"w1","terms":{more}}}"#));
    let stopping = payload::SessionStopping { ending: SessionEndKind::Cancelled, reason: None, commits: vec![] };
    check_data_encoding(stopping, r#"{"ending":"cancelled"}"#);
    let ended = payload::SessionEnded { ending: SessionEndKind::Limit, reason: Some("so".to_owned()), unchecked: 0 };
    check_data_encoding(ended, r#"{"ending":"limit","reason":"so"}"#);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a list of events")]
fn turn_events_keep_their_encoding() {
    let closing = SessionEnd { ending: SessionEndKind::Limit, reason: None };
    let purposes = [
        (TurnPurpose::Work, r#""work""#),
        (TurnPurpose::SendBack, r#""send_back""#),
        (TurnPurpose::Recovery, r#""recovery""#),
        (TurnPurpose::Delivery, r#""final_delivery""#),
        (TurnPurpose::UnjudgedDelivery(closing), r#"{"delivery":{"ending":"limit"}}"#),
    ];
    for (purpose, bytes) in purposes {
        let started = payload::TurnStarted { run: run(), owner: sample_owner(), purpose, feedback: 2 };
        let run = "main.3.00000000000000ff";
        check_data_encoding(started, &format!(r#"{{"run":"{run}","owner":"w1","purpose":{bytes},"feedback":2}}"#));
    }
    let opened = |opening, reason: Option<&str>| payload::ConversationOpened {
        run: run(),
        conversation: "c1".to_owned(),
        opening,
        reason: reason.map(str::to_owned),
    };
    let named = r#""run":"main.3.00000000000000ff","conversation":"c1""#;
    check_data_encoding(opened(ConversationStart::New, None), &format!(r#"{{{named},"opening":"new"}}"#));
    check_data_encoding(opened(ConversationStart::Loaded, None), &format!(r#"{{{named},"opening":"loaded"}}"#));
    check_data_encoding(
        opened(ConversationStart::Anew, Some("gone")),
        &format!(r#"{{{named},"opening":"anew","reason":"gone"}}"#),
    );
    let delivered = payload::FeedbackDelivered { run: run(), feedback: vec![Seq(4), Seq(7)] };
    check_data_encoding(delivered, r#"{"run":"main.3.00000000000000ff","feedback":[4,7]}"#);
    let (source, text) = (|| "check".to_owned(), || "red".to_owned());
    let queued = payload::FeedbackQueued {
        source: source(),
        text: text(),
        reason: None,
        own: None,
        passing: false,
        voice: MessageAuthor::Hook,
    };
    check_data_encoding(queued, r#"{"source":"check","text":"red"}"#);
    let queued = payload::FeedbackQueued {
        source: source(),
        text: text(),
        reason: Some(text()),
        own: None,
        passing: true,
        voice: MessageAuthor::Hook,
    };
    check_data_encoding(queued.clone(), r#"{"source":"check","text":"red","reason":"red","passing":true}"#);
    let config = Digest::of_bytes(b"red");
    let own = OutputFingerprint { exact: config, loose: Digest::ZERO };
    let data = format!(r#"{{"source":"check","text":"red","own":{{"exact":"{config}","loose":"{}"}}}}"#, Digest::ZERO);
    check_data_encoding(payload::FeedbackQueued { reason: None, own: Some(own), passing: false, ..queued }, &data);
    let output = || "said".to_owned();
    let said = r#"{"run":"main.3.00000000000000ff","output":"said"}"#;
    let (leaky, record, usage, tree, unchanged) = (false, None, AgentUsage::default(), None, false);
    check_data_encoding(
        payload::TurnFinished { run: run(), output: output(), leaky, record, usage, tree, unchanged },
        said,
    );
    check_data_encoding(payload::DeliveryFinished { run: run(), output: output(), usage, leaky }, said);
    let until = Timestamp::from_millis(1_768_644_000_000);
    let postponed = payload::IterationPostponed { run: run(), error: output(), until, record: None, usage };
    let bytes = r#"{"run":"main.3.00000000000000ff","error":"said","until":"2026-01-17T10:00:00.000Z"}"#;
    check_data_encoding(postponed, bytes);
    let failed = r#"{"run":"main.3.00000000000000ff","error":"said"}"#;
    let (fault, record) = (TurnFailure::Failed, None);
    let plain = payload::IterationFailed { run: run(), error: output(), fault, record, usage, leaky, until: None };
    check_data_encoding(payload::IterationFailed { until: Some(until), ..plain.clone() }, bytes);
    check_data_encoding(plain, failed);
    check_data_encoding(payload::DeliveryFailed { run: run(), error: output(), fault, usage, leaky }, failed);
    let (fault, record) = (TurnFailure::OutOfTokens, Some("r".to_owned()));
    let usage = AgentUsage { input: 12, cached: 4, output: 3, cost: Some(UsdCost(5)) };
    let more = r#"{"run":"main.3.00000000000000ff","error":"said","fault":"out_of_tokens","record":"r","usage":{"input":12,"cached":4,"output":3,"cost":5}}"#;
    check_data_encoding(
        payload::IterationFailed { run: run(), error: output(), fault, record, usage, leaky, until: None },
        more,
    );
    let named = r#"{"run":"main.3.00000000000000ff"}"#;
    check_data_encoding(payload::IterationStarted { run: run() }, named);
    check_data_encoding(payload::IterationCompleted { run: run(), used: AgentUsage::default() }, named);
    check_data_encoding(
        payload::IterationInterrupted { run: run(), record: None, usage: AgentUsage::default() },
        named,
    );
    check_data_encoding(payload::DeliveryInterrupted { run: run() }, named);
}

#[test]
fn claim_and_gate_events_keep_their_encoding() {
    for (promise, bytes) in
        [(Promise::Complete, "COMPLETE"), (Promise::Escalate, "ESCALATE"), (Promise::Blocked, "BLOCKED")]
    {
        let detected = payload::PromiseDetected { run: run(), promise };
        check_data_encoding(detected, &format!(r#"{{"run":"main.3.00000000000000ff","promise":"{bytes}"}}"#));
    }
    let closing = SessionEnd { ending: SessionEndKind::Completed, reason: None };
    let decisions = [
        (GateVerdict::Block, GateDecision::SendBack, r#""verdict":"block","decision":"send_back""#),
        (
            GateVerdict::Fail,
            GateDecision::Next(AfterIteration::Continue),
            r#""verdict":"fail","decision":{"next":"continue"}"#,
        ),
        (
            GateVerdict::Pass,
            GateDecision::Next(AfterIteration::TakeUp),
            r#""verdict":"pass","decision":{"next":"take_up"}"#,
        ),
        (
            GateVerdict::Escalate,
            GateDecision::Next(AfterIteration::Close(closing)),
            r#""verdict":"escalate","decision":{"next":{"close":{"ending":"completed"}}}"#,
        ),
    ];
    for (verdict, decision, bytes) in decisions {
        let (max_retries, reason) = (None, None);
        let decided = payload::GateDecided { run: run(), verdict, decision, retries: 1, max_retries, reason };
        check_data_encoding(decided, &format!(r#"{{"run":"main.3.00000000000000ff",{bytes},"retries":1}}"#));
    }
    let (verdict, decision, reason) = (GateVerdict::Block, GateDecision::Ask, Some("red".to_owned()));
    let decided = payload::GateDecided { run: run(), verdict, decision, retries: 5, max_retries: Some(5), reason };
    let bytes = r#""verdict":"block","decision":"ask","retries":5,"maxRetries":5,"reason":"red""#;
    check_data_encoding(decided, &format!(r#"{{"run":"main.3.00000000000000ff",{bytes}}}"#));
    for (answer, bytes) in
        [(GateAnswer::Continue, "continue"), (GateAnswer::Abort, "abort"), (GateAnswer::Ignore, "ignore")]
    {
        let answered = payload::GateAnswered { run: run(), answer };
        check_data_encoding(answered, &format!(r#"{{"run":"main.3.00000000000000ff","answer":"{bytes}"}}"#));
    }
}

#[test]
fn dependency_events_keep_their_encoding() {
    let node = EventSubject::Task(TaskId(2));
    let added = payload::DependencyAdded { from_id: TaskId(2), to_id: TaskId(1), edge_type: EdgeKind::DependsOn };
    check_encoding(
        &wrap_in_envelope(node, added),
        r#"{"v":1,"type":"dependency_added","timestamp":"2026-01-17T10:00:00.000Z","nodeId":"T2","data":{"fromId":"T2","toId":"T1","edgeType":"depends_on"},"metadata":{"triggeredBy":"ada","depth":0}}"#,
    );
    let deleted = payload::TaskDeleted { edges_removed: vec!["E4".parse().expect("an edge")] };
    check_encoding(
        &wrap_in_envelope(node, deleted),
        r#"{"v":1,"type":"task_deleted","timestamp":"2026-01-17T10:00:00.000Z","nodeId":"T2","data":{"edgesRemoved":["E4"]},"metadata":{"triggeredBy":"ada","depth":0}}"#,
    );
}

#[test]
fn pipeline_events_keep_their_encoding() {
    let digest = Digest::of_bytes(b"x");
    check_data_encoding(
        payload::WorkspaceOpened { workspace: sample_workspace(), reused: true },
        &format!(
            r#"{{"workspace":{{"branch":"windlass/t7-x","base":"origin/main","start":"0a1b","name":"T7-x","stackedOn":["T3"],"protected":"{digest}"}},"reused":true}}"#
        ),
    );
    let bare = Workspace { stacked_on: vec![], protected: None, ..sample_workspace() };
    check_data_encoding(
        payload::WorkspaceOpened { workspace: bare, reused: false },
        r#"{"workspace":{"branch":"windlass/t7-x","base":"origin/main","start":"0a1b","name":"T7-x"}}"#,
    );
    check_data_encoding(
        payload::SubmissionStarted {
            run: run(),
            work: Some(sample_submitted_work()),
            remediations: 2,
            rejudged: false,
        },
        r#"{"run":"main.3.00000000000000ff","work":{"head":"2c3d","commits":2,"files":5},"remediations":2}"#,
    );
    let in_place = payload::SubmissionStarted { run: run(), work: None, remediations: 0, rejudged: false };
    check_data_encoding(in_place, r#"{"run":"main.3.00000000000000ff"}"#);
    check_data_encoding(payload::MergeStarted { run: run(), work: None }, r#"{"run":"main.3.00000000000000ff"}"#);
    let failed = |gate, why, remedy| payload::PipelineFailed {
        run: run(),
        gate,
        hook: "tests".to_owned(),
        why,
        reason: "red".to_owned(),
        feedback: None,
        remedy,
        count: 1,
        most: 3,
    };
    let data = |gate: &str, why: &str, remedy: &str| {
        format!(
            r#"{{"run":"main.3.00000000000000ff","gate":"{gate}","hook":"tests","why":"{why}","reason":"red","remedy":"{remedy}","count":1,"most":3}}"#
        )
    };
    let (submit, merge) = (DeliveryGate::BeforeSubmit, DeliveryGate::BeforeMerge);
    check_data_encoding(
        failed(submit, GateFailureKind::Blocked, GateRemedy::Remediate),
        &data("before_submit", "blocked", "remediate"),
    );
    check_data_encoding(
        failed(submit, GateFailureKind::Failed, GateRemedy::GiveUp),
        &data("before_submit", "failed", "give_up"),
    );
    check_data_encoding(
        failed(merge, GateFailureKind::Conflicts, GateRemedy::Reject),
        &data("before_merge", "conflicts", "reject"),
    );
    check_data_encoding(
        failed(merge, GateFailureKind::Escalated, GateRemedy::Escalate),
        &data("before_merge", "escalated", "escalate"),
    );
    check_data_encoding(
        failed(merge, GateFailureKind::Moved, GateRemedy::Again),
        &data("before_merge", "moved", "again"),
    );
}

#[test]
fn change_events_keep_their_encoding() {
    let opened = payload::ChangeOpened {
        branch: Some("windlass/t7-x".to_owned()),
        base: Some("main".to_owned()),
        url: Some("https://x/pull/7".to_owned()),
        number: Some(7),
    };
    check_data_encoding(opened, r#"{"branch":"windlass/t7-x","base":"main","url":"https://x/pull/7","number":7}"#);
    check_data_encoding(payload::ChangeOpened { branch: None, base: None, url: None, number: None }, "{}");
    check_data_encoding(payload::ChangeMerged { commit: "2c3d".to_owned(), seen: None }, r#"{"commit":"2c3d"}"#);
    let seen = Some("main has its branch".to_owned());
    let found = payload::ChangeMerged { commit: "2c3d".to_owned(), seen };
    check_data_encoding(found, r#"{"commit":"2c3d","seen":"main has its branch"}"#);
    let rejected = payload::TaskRejected { by: "review".to_owned(), reason: "too long".to_owned() };
    check_data_encoding(rejected, r#"{"by":"review","reason":"too long"}"#);
}

/// Terms of gates are encoded only when they differ from the default.
#[test]
fn gate_terms_are_encoded_when_not_default() {
    let terms = SessionTerms { max_remediations: 0, max_rejections: 7, ..SessionTerms::default() };
    let usual = serde_json::to_string(&SessionTerms::default()).expect("string keys");
    let more = usual.replace('}', r#","maxRemediations":0,"maxRejections":7}"#);
    let resumed = payload::SessionResumed { owner: sample_owner(), terms };
    check_data_encoding(resumed, &format!(r#"{{"owner":"w1","terms":{more}}}"#));
}

/// The names in the log, in the order in which they were introduced.
#[test]
fn event_types_keep_their_names() {
    let names: Vec<_> = EventType::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(
        names.join(" "),
        "task_created task_ready task_waiting task_claimed lease_expired task_started task_updated \
         completion_claimed workspace_opened submission_started task_submitted merge_started pipeline_failed task_rejected \
         change_opened change_merged task_completed task_blocked task_unblocked task_answered task_needs_continuation \
         task_released task_failed task_reopened task_deleted dependency_added dependency_removed \
         dependency_satisfied agent_metrics auto_label_suggestion fact_logged note_added config_recorded session_started session_resumed \
         session_stopping session_ended iteration_started turn_started conversation_opened turn_finished \
         promise_detected gate_decided gate_answered iteration_completed iteration_failed iteration_interrupted \
         iteration_postponed delivery_finished delivery_failed \
         delivery_interrupted message_added feedback_queued feedback_delivered hook_registered hooks_cleared hook_switched \
         hook_evaluated \
         series_started validation_finished series_advanced series_ended checkpoint_created bridge_called \
         bridge_answered workflow_triggered workflow_started workflow_step_started workflow_step_finished \
         workflow_completed workflow_failed hook_started hook_retrying hook_finished \
         hook_error action_error"
    );
}

fn sample_text() -> String {
    "why \"so\"\n\u{1f980}".to_owned()
}

fn sample_owner() -> OwnerName {
    "w1".parse().expect("a name")
}

/// Returns one event of every type, with all fields filled.
fn sample_every_event() -> Vec<Event> {
    let of_sessions = [session_events(), feedback_events(), drive_events(), bridge_events()].concat();
    let others = [pipeline_events(), workflow_events(), hook_events(), other_events()].concat();
    [of_sessions, others].concat()
}

fn pipeline_events() -> Vec<Event> {
    vec![
        payload::WorkspaceOpened { workspace: sample_workspace(), reused: true }.into(),
        payload::SubmissionStarted {
            run: run(),
            work: Some(sample_submitted_work()),
            remediations: 2,
            rejudged: false,
        }
        .into(),
        payload::MergeStarted { run: run(), work: None }.into(),
        payload::PipelineFailed {
            run: run(),
            gate: DeliveryGate::BeforeMerge,
            hook: sample_text(),
            why: GateFailureKind::Conflicts,
            reason: sample_text(),
            feedback: Some(sample_text()),
            remedy: GateRemedy::Remediate,
            count: 2,
            most: 3,
        }
        .into(),
        payload::TaskRejected { by: sample_text(), reason: sample_text() }.into(),
        payload::ChangeOpened {
            branch: Some(sample_text()),
            base: Some(sample_text()),
            url: Some(sample_text()),
            number: Some(u64::MAX),
        }
        .into(),
        payload::ChangeMerged { commit: sample_text(), seen: None }.into(),
    ]
}

fn sample_workspace() -> Workspace {
    Workspace {
        branch: "windlass/t7-x".to_owned(),
        base: "origin/main".to_owned(),
        start: "0a1b".to_owned(),
        name: "T7-x".to_owned(),
        stacked_on: vec![TaskId(3)],
        protected: Some(Digest::of_bytes(b"x")),
    }
}

fn sample_submitted_work() -> SubmittedWork {
    SubmittedWork { head: "2c3d".to_owned(), commits: 2, files: 5 }
}

fn bridge_events() -> Vec<Event> {
    vec![
        payload::BridgeCalled {
            agent: sample_text(),
            conversation: sample_text(),
            point: HookPoint::Stop,
            tool: Some(sample_text()),
            about: Some(sample_text()),
            anew: true,
            retries: 2,
        }
        .into(),
        payload::BridgeAnswered {
            agent: sample_text(),
            conversation: sample_text(),
            point: HookPoint::Stop,
            ruling: CallRuling::Block,
            reason: Some(sample_text()),
            hooks: vec![sample_text()],
            retries: 2,
            max_retries: 5,
            let_go: Some(sample_text()),
            told: Some(sample_text()),
        }
        .into(),
    ]
}

fn drive_events() -> Vec<Event> {
    let (series, metadata) = (SeriesId(7), Map::from_iter([("note".to_owned(), json!(sample_text()))]));
    let result = RuleResult { rule_name: sample_text(), passed: false, message: sample_text(), broken: true };
    let rule = json!([{"type": "file_existence", "name": "docs", "config": {"paths": ["README.md"]}}]);
    let rules =
        RuleListSource::parse_rules(&json!([{"when": "iteration > 2", "action": "escalate", "reason": sample_text()}]));
    vec![
        payload::HookRegistered {
            hook: StopHook::Rules { rules: rules.expect("rules") },
            enabled: true,
            metadata: metadata.clone(),
        }
        .into(),
        payload::HooksCleared { hooks: vec![HookId(5), HookId(6)] }.into(),
        payload::HookSwitched { hook: HookId(5), enabled: false }.into(),
        payload::HookEvaluated {
            series: Some(series),
            iteration: 2,
            hook: Some(HookId(5)),
            action: RuleAction::Continue,
            reason: sample_text(),
            next_prompt: Some(sample_text()),
            metadata,
            results: vec![result.clone()],
        }
        .into(),
        payload::SeriesStarted {
            max_iterations: 9,
            completion_promises: vec![Promise::Complete, Promise::Blocked],
            validation_rules: serde_json::from_value(rule).expect("a rule"),
            circuit_breaker_threshold: 3,
            strict: true,
        }
        .into(),
        payload::ValidationFinished {
            series,
            iteration: 2,
            passed: false,
            signal: SeriesSignal::Escalate,
            results: vec![result],
            promises: vec![Promise::Complete],
            hook: Some(HookId(5)),
            guard: Some(SeriesGuard::CircuitBreaker),
            feedback: vec![sample_text()],
            output: Some(sample_text()),
            files_modified: vec!["src/a.rs".to_owned()],
            alike: Some(Digest::of_bytes(b"x")),
        }
        .into(),
        payload::SeriesAdvanced { series, iteration: 3 }.into(),
        payload::SeriesEnded { series, iteration: 3, promise: Promise::Blocked }.into(),
        payload::CheckpointCreated {
            sequence: 4,
            trigger: CheckpointTrigger::AutoSubtask,
            execution_phase: Some(sample_text()),
            execution_step: Some(7),
            agent_context: json!({"b": [1.5]}),
            draft_content: Some(sample_text()),
            draft_type: Some(sample_text()),
            draft_bytes: Some(60_000),
            expires_at: Timestamp::from_millis(1_768_644_000_000),
            series: Some(series),
        }
        .into(),
    ]
}

#[expect(clippy::too_many_lines, reason = "a list of events")]
fn session_events() -> Vec<Event> {
    let (config, terms) = (Digest::of_bytes(b"x"), SessionTerms::default);
    let closing = || SessionEnd { ending: SessionEndKind::Escalated, reason: Some(sample_text()) };
    let (fault, usage) =
        (TurnFailure::Silent, AgentUsage { input: 12, cached: 4, output: 3, cost: Some(UsdCost(1_250_000)) });
    vec![
        payload::SessionStarted {
            config,
            protected: Some(config),
            goal: Some(sample_text()),
            work: WorkSource::Graph,
            workspace_mode: WorkspaceMode::Worktrees,
            agent: sample_text(),
            terms: terms(),
            owner: sample_owner(),
            nonce: 255,
            keeps_feedback: true,
            fresh: true,
        }
        .into(),
        payload::SessionResumed { owner: sample_owner(), terms: terms() }.into(),
        payload::SessionStopping {
            ending: SessionEndKind::Cancelled,
            reason: Some(sample_text()),
            commits: vec![sample_text()],
        }
        .into(),
        payload::SessionEnded { ending: SessionEndKind::Limit, reason: Some(sample_text()), unchecked: 2 }.into(),
        payload::IterationStarted { run: run() }.into(),
        payload::TurnStarted {
            run: run(),
            owner: sample_owner(),
            purpose: TurnPurpose::UnjudgedDelivery(closing()),
            feedback: 2,
        }
        .into(),
        payload::ConversationOpened {
            run: run(),
            conversation: sample_text(),
            opening: ConversationStart::Anew,
            reason: Some(sample_text()),
        }
        .into(),
        payload::TurnFinished {
            run: run(),
            output: sample_text(),
            leaky: true,
            record: Some(sample_text()),
            usage,
            tree: Some(config),
            unchanged: true,
        }
        .into(),
        payload::PromiseDetected { run: run(), promise: Promise::Blocked }.into(),
        payload::GateDecided {
            run: run(),
            verdict: GateVerdict::Escalate,
            decision: GateDecision::Next(AfterIteration::Close(closing())),
            retries: 2,
            max_retries: Some(5),
            reason: Some(sample_text()),
        }
        .into(),
        payload::GateAnswered { run: run(), answer: GateAnswer::Ignore }.into(),
        payload::IterationPostponed {
            run: run(),
            error: sample_text(),
            until: Timestamp::from_millis(7),
            record: Some(sample_text()),
            usage,
        }
        .into(),
        payload::IterationCompleted { run: run(), used: usage }.into(),
        payload::IterationFailed {
            run: run(),
            error: sample_text(),
            fault,
            record: Some(sample_text()),
            usage,
            leaky: true,
            until: Some(Timestamp::from_millis(7)),
        }
        .into(),
        payload::IterationInterrupted { run: run(), record: Some(sample_text()), usage }.into(),
        payload::DeliveryFinished { run: run(), output: sample_text(), usage, leaky: true }.into(),
        payload::DeliveryFailed { run: run(), error: sample_text(), fault, usage, leaky: true }.into(),
        payload::DeliveryInterrupted { run: run() }.into(),
    ]
}

fn feedback_events() -> Vec<Event> {
    vec![
        payload::MessageAdded { source: sample_text(), text: sample_text(), voice: MessageAuthor::Agent }.into(),
        payload::FeedbackQueued {
            source: sample_text(),
            text: sample_text(),
            reason: Some(sample_text()),
            own: Some(OutputFingerprint { exact: Digest::ZERO, loose: Digest::of_bytes(b"red") }),
            passing: true,
            voice: MessageAuthor::Person,
        }
        .into(),
        payload::FeedbackDelivered { run: run(), feedback: vec![Seq(4), Seq(7)] }.into(),
    ]
}

fn workflow_events() -> Vec<Event> {
    let (effect, config) = ("7.0".parse().expect("a debt"), Digest::of_bytes(b"w"));
    let value = || json!({"deep": [{"er": null}], "n": 0.1});
    vec![
        payload::WorkflowTriggered {
            workflow_id: sample_text(),
            context: Map::from_iter([("days".to_owned(), value())]),
        }
        .into(),
        payload::WorkflowStarted { effect, workflow_id: sample_text(), digest: config, step: sample_text(), steps: 3 }
            .into(),
        payload::WorkflowStepStarted { effect, step: sample_text(), attempt: 2 }.into(),
        payload::WorkflowStepFinished {
            effect,
            result: StepResult::failed("a", sample_text(), Duration::from_millis(7)),
            within: vec![StepResult::succeeded("b", Some(value()), Duration::ZERO)],
            stored: Map::from_iter([("seen".to_owned(), value())]),
            next: Some(sample_text()),
        }
        .into(),
        payload::WorkflowCompleted { effect, workflow_id: sample_text(), steps: 2 }.into(),
        payload::WorkflowFailed { effect, workflow_id: sample_text(), steps: 2, error: sample_text() }.into(),
    ]
}

fn other_events() -> Vec<Event> {
    let list = || vec!["one".to_owned(), "two".to_owned()];
    let (epoch, task) = (Epoch(3), TaskId(1));
    let until = Timestamp::from_millis(1_768_644_000_001);
    let value = || json!({"deep": [{"er": null}], "n": 0.1});
    let kind = || Some("bugfix".parse().expect("a name"));
    let priority = TaskPriority::LOWEST;
    vec![
        payload::TaskCreated {
            goal: sample_text(),
            body: Some(sample_text()),
            deliverables: list(),
            labels: list(),
            priority,
            kind: kind(),
            report: Some(ReportRequest { reviews: Some(task), by_type: false }),
        }
        .into(),
        payload::TaskReady {}.into(),
        payload::TaskAnswered { answer: TaskResolution::IgnoreHook, text: Some(sample_text()), ignores: list() }.into(),
        payload::TaskWaiting {}.into(),
        payload::NoteAdded { kind: NoteKind::Summary, text: sample_text() }.into(),
        payload::TaskClaimed {
            owner: sample_owner(),
            epoch,
            until: Some(until),
            session: Some(run().session),
            report: true,
        }
        .into(),
        payload::LeaseExpired { owner: sample_owner(), epoch, silent: true }.into(),
        payload::TaskStarted { context: value() }.into(),
        payload::TaskUpdated {
            goal: Some(sample_text()),
            body: Some(String::new()),
            deliverables: Some(list()),
            labels: Some(vec![]),
            priority: Some(priority),
            kind: Some(String::new()),
        }
        .into(),
        payload::CompletionClaimed { run: run(), result: Some(sample_text()), artifacts: list() }.into(),
        payload::TaskSubmitted {}.into(),
        payload::TaskCompleted { result: Some(sample_text()), artifacts: list() }.into(),
        payload::TaskBlocked {
            reason: sample_text(),
            required_knowledge: list(),
            by: Some(task),
            hooks: list(),
            commits: list(),
        }
        .into(),
        payload::TaskUnblocked {}.into(),
        payload::TaskNeedsContinuation { reason: sample_text() }.into(),
        payload::TaskReleased { reason: sample_text() }.into(),
        payload::TaskFailed { reason: sample_text() }.into(),
        payload::TaskReopened { from: TaskState::Failed, reason: sample_text() }.into(),
        payload::TaskDeleted { edges_removed: vec!["E4".parse().expect("an edge")] }.into(),
        payload::DependencyAdded { from_id: task, to_id: TaskId(2), edge_type: EdgeKind::RequiresKnowledge }.into(),
        payload::DependencyRemoved { edge_id: "E4".parse().expect("an edge"), from_id: task, to_id: TaskId(2) }.into(),
        payload::DependencySatisfied { dependent_task_id: task, completed_task_id: TaskId(2) }.into(),
        payload::AgentMetrics {
            goal: sample_text(),
            labels: list(),
            priority,
            duration_ms: Some(-1),
            deliverables: list(),
        }
        .into(),
        payload::AutoLabelSuggestion { labels: list(), keywords: list() }.into(),
    ]
}

fn hook_events() -> Vec<Event> {
    let list = || vec!["one".to_owned(), "two".to_owned()];
    let effect = "12.1".parse().expect("a debt");
    let config = Digest::of_bytes(b"x");
    let value = || json!({"deep": [{"er": null}], "n": 0.1});
    vec![
        payload::FactLogged {
            kind: "review.passed".parse().expect("a type"),
            data: Map::from_iter([("score".to_owned(), value())]),
        }
        .into(),
        payload::ConfigRecorded { digest: config, text: sample_text() }.into(),
        payload::HookStarted {
            effect,
            hook: sample_text(),
            owner: sample_owner(),
            attempt: 2,
            after: Some(sample_text()),
        }
        .into(),
        payload::HookRetrying { effect, hook: sample_text(), attempt: 1, error: sample_text() }.into(),
        payload::HookFinished {
            effect,
            hook: sample_text(),
            outcome: HookOutcome::TimedOut,
            message: Some(sample_text()),
            feedback: Some(sample_text()),
            duration_ms: Some(7),
            record: Some(sample_text()),
            actions: vec![ActionRequest { kind: sample_text(), payload: value() }],
            context: Map::from_iter([("pr_url".to_owned(), value())]),
            approved: Some(ChangeApproval { patch: config, briefs: list() }),
            used: AgentUsage { input: 12, ..AgentUsage::default() },
            head: Some("abc".to_owned()),
            unstarted: true,
            results: vec![RuleResult { rule_name: sample_text(), passed: true, message: sample_text(), broken: false }],
        }
        .into(),
        payload::HookError {
            hook_name: sample_text(),
            error: sample_text(),
            original_event: value(),
            effect: Some(effect),
        }
        .into(),
        payload::ActionError { action_type: sample_text(), error: sample_text(), payload: value() }.into(),
    ]
}

#[test]
fn every_event_round_trips() {
    let kinds: BTreeSet<_> = sample_every_event().iter().map(Event::kind).collect();
    assert!(EventType::ALL.iter().all(|kind| kinds.contains(kind)), "one is missing");
    for event in sample_every_event() {
        let written = wrap_in_envelope(EventSubject::Task(TaskId(1)), event);
        let bytes = encode_event(&written);
        assert_eq!(decode_event(&bytes).expect("an event"), written);
        assert!(!bytes.contains(&b'\n'), "an event is one line");
    }
}

/// Relocation finds every id that contains a position.
#[test]
fn relocation_moves_every_position_in_event() {
    for event in sample_every_event() {
        let mut moved = wrap_in_envelope(EventSubject::System, event);
        moved.metadata.cause = Some(EventCause::At(Seq(3)));
        moved.metadata.via = Some("3.0".parse().expect("a debt"));
        moved.relocate_positions(|_| Some(Seq(1000))).expect("nothing is lost");
        let shown = format!("{moved:?}");
        for name in ["Seq(", "EdgeId(", "HookId(", "SeriesId(", "CheckpointId("] {
            shown.match_indices(name).for_each(|(at, _)| {
                assert!(shown[at + name.len()..].starts_with("1000)"), "{shown}");
            });
        }
    }
}

/// A reference that only lists a lost event disappears. An event about a lost event cannot be relocated.
#[test]
fn relocation_drops_or_reports_lost_positions() {
    let edges = ["E4", "E5"].map(|edge| edge.parse().expect("an edge"));
    let kept = |seq| (seq != Seq(4)).then_some(seq);
    let mut deleted = wrap_in_envelope(EventSubject::System, payload::TaskDeleted { edges_removed: edges.to_vec() });
    assert_eq!(deleted.relocate_positions(kept), Ok(()));
    assert_eq!(deleted.event, payload::TaskDeleted { edges_removed: vec![edges[1]] }.into());
    let removed = payload::DependencyRemoved { edge_id: edges[0], from_id: TaskId(2), to_id: TaskId(1) };
    assert_eq!(wrap_in_envelope(EventSubject::System, removed).relocate_positions(kept), Err(Seq(4)));
}

#[test]
fn event_with_unknown_field_is_refused() {
    for event in sample_every_event() {
        let bytes = String::from_utf8(encode_event(&wrap_in_envelope(EventSubject::System, event))).expect("JSON");
        for place in ["{\"v\":1,", "\"data\":{", "\"metadata\":{"] {
            let more = if bytes.contains("\"data\":{}") && place == "\"data\":{" { "\"x\":1" } else { "\"x\":1," };
            // Maps that accept any key are not the subject.
            let found = if place.starts_with("\"metadata") { bytes.rfind(place) } else { bytes.find(place) };
            let (before, after) = bytes.split_at(found.expect("every event has it") + place.len());
            let changed = format!("{before}{more}{after}");
            assert!(decode_event(changed.as_bytes()).is_err(), "{changed}");
        }
    }
}

#[test]
fn event_with_impossible_cause_is_refused() {
    let bytes = r#"{"v":1,"type":"task_ready","timestamp":"2026-01-17T10:00:00.000Z","nodeId":"T1","data":{},"metadata":{"triggeredBy":"ada","cause":CAUSE,"depth":0}}"#;
    let cause = |text: &str| decode_event(bytes.replace("CAUSE", text).as_bytes()).map(|read| read.metadata.cause);
    assert_eq!(cause("7").expect("a position"), Some(EventCause::At(Seq(7))));
    assert_eq!(cause("-7").expect("a distance"), Some(EventCause::Back(7)));
    for text in ["-4294967296", "-9223372036854775808", "1.5", "\"7\""] {
        assert!(cause(text).is_err(), "{text}");
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no others", |number| number.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// An event has one encoding, with any external values in it.
    #[test]
    fn external_values_round_trip_unchanged(context in json_value(), by in any::<String>(), at in any::<i64>()) {
        let mut written = wrap_in_envelope(EventSubject::Task(TaskId(1)), payload::TaskStarted { context });
        written.metadata.triggered_by = by;
        written.timestamp = Timestamp::from_millis(at);
        let bytes = encode_event(&written);
        let read = decode_event(&bytes).expect("an event");
        prop_assert_eq!(&read, &written);
        prop_assert_eq!(encode_event(&read), bytes);
    }

    /// Damaged bytes give an error or another event, never a panic.
    #[test]
    fn damaged_bytes_never_panic(place in any::<prop::sample::Index>(), byte in any::<u8>(), which in 0..sample_every_event().len()) {
        let mut bytes = encode_event(&wrap_in_envelope(EventSubject::Task(TaskId(1)), sample_every_event().swap_remove(which)));
        let place = place.index(bytes.len());
        bytes[place] = byte;
        if let Ok(read) = decode_event(&bytes) {
            prop_assert_eq!(decode_event(&encode_event(&read)).expect("an event"), read);
        }
    }
}

/// The shown record names its cause by position, not by distance.
#[test]
fn shown_record_names_cause_by_position() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let history = histories(40).new_tree(&mut runner).expect("a history").current();
    let mut project = MemoryProject::new(test_rules());
    history.iter().for_each(|step| drop(project.run_step(step)));
    let positions: BTreeSet<u64> = project.log().iter().map(|record| record.seq.0).collect();
    let mut caused = 0;
    for record in project.log() {
        let shown = serde_json::to_value(record).expect("string keys");
        if let Some(cause) = shown["metadata"].get("cause") {
            caused += 1;
            assert!(positions.contains(&cause.as_u64().expect("a position")));
            assert!(cause.as_u64() < Some(record.seq.0));
        }
    }
    assert!(caused > 0);
}
