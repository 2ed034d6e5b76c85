//! `windlass change show`: shows a change as git knows it. It fetches nothing and writes nothing.

use std::fmt::Write as _;

use serde_json::json;
use windlass_app::changes::{ChangeRecord, mark_landed_changes, with_git};
use windlass_app::context::{Context, Opened};
use windlass_app::{Code, Failure, environment, execution, hints};
use windlass_engine::{TaskId, Timestamp};
use windlass_process::{Paged, Pager};
use windlass_runner::stacked_branches::{self, LowerTask};
use windlass_text as text;
use windlass_vcs::git::{Branch, Commit, Diff, Error, FileChange, Git, Logged};

use super::state_tone;
use crate::output::{Done, Output, Tone};
use crate::show;

/// The most bytes of a diff, and the most commits, that the command shows.
const DIFF: usize = 16 * 1024 * 1024;
const COMMITS: usize = 1000;
/// The greatest number of `+` and `-` signs for a file.
const SIGNS: u64 = 40;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass change show T3
  windlass change show T3 --stat               which files, and how much of them
  windlass change show T3 | git apply --check  a pipe gets the diff as it is, below a few lines

On a terminal it is shown by $WINDLASS_PAGER, $PAGER or `less -FRX`.")]
pub struct Args {
    /// The task whose change it is, such as T3
    #[arg(value_name = "ID")]
    id: TaskId,
    /// Which files, and how much of them, in place of the diff
    #[arg(long)]
    stat: bool,
}

/// The commits, the files and the diff of a change, as git reports them.
struct ChangeView {
    commits: Vec<Logged>,
    files: Vec<FileChange>,
    diff: Diff,
}

pub fn run(context: &Context, args: &Args, out: &mut Output) -> Done {
    let opened = context.open()?;
    let mut change = ChangeRecord::of(&opened, args.id)?;
    let (control, _received) = execution::listen()?;
    let seen = look(&opened, &mut change, &control)?;
    if out.is_json() {
        return out.object(&to_json(&change, &seen));
    }
    let page = page(&change, &seen, args.stat, out)?;
    // Only a terminal with a person in front of it gets a pager.
    if let Some(pager) = environment::pager().filter(|_| out.is_watched()) {
        out.flush()?;
        let shown = Pager::start(&pager).and_then(|pager| pager.show(page.as_bytes()));
        match shown {
            Ok(Paged::Shown) => return Ok(()),
            Ok(Paged::Missing) | Err(_) => {}
        }
    }
    out.line(page.trim_end_matches('\n'))
}

fn look(
    opened: &Opened,
    change: &mut ChangeRecord,
    control: &windlass_process::Control,
) -> Result<ChangeView, Failure> {
    let below = match &change.task.workspace {
        Some(workspace) => {
            let snapshot = opened.store.snapshot().map_err(hints::store)?;
            stacked_branches::below(&snapshot, workspace).map_err(hints::view)?
        }
        None => Vec::new(),
    };
    let seen = with_git(&opened.project, control, |git| {
        mark_landed_changes(git, std::slice::from_mut(change))?;
        seen(git, &below, change)
    })?;
    seen.ok_or_else(|| {
        Failure::new(Code::Refused, "cannot show the change: this project is in no git repository any more")
    })
}

fn seen(git: &Git<'_>, below: &[LowerTask], change: &ChangeRecord) -> Result<ChangeView, Error> {
    let (from, to) = ends(git, below, change)?;
    Ok(ChangeView {
        commits: git.log(&from, &to, COMMITS)?,
        files: git.files(&from, &to)?,
        diff: git.diff(&from, &to, DIFF)?,
    })
}

/// Returns the first (exclusive) and the last commit of a change.
fn ends(git: &Git<'_>, below: &[LowerTask], change: &ChangeRecord) -> Result<(Commit, Commit), Error> {
    let unknown = |commit: &str| Error::UnknownCommit { commit: commit.to_owned() };
    let own = own_end(git, change)?;
    let one = change.landed.as_ref().filter(|landed| landed.is_one).map(|landed| landed.commit.as_str());
    let is_own = |merged: &&str| own.as_ref().is_some_and(|own| own.as_str() == *merged);
    if let Some(merged) = change.change.merged.as_deref().or(one).filter(|merged| !is_own(merged)) {
        let to = Commit::new(merged)?;
        let from = git.parent(&to)?.ok_or_else(|| unknown(merged))?;
        return Ok((from, to));
    }
    let tip = own.ok_or_else(|| unknown(change.branch()))?;
    if let (Some(_), Some(workspace)) = (change.merged(), &change.task.workspace) {
        // The base does not show the work any more: the change is the submitted work, or all commits since the workspace began.
        let submitted = change.work.as_ref().filter(|work| work.head == tip.as_str());
        let from = submitted.map(|work| git.before(&tip, work.commits)).transpose()?.flatten();
        let from = from.map_or_else(|| git.merge_base(&Commit::new(&workspace.start)?, &tip), Ok)?;
        return Ok((from, tip));
    }
    let newest = git.last_seen(&Branch::new(change.base())?)?.ok_or_else(|| unknown(change.base()))?;
    let base = match &change.task.workspace {
        Some(workspace) => stacked_branches::own_base(git, workspace, below, &newest)?,
        None => newest,
    };
    Ok((git.merge_base(&base, &tip)?, tip))
}

