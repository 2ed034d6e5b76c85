//! `windlass change show`: shows a change as git knows it. It fetches nothing and writes nothing.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;
use windlass_app::changes::{ChangeContents, ChangeRecord};
use windlass_app::context::CommandContext;
use windlass_app::{Failure, FailureCode, environment, execution};
use windlass_engine::{TaskId, Timestamp};
use windlass_process::{PagerOutcome, TerminalPager};
use windlass_text as text;
use windlass_vcs::git::FileChange;

use super::change_state_tone;
use crate::output::{CommandResult, Output, TextTone};
use crate::show;

/// The most bytes of a diff that the command shows.
const MAX_DIFF_BYTES: usize = 16 * 1024 * 1024;
/// The greatest number of `+` and `-` signs for a file.
const MAX_STAT_SIGNS: u64 = 40;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass change show T3
  windlass change show T3 --stat               show files and line counts
  windlass change show T3 | git apply --check  print the plain diff to a pipe

On a terminal, $WINDLASS_PAGER, $PAGER or `less -FRX` shows it.")]
pub struct Args {
    /// The task of the change, such as T3
    #[arg(value_name = "ID")]
    id: TaskId,
    /// Show the changed files and line counts instead of the diff
    #[arg(long)]
    stat: bool,
}

pub fn run_change_show(context: &CommandContext, args: &Args, out: &mut Output) -> CommandResult {
    let opened = context.open_project()?;
    let mut change = ChangeRecord::load_change_record(&opened, args.id)?;
    let (control, _received) = execution::listen_to_signals()?;
    let seen = ChangeContents::load_contents(&opened, &mut change, MAX_DIFF_BYTES, &control)?;
    if out.is_json() {
        return out.print_json(&change_view_to_json(&change, &seen));
    }
    let page = render_change_page(&change, &seen, args.stat, out)?;
    // Only a terminal with a person in front of it gets a pager.
    if let Some(pager) = environment::pager_command().filter(|_| out.is_watched()) {
        out.flush()?;
        let shown = TerminalPager::start(&pager).and_then(|pager| pager.show_text(page.as_bytes()));
        match shown {
            Ok(PagerOutcome::Shown) => return Ok(()),
            Ok(PagerOutcome::Missing) | Err(_) => {}
        }
    }
    out.print_line(page.trim_end_matches('\n'))
}

/// Renders the whole page. All its text comes from outside and is cleaned.
fn render_change_page(
    change: &ChangeRecord,
    seen: &ChangeContents,
    stat: bool,
    out: &Output,
) -> Result<String, Failure> {
    let written = write_change_page(change, seen, stat, out);
    written.map_err(|error| Failure::new(FailureCode::System, "cannot render the page").with_cause(error))
}

fn write_change_page(
    change: &ChangeRecord,
    seen: &ChangeContents,
    stat: bool,
    out: &Output,
) -> Result<String, std::fmt::Error> {
    let mut page = String::new();
    let (tone, word) = (change_state_tone(change.change_state()), change.change_state().name());
    let (id, word) = (out.paint(TextTone::Strong, change.task.id), out.paint(tone, word));
    writeln!(
        page,
        "{id}  {word}  {} → {}",
        text::clean_line(change.branch_name()),
        text::clean_line(change.base_name())
    )?;
    writeln!(page, "  {}", text::clean_line(&change.task.goal))?;
    if let Some(below) = change.describe_stack_base() {
        writeln!(page, "  {}", out.paint(TextTone::Faint, format_args!("on top of {below}")))?;
    }
    if let Some(url) = &change.change.at.url {
        writeln!(page, "  {}", out.paint(TextTone::Name, text::clean_line(url)))?;
    }
    let opened = show::format_local_time(change.opened_at);
    writeln!(page, "  {}", out.paint(TextTone::Faint, format_args!("opened {opened}")))?;
    if let Some(merged) = change.merge_commit() {
        let how = change.external_merge_evidence().map(|how| format!(": {how}")).unwrap_or_default();
        let told = format!("merged as {merged}{how}");
        writeln!(page, "  {}", out.paint(TextTone::Faint, text::clean_line(&told)))?;
    }
    writeln!(page)?;
    for commit in &seen.commits {
        let at = show::format_local_time(Timestamp::from_millis(commit.at.saturating_mul(1000)));
        let id = out.paint(TextTone::Warning, commit.commit.short_id());
        let about = out.paint(TextTone::Faint, format!("({}, {at})", text::clean_line(&commit.author)));
        writeln!(page, "{id} {} {about}", text::clean_line(&commit.subject))?;
    }
    writeln!(page)?;
    write_diff_stat(&mut page, &seen.files, out)?;
    if !stat {
        writeln!(page)?;
        seen.diff
            .text
            .lines()
            .try_for_each(|line| writeln!(page, "{}", out.paint(diff_line_tone(line), text::clean_lines(line))))?;
        if seen.diff.cut {
            writeln!(page, "{}", out.paint(TextTone::Warning, "the rest of the diff is not shown"))?;
        }
    }
    Ok(page)
}

