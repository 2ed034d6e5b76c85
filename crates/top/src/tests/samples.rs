//! Views with sample data.

use windlass_app::answer_choice::AnswerChoice;
use windlass_app::tone::TextTone;
use windlass_app::views::{
    ChangeDetails, ChangeSummary, CheckResult, DiffHunk, DiffLine, DiffLineKind, FileDiff, FileDiffStatus,
    LabelledText, LogEntry, LogPage, NowView, OpenQuestion, SessionPage, SessionSummary, SessionTimeline, StateCount,
    TaskDetails, TaskGraphEdge, TaskGraphView, TaskNote, TaskPage, TaskSummary, TimelineGroup, TimelineItem,
    TimelineItemKind, UsageTotals, WaitingItem, WaitingKind, WhyFactView, WhyView,
};
use windlass_app::why::WhyCause;

/// The time of all samples.
pub const NOW: i64 = 1_800_000_000_000;
const MINUTE: i64 = 60_000;

pub fn answer(name: &str) -> AnswerChoice {
    AnswerChoice(name.parse().unwrap())
}

pub fn question(message: &str) -> OpenQuestion {
    let reason = "the tests fail for the third time".to_owned();
    OpenQuestion { reason, message: Some(message.to_owned()), message_seq: Some(12) }
}

pub fn task(id: &str, state: &str, tone: TextTone, goal: &str) -> TaskSummary {
    TaskSummary {
        id: id.to_owned(),
        goal: goal.to_owned(),
        state: state.parse().unwrap(),
        tone,
        kind: None,
        priority: "2".to_owned(),
        labels: Vec::new(),
        open_dependencies: 0,
        session: None,
        is_deserted: false,
        updated_at: NOW - 12 * MINUTE,
        has_change: false,
    }
}

pub fn session() -> SessionSummary {
    SessionSummary {
        name: "fix-the-login-3757e17e".to_owned(),
        task: Some("T1".to_owned()),
        goal: "Fix the login form".to_owned(),
        agent: "claude".to_owned(),
        state: "running".to_owned(),
        tone: TextTone::Good,
        is_running: true,
        resume_command: None,
        resume_note: None,
        iteration: 2,
        max_iterations: 25,
        sent_back: 1,
        max_send_backs: 3,
        waits_for: Some("the agent (turn in progress)".to_owned()),
        started_at: NOW - 7 * MINUTE,
        ended_at: None,
        usage: UsageTotals { input_tokens: 41_000, output_tokens: 3200, cost_usd: Some(0.42), turns: 2 },
    }
}

pub fn waiting_item() -> WaitingItem {
    WaitingItem {
        kind: WaitingKind::BlockedTask,
        tone: TextTone::Bad,
        task: Some("T3".to_owned()),
        session: None,
        title: "Send mails in the background".to_owned(),
        reason: "the tests fail for the third time".to_owned(),
        since: NOW - 25 * MINUTE,
        message: None,
        evidence: ["FAILED mail::queue_drains", "assertion: left 1, right 0", "at tests/mail.rs:41", "1 failed"]
            .map(str::to_owned)
            .to_vec(),
        answers: ["continue", "retry", "ignore-hook", "approve", "reject"].map(answer).to_vec(),
        can_merge: false,
    }
}

pub fn now_view() -> NowView {
    let change = WaitingItem {
        kind: WaitingKind::OpenChange,
        tone: TextTone::Name,
        task: Some("T2".to_owned()),
        title: "Write the guide".to_owned(),
        reason: "its change windlass/T2 can be merged into main".to_owned(),
        evidence: Vec::new(),
        answers: Vec::new(),
        can_merge: true,
        ..waiting_item()
    };
    let count = |state: &str, tone, count| StateCount { state: state.parse().unwrap(), tone, count };
    NowView {
        head: 90,
        waiting: vec![waiting_item(), change],
        has_more: false,
        working: vec![session()],
        next: vec![
            task("T4", "ready", TextTone::Name, "Rotate the keys"),
            task("T5", "ready", TextTone::Name, "Trim the log"),
        ],
        counts: vec![
            count("ready", TextTone::Name, 2),
            count("blocked", TextTone::Warning, 1),
            count("completed", TextTone::Good, 9),
        ],
        today: UsageTotals { input_tokens: 1_240_000, output_tokens: 80_000, cost_usd: Some(3.1), turns: 31 },
        warnings: Vec::new(),
    }
}

pub fn task_page() -> TaskPage {
    let active = TaskSummary {
        session: Some("fix-the-login-3757e17e".to_owned()),
        ..task("T1", "active", TextTone::Good, "Fix the login form")
    };
    let waiting = TaskSummary { open_dependencies: 2, ..task("T6", "ready", TextTone::Faint, "Release 1.2") };
    let blocked = task("T3", "blocked", TextTone::Warning, "Send mails in the background");
    TaskPage {
        tasks: vec![active, blocked, task("T4", "ready", TextTone::Name, "Rotate the keys"), waiting],
        has_more: false,
    }
}

