//! Changes for review: the diff by file, the checks of both gates, and what a person can decide.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_config::Config;
use windlass_engine::TaskId;
use windlass_process::RunControl;
use windlass_store::EventFilter;

use super::question::OpenQuestion;
use super::{LabelledText, excerpt};
use crate::Failure;
use crate::answer_choice::AnswerChoice;
use crate::changes::{
    ChangeContents, ChangeRecord, ChangeState, find_merge_remote, list_open_changes, mark_landed_changes, with_git,
};
use crate::context::OpenedProject;
use crate::event_text::describe_run_outcome;
use crate::event_text::pipeline::{self, PipelineFactLabel};
use crate::hook_runs::{RunCauses, find_newest_runs, read_last_recorded_lines};
use crate::next_step::can_merge_change;
use crate::runner_settings::build_secret_mask;
use crate::tone::TextTone;

/// The most changes of a list.
const MAX_CHANGES: usize = 200;
/// The most bytes of a diff, and the most lines of one file, that a page shows.
const MAX_DIFF_BYTES: usize = 2 * 1024 * 1024;
const MAX_FILE_LINES: usize = 5000;
/// The newest runs that are searched for the checks of a change.
const MAX_CHECKED_RUNS: usize = 200;
const MAX_OUTPUT_LINES: usize = 400;
/// The most lines of the recorded output of a check without feedback.
const MAX_RECORDED_LINES: usize = 100;
/// The most characters of a line.
const MAX_LINE_LENGTH: usize = 4000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeSummary {
    pub task: String,
    pub goal: String,
    pub state: String,
    pub tone: TextTone,
    pub branch: String,
    pub base: String,
    pub commits: u32,
    pub files: u32,
    pub url: Option<String>,
    pub opened_at: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffLineKind {
    Context,
    Added,
    Removed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffLine {
    pub kind: DiffLineKind,
    pub old_line: Option<u32>,
    pub new_line: Option<u32>,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffHunk {
    pub header: String,
    pub lines: Vec<DiffLine>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileDiffStatus {
    Added,
    /// A new symbolic link; its text is the path that it points to.
    Symlink,
    Modified,
    /// Whether the file can be executed has changed.
    ModeChanged,
    Deleted,
    Renamed,
    Binary,
    TooLarge,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileDiff {
    pub path: String,
    /// The former name of a renamed file.
    pub old_path: Option<String>,
    pub status: FileDiffStatus,
    pub added: u64,
    pub removed: u64,
    pub hunks: Vec<DiffHunk>,
}

/// The last run of a hook that judged the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckResult {
    pub hook: String,
    pub gate: String,
    pub outcome: String,
    pub tone: TextTone,
    /// Whether a person should look at it: it did not pass.
    pub needs_attention: bool,
    pub message: Option<String>,
    /// Its feedback, or else the last lines of its recorded output.
    pub output: Vec<String>,
    pub seq: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeDetails {
    pub change: ChangeSummary,
    pub file_diffs: Vec<FileDiff>,
    /// Whether a part of the diff was left out.
    pub is_cut: bool,
    /// A sentence about a diff that is not available.
    pub diff_problem: Option<String>,
    pub checks: Vec<CheckResult>,
    /// The findings of hooks and people, each with its source.
    pub findings: Vec<LabelledText>,
    /// Further facts about the work.
    pub facts: Vec<LabelledText>,
    /// Whether a person can merge the change now, or record its merge.
    pub can_merge: bool,
    /// Whether git shows the change in its base, although the log has no merge of it. A merge then only records it.
    pub has_landed: bool,
    /// The remote that a merge pushes to; none if it moves a local branch, if the forge merges, or if it is only recorded.
    pub merge_remote: Option<String>,
    /// The answers that a person can give now.
    pub answers: Vec<AnswerChoice>,
    /// The question that these answers are for.
    pub question: Option<OpenQuestion>,
}

/// Lists the changes of which the log knows no merge, newest first. Those that git shows in their bases count as merged.
pub fn list_change_summaries(opened: &OpenedProject) -> Result<Vec<ChangeSummary>, Failure> {
    let open = list_open_changes(opened)?.into_iter().take(MAX_CHANGES);
    let mut changes: Vec<ChangeRecord> =
        open.map(|id| ChangeRecord::load_change_record(opened, id)).collect::<Result<_, _>>()?;
    if !changes.is_empty() {
        // A change stays listed as open when git cannot tell its state.
        let _ = with_git(&opened.project, &RunControl::new(), |git| mark_landed_changes(git, &mut changes));
    }
    Ok(changes.iter().map(change_summary).collect())
}

fn change_summary(change: &ChangeRecord) -> ChangeSummary {
    let state = change.change_state();
    ChangeSummary {
        task: change.task.id.to_string(),
        goal: change.task.goal.clone(),
        state: state.name().to_owned(),
        tone: change_tone(state),
        branch: change.branch_name().to_owned(),
        base: change.base_name().to_owned(),
        commits: change.work.as_ref().map_or(0, |work| work.commits),
        files: change.work.as_ref().map_or(0, |work| work.files),
        url: change.change.at.url.clone(),
        opened_at: change.opened_at.millis(),
    }
}

pub(super) fn change_tone(state: ChangeState) -> TextTone {
    match state {
        ChangeState::Open => TextTone::Name,
        ChangeState::Merged => TextTone::Good,
        ChangeState::Closed | ChangeState::Dropped => TextTone::Faint,
    }
}

/// Loads a change for review.
pub fn load_change_details(opened: &OpenedProject, id: TaskId) -> Result<ChangeDetails, Failure> {
    let mut change = ChangeRecord::load_change_record(opened, id)?;
    let contents = ChangeContents::load_contents(opened, &mut change, MAX_DIFF_BYTES, &RunControl::new());
    let (file_diffs, is_cut, diff_problem) = match contents {
        Ok(contents) => (parse_diff(&contents), contents.diff.cut, None),
        Err(failure) => (Vec::new(), false, Some(format!("the diff is not available: {}", failure.message))),
    };
    let task = &change.task;
    let findings = pipeline::list_findings(task);
    let facts = pipeline::list_pipeline_facts(task, None).into_iter().filter(|(label, _)| !has_own_field(*label));
    let state = change.change_state();
    let has_landed = state == ChangeState::Merged && change.change.merged.is_none();
    let can_merge = (state == ChangeState::Open || has_landed) && can_merge_change(opened, task)?;
    let is_pushed = can_merge && !has_landed && change.change.at.url.is_none();
    Ok(ChangeDetails {
        can_merge,
        has_landed,
        merge_remote: if is_pushed { find_merge_remote(opened, &change) } else { None },
        checks: list_checks(opened, id)?,
        findings: findings.map(|finding| LabelledText::new(&finding.source, finding.text.clone())).collect(),
        facts: facts.map(|(label, text)| LabelledText::new(label.name(), text)).collect(),
        answers: AnswerChoice::list_for_task(task),
        question: OpenQuestion::load_for_task(opened, task)?,
        change: change_summary(&change),
        file_diffs,
        is_cut,
        diff_problem,
    })
}

/// Returns whether the view of a change has these facts in a field of its own.
fn has_own_field(label: PipelineFactLabel) -> bool {
    matches!(label, PipelineFactLabel::Branch | PipelineFactLabel::Change | PipelineFactLabel::Finding)
}

/// Lists the last run of each gate hook for a task, oldest first.
fn list_checks(opened: &OpenedProject, id: TaskId) -> Result<Vec<CheckResult>, Failure> {
    let filter = EventFilter { task: Some(id), ..EventFilter::default() };
    let runs = find_newest_runs(opened, filter, MAX_CHECKED_RUNS, &mut |run| Ok(run.hook.is_some()))?;
    let mut causes = RunCauses::new(&opened.store);
    let mut checks: Vec<(CheckResult, Option<String>)> = Vec::new();
    for run in &runs {
        let cause = causes.find_cause(run)?;
        let effect = cause.and_then(|cause| cause.find_hook_effect(run));
        let Some(effect) = effect.filter(|effect| effect.class == windlass_engine::HookClass::Gate) else { continue };
        let (tone, outcome) = describe_run_outcome(run.outcome);
        let lines = run.feedback.iter().flat_map(|(_, text)| text.lines());
        let check = CheckResult {
            hook: run.title(),
            gate: effect.point.to_string(),
            outcome: outcome.to_owned(),
            tone,
            needs_attention: tone.needs_attention(),
            message: run.message.clone(),
            output: lines.take(MAX_OUTPUT_LINES).map(str::to_owned).collect(),
            seq: run.at.0,
        };
        checks.retain(|(earlier, _)| (&earlier.hook, &earlier.gate) != (&check.hook, &check.gate));
        checks.push((check, run.record.clone()));
    }
    // The log has no secrets that were known when the output was written; newer ones are masked here.
    let mask = Config::load(&opened.project.root).ok().map(|config| build_secret_mask(&config));
    let records = opened.project.record_directory();
    for (check, record) in &mut checks {
        if check.output.is_empty()
            && let Some(mask) = &mask
        {
            let lines = read_last_recorded_lines(record.as_deref(), &records, MAX_RECORDED_LINES).unwrap_or_default();
            check.output = lines.iter().map(|line| excerpt(&mask.mask_text(line), MAX_LINE_LENGTH)).collect();
        }
    }
    Ok(checks.into_iter().map(|(check, _)| check).collect())
}

/// Splits git's diff into files. git lists the files in the same order in both outputs, and only one of them quotes no paths.
fn parse_diff(contents: &ChangeContents) -> Vec<FileDiff> {
    let mut files: Vec<FileDiff> = contents
        .files
        .iter()
        .map(|file| FileDiff {
            path: file.path.to_string_lossy().into_owned(),
            old_path: file.old_path.as_ref().map(|path| path.to_string_lossy().into_owned()),
            status: FileDiffStatus::Modified,
            added: file.added,
            removed: file.removed,
            hunks: Vec::new(),
        })
        .collect();
    let mut sections = split_sections(&contents.diff.text).into_iter().peekable();
    for file in &mut files {
        let Some(section) = sections.next() else {
            file.status = FileDiffStatus::TooLarge;
            continue;
        };
        read_section(&section, file);
        // A file that becomes a link has two sections with the same first line.
        while let Some(second) = sections.next_if(|next| next.first() == section.first()) {
            read_section(&second, file);
        }
    }
    files
}

fn split_sections(diff: &str) -> Vec<Vec<&str>> {
    let mut sections: Vec<Vec<&str>> = Vec::new();
    // A carriage return belongs to its line.
    for line in diff.split_terminator('\n') {
        match sections.last_mut() {
            _ if line.starts_with("diff --git ") => sections.push(vec![line]),
            Some(section) => section.push(line),
            None => {}
        }
    }
    sections
}

/// Reads the diff of one file.
fn read_section(lines: &[&str], file: &mut FileDiff) {
    let (mut old, mut new, mut count, mut is_in_hunk) = (0, 0, 0, false);
    for line in lines {
        if let Some(header) = line.strip_prefix("@@ ") {
            is_in_hunk = true;
            (old, new) = parse_hunk_start(header).unwrap_or_default();
            file.hunks.push(DiffHunk { header: excerpt(line.trim_end(), MAX_LINE_LENGTH), lines: Vec::new() });
            continue;
        }
        let Some(hunk) = file.hunks.last_mut().filter(|_| is_in_hunk) else {
            file.status = parse_diff_status(line).unwrap_or(file.status);
            continue;
        };
        let kind = match line.as_bytes().first() {
            Some(b'+') => DiffLineKind::Added,
            Some(b'-') => DiffLineKind::Removed,
            Some(b'\\') => continue,
            _ => DiffLineKind::Context,
        };
        count += 1;
        if count > MAX_FILE_LINES {
            file.status = FileDiffStatus::TooLarge;
            return;
        }
        let old_line = (kind != DiffLineKind::Added).then_some(old);
        let new_line = (kind != DiffLineKind::Removed).then_some(new);
        old += u32::from(old_line.is_some());
        new += u32::from(new_line.is_some());
        let text = format_diff_text(kind, line.get(1..).unwrap_or_default());
        hunk.lines.push(DiffLine { kind, old_line, new_line, text });
    }
}

/// Parses a line above the hunks of a file.
fn parse_diff_status(line: &str) -> Option<FileDiffStatus> {
    let prefixes = [
        ("new file mode 120000", FileDiffStatus::Symlink),
        ("new file", FileDiffStatus::Added),
        ("deleted file", FileDiffStatus::Deleted),
        ("new mode", FileDiffStatus::ModeChanged),
        ("rename ", FileDiffStatus::Renamed),
        ("Binary ", FileDiffStatus::Binary),
        ("GIT ", FileDiffStatus::Binary),
    ];
    prefixes.into_iter().find(|(prefix, _)| line.starts_with(prefix)).map(|(_, status)| status)
}

/// Formats the text of a line. A changed line shows the carriage return of its end: it may be all that has changed.
fn format_diff_text(kind: DiffLineKind, line: &str) -> String {
    match line.strip_suffix('\r') {
        Some(text) if kind == DiffLineKind::Context => excerpt(text, MAX_LINE_LENGTH),
        Some(text) => excerpt(text, MAX_LINE_LENGTH) + "␍",
        None => excerpt(line, MAX_LINE_LENGTH),
    }
}

/// Parses the first lines of a hunk from its header, such as `-1,3 +1,4 @@`.
fn parse_hunk_start(header: &str) -> Option<(u32, u32)> {
    let mut ranges = header.split(' ');
    let mut start = |sign: char| -> Option<u32> { ranges.next()?.strip_prefix(sign)?.split(',').next()?.parse().ok() };
    Some((start('-')?, start('+')?))
}

#[cfg(test)]
mod tests {
    use windlass_vcs::git::{DiffText, FileChange};

    use super::*;

    fn file_change(path: &str, old_path: Option<&str>) -> FileChange {
        FileChange { path: path.into(), old_path: old_path.map(Into::into), added: 0, removed: 0 }
    }

    fn parse_text(files: Vec<FileChange>, diff: &str) -> Vec<FileDiff> {
        let diff = DiffText { text: diff.to_owned(), cut: false };
        parse_diff(&ChangeContents { commits: Vec::new(), files, diff })
    }

    #[test]
    fn renamed_file_keeps_its_former_name() {
        let diff = "diff --git a/old.txt \"b/new\\nname.txt\"\nsimilarity index 90%\nrename from old.txt\n\
                    rename to \"new\\nname.txt\"\n--- a/old.txt\n+++ b/new\n@@ -1 +1 @@\n-a\n+b\n";
        let files = parse_text(vec![file_change("new\nname.txt", Some("old.txt"))], diff);
        assert_eq!((&*files[0].path, files[0].old_path.as_deref()), ("new\nname.txt", Some("old.txt")));
        assert_eq!((files[0].status, files[0].hunks[0].lines.len()), (FileDiffStatus::Renamed, 2));
    }

    #[test]
    fn file_that_becomes_link_keeps_next_file_apart() {
        let diff = "diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-t\n\
                    diff --git a/f b/f\nnew file mode 120000\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+y\n\
                    diff --git a/z b/z\nnew file mode 100644\n--- /dev/null\n+++ b/z\n@@ -0,0 +1 @@\n+z\n";
        let files = parse_text(vec![file_change("f", None), file_change("z", None)], diff);
        let texts = |file: &FileDiff| -> Vec<String> {
            file.hunks.iter().flat_map(|hunk| hunk.lines.iter().map(|line| line.text.clone())).collect()
        };
        assert_eq!(
            (files[0].status, texts(&files[0])),
            (FileDiffStatus::Symlink, vec!["t".to_owned(), "y".to_owned()])
        );
        assert_eq!((files[1].status, texts(&files[1])), (FileDiffStatus::Added, vec!["z".to_owned()]));
    }

    #[test]
    fn changed_line_shows_carriage_return_at_its_end() {
        let diff = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@ fn a()\r\n\x20same\r\n\
                    -one\r\n+one\n-t\rwo\n+two\r\n";
        let files = parse_text(vec![file_change("a", None)], diff);
        let hunk = &files[0].hunks[0];
        let texts: Vec<&str> = hunk.lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!((&*hunk.header, texts), ("@@ -1,3 +1,3 @@ fn a()", vec!["same", "one␍", "one", "t\rwo", "two␍"]));
    }
}