/// Writes a line per file with its counts, and the totals.
fn write_diff_stat(page: &mut String, files: &[FileChange], out: &Output) -> std::fmt::Result {
    let shown = |path: &Path| text::clean_line(&path.to_string_lossy()).into_owned();
    let name = |file: &FileChange| match &file.old_path {
        Some(old) => format!("{} → {}", shown(old), shown(&file.path)),
        None => shown(&file.path),
    };
    let names: Vec<String> = files.iter().map(name).collect();
    let width = names.iter().map(|name| text::display_width(name)).max().unwrap_or(0);
    let most = files.iter().map(|file| file.added + file.removed).max().unwrap_or(0);
    for (file, name) in files.iter().zip(&names) {
        let scaled = |lines: u64| if most > MAX_STAT_SIGNS { (lines * MAX_STAT_SIGNS).div_ceil(most) } else { lines };
        let signs = |sign: &str, lines| sign.repeat(usize::try_from(scaled(lines)).unwrap_or(0));
        let (added, removed) = (signs("+", file.added), signs("-", file.removed));
        let (added, removed) = (out.paint(TextTone::Good, added), out.paint(TextTone::Bad, removed));
        let lines = file.added + file.removed;
        let signs = if lines > 0 { format!(" {added}{removed}") } else { String::new() };
        writeln!(page, " {} | {lines}{signs}", text::pad_to_width(name, width))?;
    }
    let (added, removed): (u64, u64) =
        files.iter().fold((0, 0), |(added, removed), file| (added + file.added, removed + file.removed));
    let files = if files.len() == 1 { "one file".to_owned() } else { format!("{} files", files.len()) };
    writeln!(page, " {files}, +{added} -{removed}")
}

/// Returns the tone of a line of a diff.
fn diff_line_tone(line: &str) -> TextTone {
    match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => TextTone::Strong,
        [b'+', ..] => TextTone::Good,
        [b'-', ..] => TextTone::Bad,
        [b'@', b'@', ..] => TextTone::Name,
        _ if line.starts_with("diff ") || line.starts_with("index ") => TextTone::Strong,
        _ => TextTone::Plain,
    }
}

fn change_view_to_json(change: &ChangeRecord, seen: &ChangeContents) -> serde_json::Value {
    let mut told = change.to_json();
    told["log"] = seen
        .commits
        .iter()
        .map(|commit| {
            let at = Timestamp::from_millis(commit.at.saturating_mul(1000));
            json!({"commit": commit.commit.as_str(), "author": commit.author, "at": at, "subject": commit.subject})
        })
        .collect();
    told["changed"] = seen
        .files
        .iter()
        .map(|file| {
            let old = file.old_path.as_ref().map(|path| path.to_string_lossy());
            json!({"path": file.path.to_string_lossy(), "oldPath": old, "added": file.added, "removed": file.removed})
        })
        .collect();
    told["diff"] = json!(seen.diff.text);
    told["diffCut"] = json!(seen.diff.cut);
    told
}
