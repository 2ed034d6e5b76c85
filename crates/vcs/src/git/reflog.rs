//! The commits that were made in a worktree, according to git's reflogs.
//!
//! Invariants:
//! - A reflog that is missing, has gaps, or begins after the work gives no answer.
//! - A commit that was only checked out was not made there, by any command.
//! - A checkout leaves commits behind. Commits that were replaced or dropped (amend, reset, rebase) were not left.
//!
//! Not here: commits that were made elsewhere and pushed from there. A rewrite of the reflog without a gap goes unnoticed.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use windlass_process::file;

use super::repository::WorktreeHead;
use super::{BranchName, Error, GitClient, GitCommitId, LoggedCommit, Worktree, canonical_path};

/// The longest reflog that is read.
const MAX_REFLOG_BYTES: u64 = 64 * 1024 * 1024;

/// A line of a reflog.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReflogEntry {
    /// `None` where the reflog begins.
    from: Option<GitCommitId>,
    to: GitCommitId,
    how: String,
}

impl GitClient<'_> {
    /// Returns the commits that were made in a worktree, and that `within` has and `since` has not, newest first.
    pub fn commits_made_in(
        &self,
        worktree: &Worktree,
        since: &GitCommitId,
        within: &GitCommitId,
    ) -> Result<Vec<LoggedCommit>, Error> {
        if since == within {
            return Ok(Vec::new());
        }
        let arrived = self
            .build_command(&["rev-list"])
            .with_argument(within)
            .with_argument(format!("^{since}"))
            .with_argument("--")
            .run_checked()?
            .trimmed_text();
        if arrived.is_empty() {
            return Ok(Vec::new());
        }
        let noted = self.read_worktree_reflog(worktree, since)?;
        self.filter_made_commits(&noted, &arrived)
    }

    /// Returns the commits that were made in a worktree and left by a checkout, and whose changes `within` does not have:
    /// newest first, by the branch that has them, `HEAD` if the worktree is at them, or `no branch`.
    pub fn commits_made_beside(
        &self,
        worktree: &Worktree,
        since: &GitCommitId,
        within: &GitCommitId,
    ) -> Result<BTreeMap<String, Vec<LoggedCommit>>, Error> {
        let noted = self.read_worktree_reflog(worktree, since)?;
        let mut left = find_left_tips(&noted, &worktree.branch);
        match self
            .repository
            .worktree_entry(&canonical_path(&worktree.path))
            .map(|entry| entry.read_head())
            .transpose()?
        {
            Some(WorktreeHead::Detached(head)) => left.push(head),
            Some(WorktreeHead::Branch(branch)) if branch != worktree.branch => {
                left.extend(self.resolve_ref(&branch.full_ref())?)
            }
            _ => {}
        }
        let mut beside: BTreeMap<String, Vec<LoggedCommit>> = BTreeMap::new();
        left.retain(|end| end != since && end != within);
        if left.is_empty() {
            return Ok(beside);
        }
        let listed: String = left.iter().map(|end| format!("{end}\n")).collect();
        let call = self.build_command(&["rev-list", "--ignore-missing", "--stdin"]);
        let apart = call.with_stdin(format!("{listed}^{within}\n^{since}\n")).run_checked()?.trimmed_text();
        let is_apart = |end: &GitCommitId| apart.lines().any(|commit| commit == end.as_str());
        let mut commits = String::new();
        for end in left.iter().filter(|end| is_apart(end)) {
            if !self.has_all_changes(within, end)? {
                let call = self
                    .build_command(&["rev-list"])
                    .with_argument(end)
                    .with_argument(format!("^{within}"))
                    .with_argument(format!("^{since}"));
                commits.push_str(&call.with_argument("--").run_checked()?.trimmed_text());
                commits.push('\n');
            }
        }
        for made in self.filter_made_commits(&noted, &commits)? {
            let place = self.find_place_beside(worktree, &made.commit)?;
            let there = beside.entry(place).or_default();
            if !there.contains(&made) {
                there.push(made);
            }
        }
        Ok(beside)
    }

    /// Returns the listed commits that the reflog shows as made here.
    fn filter_made_commits(&self, noted: &[ReflogEntry], listed: &str) -> Result<Vec<LoggedCommit>, Error> {
        let mut ways: HashMap<&str, Vec<&str>> = HashMap::new();
        noted.iter().for_each(|noted| ways.entry(noted.to.as_str()).or_default().push(&noted.how));
        let there: Vec<&str> = listed.lines().filter(|commit| ways.contains_key(commit)).collect();
        let mut made = self.log_commits(&there)?;
        let is_made =
            |logged: &LoggedCommit| ways[logged.commit.as_str()].iter().any(|how| is_made_here(how, &logged.subject));
        made.retain(is_made);
        Ok(made)
    }

    /// Returns the branch or place that has a commit made beside the branch of a worktree.
    fn find_place_beside(&self, worktree: &Worktree, commit: &GitCommitId) -> Result<String, Error> {
        let call = self
            .build_command(&["for-each-ref", "--format=%(refname)", "--count=1"])
            .with_argument(format!("--contains={commit}"));
        let name = call.with_argument("refs/heads/").run_checked()?.trimmed_text();
        if !name.is_empty() {
            return Ok(name.trim_start_matches("refs/heads/").to_owned());
        }
        let head = self
            .repository
            .worktree_entry(&canonical_path(&worktree.path))
            .map(|entry| entry.read_head())
            .transpose()?;
        let place = match head {
            Some(WorktreeHead::Detached(head)) if self.contains_commit(&head, commit)? => "HEAD",
            _ => "no branch",
        };
        Ok(place.to_owned())
    }

    /// Returns all reflog entries of a worktree and of its branch since the work began, or an error if some are missing.
    fn read_worktree_reflog(&self, worktree: &Worktree, since: &GitCommitId) -> Result<Vec<ReflogEntry>, Error> {
        let path = canonical_path(&worktree.path);
        let unclear = |why| Error::Unnoted { path: path.clone(), why };
        let entry = self.repository.worktree_entry(&path).ok_or_else(|| Error::Vanished { path: path.clone() })?;
        let mut here =
            read_reflog(&entry.admin.join("logs/HEAD")).ok_or_else(|| unclear("its reflog cannot be read"))?;
        let (Some(first), Some(last)) = (here.first(), here.last()) else {
            return Err(unclear("its reflog is empty"));
        };
        let head = match entry.read_head()? {
            WorktreeHead::Detached(commit) => Some(commit),
            WorktreeHead::Branch(branch) => self.resolve_ref(&branch.full_ref())?,
            WorktreeHead::Unknown => None,
        };
        if !is_gapless(&here) || head.as_ref() != Some(&last.to) {
            return Err(unclear("entries of its reflog are missing"));
        }
        let branch = &worktree.branch;
        let mark = self.resolve_ref(&branch.start_ref())?;
        let began = |commit: &GitCommitId| commit == since || Some(commit) == mark.as_ref();
        if began(&first.to) {
            return Ok(here);
        }
        // The worktree was recreated: the reflog of the branch has the time before.
        let earlier = read_reflog(&self.repository.common.join("logs").join(branch.full_ref())).unwrap_or_default();
        let is_first = first.from.as_ref().is_none_or(|from| *from == first.to);
        let reaches_back = is_first && earlier.iter().any(|noted| began(&noted.to));
        if !reaches_back || !is_gapless(&earlier) || !earlier.iter().any(|noted| noted.to == first.to) {
            return Err(unclear("its reflog begins after the work"));
        }
        here.extend(earlier);
        Ok(here)
    }

    /// Returns the log entries of commits, in this order.
    fn log_commits(&self, commits: &[&str]) -> Result<Vec<LoggedCommit>, Error> {
        if commits.is_empty() {
            return Ok(Vec::new());
        }
        let listed: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
        let answer = self
            .log_command()
            .with_argument("--no-walk=unsorted")
            .with_argument("--stdin")
            .with_stdin(listed)
            .run_checked()?;
        Ok(answer.split_entries().into_iter().filter_map(LoggedCommit::parse_entry).collect())
    }
}