pub fn task_graph() -> TaskGraphView {
    let edge = |from: &str, to: &str, kind: &str| TaskGraphEdge {
        from: from.to_owned(),
        to: to.to_owned(),
        kind: kind.to_owned(),
        is_dependency: kind == "depends_on",
    };
    let mut tasks = task_page().tasks;
    tasks.push(task("T7", "completed", TextTone::Good, "Choose a queue"));
    tasks.push(task("T8", "ready", TextTone::Faint, "Announce it"));
    tasks.push(task("T9", "ready", TextTone::Name, "Write the notes"));
    let edges = vec![
        edge("T6", "T3", "depends_on"),
        edge("T6", "T4", "depends_on"),
        edge("T3", "T7", "depends_on"),
        edge("T8", "T6", "depends_on"),
        edge("T9", "T6", "depends_on"),
        edge("T8", "T9", "depends_on"),
        edge("T6", "T1", "related"),
    ];
    TaskGraphView { focus: Some("T6".to_owned()), tasks, edges, has_more: false }
}

pub fn task_details() -> TaskDetails {
    TaskDetails {
        task: TaskSummary { open_dependencies: 2, ..task("T6", "ready", TextTone::Name, "Release 1.2") },
        goal: "Release 1.2".to_owned(),
        description: Some("Tag it, and publish the packages.".to_owned()),
        facts: vec![LabelledText::new("waits for", "T3, T4")],
        sessions: vec![session()],
        notes: vec![TaskNote {
            at: NOW,
            author: "ann".to_owned(),
            kind: "tip".to_owned(),
            text: "the changelog comes first".to_owned(),
        }],
        answers: Vec::new(),
        question: None,
        can_edit: true,
        can_block: true,
        can_reopen: false,
        next_command: Some("windlass run --task T6".to_owned()),
    }
}

pub fn session_page() -> SessionPage {
    let ended = SessionSummary {
        name: "write-the-guide-9f00c1aa".to_owned(),
        task: Some("T2".to_owned()),
        goal: "Write the guide".to_owned(),
        state: "complete".to_owned(),
        is_running: false,
        started_at: NOW - 90 * MINUTE,
        ended_at: Some(NOW - 80 * MINUTE),
        waits_for: None,
        ..session()
    };
    SessionPage { sessions: vec![session(), ended], has_more: false }
}

fn timeline_item(seq: u64, kind: TimelineItemKind, title: &str, tone: TextTone) -> TimelineItem {
    let started_at = NOW - 6 * MINUTE + i64::try_from(seq).unwrap() * 1000;
    TimelineItem {
        seq,
        start_seq: seq,
        event: "turn_finished".to_owned(),
        kind,
        title: title.to_owned(),
        tone,
        needs_attention: tone.needs_attention(),
        started_at,
        ended_at: Some(started_at + 1500),
        is_pending: false,
        text: None,
        evidence: Vec::new(),
        details: Vec::new(),
        related_seqs: Vec::new(),
    }
}

pub fn timeline() -> SessionTimeline {
    let turn = TimelineItem {
        text: Some("I have fixed the form.\nAll tests should pass.".to_owned()),
        ..timeline_item(12, TimelineItemKind::Turn, "agent: All tests should pass.", TextTone::Plain)
    };
    let hook = TimelineItem {
        evidence: vec!["FAILED login::rejects_empty_name".to_owned(), "1 of 14 tests failed".to_owned()],
        related_seqs: vec![12],
        ..timeline_item(14, TimelineItemKind::Hook, "tests at stop blocks (1.5 s)", TextTone::Warning)
    };
    let gate = timeline_item(15, TimelineItemKind::Gate, "block, so: another iteration, by tests", TextTone::Warning);
    let pending = TimelineItem {
        is_pending: true,
        ended_at: None,
        ..timeline_item(18, TimelineItemKind::Turn, "turn started", TextTone::Plain)
    };
    let started = timeline_item(8, TimelineItemKind::Event, "session started with claude", TextTone::Plain);
    let group = |iteration, items: Vec<TimelineItem>, ended_at| TimelineGroup {
        iteration,
        task: None,
        started_at: items[0].started_at,
        items,
        ended_at,
    };
    SessionTimeline {
        session: session(),
        groups: vec![
            group(0, vec![started], Some(NOW - 6 * MINUTE + 9000)),
            group(1, vec![turn, hook, gate], Some(NOW - 5 * MINUTE)),
            group(2, vec![pending], None),
        ],
        pending_feedback: vec!["ann: mind the empty name".to_owned()],
        answers: Vec::new(),
        question: None,
        is_cut: false,
    }
}