/// Returns the last commit of the work itself. A merge deletes the branch; the submitted commit stays for a while.
fn own_end(git: &Git<'_>, change: &ChangeRecord) -> Result<Option<Commit>, Error> {
    if let (Some(_), Some(work)) = (&change.change.merged, &change.work) {
        return Commit::new(&work.head).map(Some);
    }
    git.tip(&Branch::new(change.branch())?)
}

/// Renders the whole page. All its text comes from outside and is cleaned.
fn page(change: &ChangeRecord, seen: &ChangeView, stat: bool, out: &Output) -> Result<String, Failure> {
    let written = write_page(change, seen, stat, out);
    written.map_err(|error| Failure::new(Code::System, "cannot put the page together").caused_by(error))
}

fn write_page(change: &ChangeRecord, seen: &ChangeView, stat: bool, out: &Output) -> Result<String, std::fmt::Error> {
    let mut page = String::new();
    let (tone, word) = (state_tone(change.state()), change.state().name());
    let (id, word) = (out.paint(Tone::Strong, change.task.id), out.paint(tone, word));
    writeln!(page, "{id}  {word}  {} → {}", text::line(change.branch()), text::line(change.base()))?;
    writeln!(page, "  {}", text::line(&change.task.goal))?;
    if let Some(below) = change.below() {
        writeln!(page, "  {}", out.paint(Tone::Faint, format_args!("on top of {below}")))?;
    }
    if let Some(url) = &change.change.at.url {
        writeln!(page, "  {}", out.paint(Tone::Name, text::line(url)))?;
    }
    let opened = show::moment(change.opened_at);
    writeln!(page, "  {}", out.paint(Tone::Faint, format_args!("opened {opened}")))?;
    if let Some(merged) = change.merged() {
        let how = change.seen().map(|how| format!(": {how}")).unwrap_or_default();
        let told = format!("merged as {merged}{how}");
        writeln!(page, "  {}", out.paint(Tone::Faint, text::line(&told)))?;
    }
    writeln!(page)?;
    for commit in &seen.commits {
        let at = show::moment(Timestamp::from_millis(commit.at.saturating_mul(1000)));
        let id = out.paint(Tone::Warning, commit.commit.short());
        let about = out.paint(Tone::Faint, format!("({}, {at})", text::line(&commit.author)));
        writeln!(page, "{id} {} {about}", text::line(&commit.subject))?;
    }
    writeln!(page)?;
    write_stat(&mut page, &seen.files, out)?;
    if !stat {
        writeln!(page)?;
        seen.diff
            .text
            .lines()
            .try_for_each(|line| writeln!(page, "{}", out.paint(tone_of(line), text::lines(line))))?;
        if seen.diff.cut {
            writeln!(page, "{}", out.paint(Tone::Warning, "there is more of it than is shown"))?;
        }
    }
    Ok(page)
}

/// Writes a line per file with its counts, and the totals.
fn write_stat(page: &mut String, files: &[FileChange], out: &Output) -> std::fmt::Result {
    let names: Vec<String> = files.iter().map(|file| text::line(&file.path.to_string_lossy()).into_owned()).collect();
    let width = names.iter().map(|name| text::width(name)).max().unwrap_or(0);
    let most = files.iter().map(|file| file.added + file.removed).max().unwrap_or(0);
    for (file, name) in files.iter().zip(&names) {
        let scaled = |lines: u64| if most > SIGNS { (lines * SIGNS).div_ceil(most) } else { lines };
        let signs = |sign: &str, lines| sign.repeat(usize::try_from(scaled(lines)).unwrap_or(0));
        let (added, removed) = (signs("+", file.added), signs("-", file.removed));
        let (added, removed) = (out.paint(Tone::Good, added), out.paint(Tone::Bad, removed));
        let lines = file.added + file.removed;
        let signs = if lines > 0 { format!(" {added}{removed}") } else { String::new() };
        writeln!(page, " {} | {lines}{signs}", text::pad(name, width))?;
    }
    let (added, removed): (u64, u64) =
        files.iter().fold((0, 0), |(added, removed), file| (added + file.added, removed + file.removed));
    let files = if files.len() == 1 { "one file".to_owned() } else { format!("{} files", files.len()) };
    writeln!(page, " {files}, +{added} -{removed}")
}

/// Returns the tone of a line of a diff.
fn tone_of(line: &str) -> Tone {
    match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => Tone::Strong,
        [b'+', ..] => Tone::Good,
        [b'-', ..] => Tone::Bad,
        [b'@', b'@', ..] => Tone::Name,
        _ if line.starts_with("diff ") || line.starts_with("index ") => Tone::Strong,
        _ => Tone::Plain,
    }
}

fn to_json(change: &ChangeRecord, seen: &ChangeView) -> serde_json::Value {
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
        .map(|file| json!({"path": file.path.to_string_lossy(), "added": file.added, "removed": file.removed}))
        .collect();
    told["diff"] = json!(seen.diff.text);
    told["diffCut"] = json!(seen.diff.cut);
    told
}