/// Returns `None` if the reflog cannot be read completely.
fn read_reflog(path: &Path) -> Option<Vec<ReflogEntry>> {
    let bytes = file::read_bounded(path, MAX_REFLOG_BYTES).ok()?;
    // Git logs the renaming of the checked-out branch as an end and a new beginning at the same commit.
    let is_rename = |line: &&str| line.split_once('\t').is_some_and(|(_, how)| how.starts_with("Branch: renamed "));
    String::from_utf8_lossy(&bytes).lines().filter(|line| !is_rename(line)).map(parse_reflog_line).collect()
}

/// Returns the last tip of each place other than the branch that a checkout left.
fn find_left_tips(noted: &[ReflogEntry], branch: &BranchName) -> Vec<GitCommitId> {
    let mut ends: BTreeMap<&str, &GitCommitId> = BTreeMap::new();
    for ReflogEntry { from, how, .. } in noted {
        let left = how.strip_prefix("checkout: moving from ").and_then(|moved| moved.split_once(" to "));
        if let (Some((place, _)), Some(from)) = (left, from)
            && place != branch.as_str()
        {
            ends.insert(place, from);
        }
    }
    ends.into_values().cloned().collect()
}

/// Parses `FROM TO NAME <ADDRESS> SECONDS ZONE<tab>HOW`.
pub(super) fn parse_reflog_line(line: &str) -> Option<ReflogEntry> {
    let (about, how) = line.split_once('\t').unwrap_or((line, ""));
    let mut words = about.split(' ');
    let (from, to) = (words.next()?, words.next()?);
    let is_nothing = from.bytes().all(|byte| byte == b'0');
    let from = if is_nothing { None } else { Some(GitCommitId::new(from).ok()?) };
    Some(ReflogEntry { from, to: GitCommitId::new(to).ok()?, how: how.to_owned() })
}