pub fn why_view() -> WhyView {
    let fact = |seq, kind: &str, tone, sentence: &str, is_decision| WhyFactView {
        seq,
        at: NOW,
        task: Some("T3".to_owned()),
        session: Some("send-mails-77aa10bc".to_owned()),
        iteration: Some(3),
        kind: kind.to_owned(),
        tone,
        sentence: sentence.to_owned(),
        is_decision,
        evidence: Vec::new(),
        details: Vec::new(),
        cause_seqs: Vec::new(),
    };
    let run = WhyFactView {
        evidence: ["FAILED mail::queue_drains", "assertion: left 1, right 0", "at tests/mail.rs:41"]
            .map(str::to_owned)
            .to_vec(),
        cause_seqs: vec![40],
        ..fact(42, "hook_finished", TextTone::Warning, "tests at stop blocks (2.0 s)", true)
    };
    WhyView {
        kind: "task".to_owned(),
        name: "T3".to_owned(),
        state: "blocked".to_owned(),
        tone: TextTone::Warning,
        about: vec![LabelledText::new("goal", "Send mails in the background")],
        causes: vec![
            WhyCause { seq: 43, text: "gate_decided block, so: the task needs a person".to_owned() },
            WhyCause { seq: 42, text: "hook_finished tests at stop blocks".to_owned() },
        ],
        has_more_causes: false,
        facts: vec![
            fact(38, "turn_started", TextTone::Plain, "", false),
            fact(40, "turn_finished", TextTone::Plain, "agent: The queue drains now.", true),
            run,
            fact(43, "gate_decided", TextTone::Warning, "block, so: the task needs a person, by tests", true),
        ],
        omitted: 0,
        next_command: Some("windlass answer T3 continue \"…\"".to_owned()),
    }
}

pub fn change_summary() -> ChangeSummary {
    ChangeSummary {
        task: "T2".to_owned(),
        goal: "Write the guide".to_owned(),
        state: "open".to_owned(),
        tone: TextTone::Name,
        branch: "windlass/T2".to_owned(),
        base: "main".to_owned(),
        commits: 2,
        files: 1,
        url: None,
        opened_at: NOW - 80 * MINUTE,
    }
}

pub fn change_details() -> ChangeDetails {
    let line = |kind, old_line, new_line, text: &str| DiffLine { kind, old_line, new_line, text: text.to_owned() };
    let hunk = DiffHunk {
        header: "@@ -1,2 +1,3 @@ # Guide".to_owned(),
        lines: vec![
            line(DiffLineKind::Context, Some(1), Some(1), "# Guide"),
            line(DiffLineKind::Removed, Some(2), None, "Not written yet."),
            line(DiffLineKind::Added, None, Some(2), "Run it:"),
            line(DiffLineKind::Added, None, Some(3), "\tsh slug.sh 'What? Now!'"),
        ],
    };
    let check = |hook: &str, outcome: &str, tone: TextTone, output: &[&str]| CheckResult {
        hook: hook.to_owned(),
        gate: "stop".to_owned(),
        outcome: outcome.to_owned(),
        tone,
        needs_attention: tone.needs_attention(),
        message: None,
        output: output.iter().map(|&line| line.to_owned()).collect(),
        seq: 60,
    };
    ChangeDetails {
        change: change_summary(),
        file_diffs: vec![FileDiff {
            path: "GUIDE.md".to_owned(),
            old_path: None,
            status: FileDiffStatus::Modified,
            added: 2,
            removed: 1,
            hunks: vec![hunk],
        }],
        is_cut: false,
        diff_problem: None,
        checks: vec![
            check("tests", "ok", TextTone::Good, &[]),
            check("spelling", "blocks", TextTone::Warning, &["GUIDE.md:2: unknown word `slug`"]),
        ],
        findings: vec![LabelledText::new("reviewer", "an example is missing")],
        facts: Vec::new(),
        can_merge: true,
        has_landed: false,
        merge_remote: None,
        answers: Vec::new(),
        question: None,
    }
}

pub fn log_page() -> LogPage {
    let entry = |seq: u64, kind: &str, tone, depth, summary: &str| LogEntry {
        seq,
        at: NOW + i64::try_from(seq).unwrap() * 1000,
        kind: kind.to_owned(),
        task: Some("T1".to_owned()),
        session: Some("fix-the-login-3757e17e".to_owned()),
        iteration: Some(1),
        triggered_by: "ann".to_owned(),
        depth,
        tone,
        summary: summary.to_owned(),
    };
    LogPage {
        entries: vec![
            entry(12, "turn_finished", TextTone::Plain, 0, "I have fixed the form."),
            entry(14, "hook_finished", TextTone::Warning, 1, "tests block"),
            entry(15, "gate_decided", TextTone::Warning, 0, "another iteration"),
        ],
        head: 15,
    }
}
