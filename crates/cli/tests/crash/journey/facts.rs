//! The result of a journey, and the checks on it.

use std::collections::{BTreeMap, BTreeSet};

use super::super::checks::{GuaranteeViolation, ViolationKind, misdelivery_violation};
use super::super::crash_setup::{CrashObservations, CrashSetup};
use super::super::log::{self, LogEvent};
use super::super::recorder;

/// The result of a journey. A crash may change the log and the recorder, but not the summary.
#[derive(Clone)]
pub struct JourneyResult {
    /// Tasks, merges, files, branches, worktrees and workflow steps.
    pub summary: String,
    pub log: String,
    pub recorder: String,
}

impl JourneyResult {
    pub fn from_setup(setup: &CrashSetup) -> Self {
        let git = |words: &str| {
            let output = setup.world.run_command(setup.world.program("git").args(words.split(' ')));
            if output.code == 0 { output.stdout } else { output.to_string() }
        };
        let log = setup.event_log();
        let mut summary: Vec<String> = describe_tasks(setup);
        git("fetch -q --prune origin");
        let mut merges: Vec<String> =
            git("log --first-parent --merges --format=%s origin/main").lines().map(str::to_owned).collect();
        merges.sort_unstable();
        summary.extend(merges);
        summary.push(git("ls-tree --name-only origin/main").split_whitespace().collect::<Vec<_>>().join(" "));
        summary.push(git("for-each-ref --format=%(refname)").split_whitespace().collect::<Vec<_>>().join(" "));
        summary.push(format!("{} worktree", git("worktree list --porcelain").matches("worktree ").count()));
        summary.extend(git("status --porcelain").lines().map(str::to_owned));
        summary.extend(describe_workflow(&log::parse_events(&log)));
        Self { summary: summary.join("\n"), log, recorder: setup.recorder_text() }
    }

    /// Returns the violations. A kill must not change the summary. After failed calls, the workflow may be missing.
    pub fn find_violations(
        &self,
        observations: &CrashObservations,
        baseline: &Self,
        is_deadly: bool,
    ) -> Vec<GuaranteeViolation> {
        let log = log::parse_events(&self.log);
        let mut violations = observations.violations.clone();
        violations.extend(find_lost_events(observations, &self.log));
        violations.extend(find_unrecorded_starts(&log, &self.recorder));
        violations.extend(find_wrong_feedback(&log, &self.recorder, is_deadly));
        violations.extend(
            recorder::find_starts_after_takeover(&self.recorder)
                .into_iter()
                .map(|line| GuaranteeViolation::new(ViolationKind::StaleRun, line)),
        );
        if self.summary != baseline.summary && (is_deadly || !self.lacks_only_workflow(&log, baseline)) {
            let details = format!("the summary is\n{}\nwithout a crash\n{}", self.summary, baseline.summary);
            violations.push(GuaranteeViolation::new(ViolationKind::DifferentResult, details));
        }
        violations
    }
}

impl JourneyResult {
    /// Returns whether only the workflow is missing and the log records the failure of its hook, as for an unreadable file.
    fn lacks_only_workflow(&self, log: &[LogEvent], baseline: &Self) -> bool {
        let has_failed_hook = log.iter().any(|event| {
            event.event_type() == "hook_finished"
                && event.text_field("hook") == "follow"
                && event.text_field("outcome") == "failure"
        });
        let is_about_workflow =
            |line: &str| line.contains("Third") || line.starts_with(['"', 'w']) && !line.contains("completed");
        let without_workflow = |summary: &str| {
            let summary = summary.replace(" part-T3", "");
            summary
                .lines()
                .filter(|line| !is_about_workflow(line) && *line != "workflow_completed")
                .map(str::to_owned)
                .collect()
        };
        let (ours, theirs): (Vec<String>, Vec<String>) =
            (without_workflow(&self.summary), without_workflow(&baseline.summary));
        has_failed_hook && ours == theirs
    }
}

/// Returns the ID, state, goal and labels of each task.
fn describe_tasks(setup: &CrashSetup) -> Vec<String> {
    let output = setup.world.run(&["--json", "task", "list", "--all"]).stdout;
    let tasks = output.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    tasks.map(|task| format!("{} {} {} {}", task["id"], task["state"], task["goal"], task["labels"])).collect()
}