/// Returns whether each entry continues the one before.
fn is_gapless(noted: &[ReflogEntry]) -> bool {
    noted.windows(2).all(|two| two[1].from.as_ref() == Some(&two[0].to))
}

/// Returns whether the reflog message shows that a commit was made, and not only checked out. Git logs `ACTION: SUBJECT`
/// for commits that it makes, and `GIT_REFLOG_ACTION` can set the action.
pub(super) fn is_made_here(how: &str, subject: &str) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (how, subject) = (plain(how), plain(subject));
    let says = |text: &str| how.match_indices(": ").any(|(at, sign)| text.starts_with(&how[at + sign.len()..]));
    if says(&subject) {
        return true;
    }
    let by_name = ["commit", "cherry-pick", "revert", "am"].iter().any(|name| how.starts_with(name));
    let on_the_way = ["(pick)", "(squash)", "(fixup)", "(reword)", "(edit)", "(continue)"];
    let is_named = by_name || how.contains(": Merge made by ") || on_the_way.iter().any(|step| how.contains(step));
    is_named && !how.ends_with(": fast-forward")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_made_commits_count_as_own_work() {
        for how in [
            "commit: Fix",
            "commit (amend): Fix",
            "rebase (pick): Fix",
            "merge x: Merge made by the 'ort' strategy.",
            "reset: moving to x: Fix  it",
        ] {
            assert!(is_made_here(how, "Fix it"), "{how}");
        }
        for how in [
            "merge origin/main: Fast-forward",
            "reset: moving to x",
            "rebase (start): checkout x",
            "checkout: x",
            "cherry-pick: fast-forward",
            "",
        ] {
            assert!(!is_made_here(how, "Fix it"), "{how}");
        }
        assert!(is_made_here("cherry-pick: fast-forward", "fast-forward"));
    }

    #[test]
    fn reflog_with_gap_gives_no_answer() {
        let id = |digit: &str| digit.repeat(40);
        let line =
            |from: &str, to: &str| parse_reflog_line(&format!("{} {} A <a@b> 1 +0000\tcommit: x", id(from), id(to)));
        let all = |lines: &[(&str, &str)]| lines.iter().map(|(from, to)| line(from, to)).collect::<Option<Vec<_>>>();
        assert!(is_gapless(&all(&[("0", "1"), ("1", "2")]).unwrap()));
        assert!(is_gapless(&all(&[("1", "2")]).unwrap()));
        assert!(!is_gapless(&all(&[("0", "1"), ("2", "3")]).unwrap()));
        assert_eq!(noted("no line"), None);
    }
}