/// Returns the events of the workflow and its finished steps, without their results: an interrupted step may have failed.
fn describe_workflow(log: &[LogEvent]) -> Vec<String> {
    let workflow_events = log.iter().filter(|event| event.event_type().starts_with("workflow_"));
    let lines = workflow_events.filter_map(|event| match event.event_type() {
        "workflow_step_started" => None,
        "workflow_step_finished" => Some(event.field("result")["stepId"].to_string()),
        kind => Some(kind.to_owned()),
    });
    lines.collect()
}

/// Returns printed events that the log does not have. A truncated line does not count as printed.
fn find_lost_events(observations: &CrashObservations, log: &str) -> Vec<GuaranteeViolation> {
    let log: BTreeSet<&str> = log.lines().collect();
    let printed_lines = observations.acknowledged.iter().flat_map(|text| text.split_inclusive('\n'));
    let complete_events =
        printed_lines.filter_map(|line| line.strip_suffix('\n')).filter(|line| line.contains("\"seq\":"));
    complete_events
        .filter(|line| !log.contains(line))
        .map(|line| GuaranteeViolation::new(ViolationKind::LostEvent, line))
        .collect()
}

/// Returns starts that the log does not have, and repeated runs of the step that may run only once.
fn find_unrecorded_starts(log: &[LogEvent], recorder: &str) -> Vec<GuaranteeViolation> {
    let mut logged_starts: BTreeMap<&str, usize> = BTreeMap::new();
    for event in log {
        match (event.event_type(), event.text_field("step")) {
            ("turn_started", _) => *logged_starts.entry("agent").or_default() += 1,
            ("hook_started", _) => *logged_starts.entry(event.text_field("hook")).or_default() += 1,
            ("workflow_step_started", "both") => {
                *logged_starts.entry("left").or_default() += 1;
                *logged_starts.entry("right").or_default() += 1;
            }
            ("workflow_step_started", step) => *logged_starts.entry(step).or_default() += 1,
            _ => {}
        }
    }
    let (programs, malformed_lines) = recorder::parse_recorder(recorder);
    let mut violations: Vec<GuaranteeViolation> = malformed_lines
        .into_iter()
        .map(|details| GuaranteeViolation::new(ViolationKind::UnexpectedOutput, details))
        .collect();
    let mut recorded_starts: BTreeMap<&str, usize> = BTreeMap::new();
    programs.iter().for_each(|program| *recorded_starts.entry(&program.name).or_default() += 1);
    for (name, times) in recorded_starts {
        let logged = logged_starts.get(name).copied().unwrap_or_default();
        if times > logged {
            violations.push(GuaranteeViolation::new(
                ViolationKind::UnrecordedStart,
                format!("{name} ran {times} times, the log has {logged} starts"),
            ));
        }
        if name == "stamp" && times > 1 {
            violations.push(GuaranteeViolation::new(ViolationKind::RepeatedRun, format!("{name} ran {times} times")));
        }
    }
    violations
}

/// Returns prompts that the log does not have, and feedback that is not in exactly one finished turn. After failed calls,
/// feedback may be in no turn.
fn find_wrong_feedback(log: &[LogEvent], recorder: &str, is_deadly: bool) -> Vec<GuaranteeViolation> {
    let (programs, markers) = (log::logged_programs(log), log::queued_markers(log));
    let mut expected_prompts: Vec<Vec<String>> =
        programs.iter().filter(|program| program.name == "agent").map(|turn| turn.prompt_markers(&markers)).collect();
    let mut violations = Vec::new();
    for actual_prompt in recorder::parse_recorder(recorder).0.into_iter().filter_map(|program| program.prompt) {
        match expected_prompts.iter().position(|prompt| *prompt == actual_prompt) {
            Some(position) => drop(expected_prompts.swap_remove(position)),
            None => violations.push(GuaranteeViolation::new(
                ViolationKind::WrongFeedback,
                format!("an agent got {actual_prompt:?}, which no turn in the log has"),
            )),
        }
    }
    let is_right = |counts| counts == (1, 1) || !is_deadly && counts == (0, 0);
    let misdelivered = log::count_deliveries(log, &programs).into_iter().filter(|(_, counts)| !is_right(*counts));
    violations.extend(misdelivered.map(|(seq, counts)| misdelivery_violation(seq, counts)));
    violations
}
