//! Pushes a branch if the remote's branch is at the expected commit.

use super::stderr::clean_message;
use super::{BranchName, Error, GitClient, GitCommitId, RemoteName};

/// The outcome of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushOutcome {
    Pushed,
    /// The remote had the commit already, and nothing was sent.
    AlreadyPushed,
}

impl GitClient<'_> {
    /// Sets a remote's branch to a commit, if it is at the expected one (`None`: absent).
    pub fn push_branch(
        &self,
        remote: &RemoteName,
        branch: &BranchName,
        commit: &GitCommitId,
        expected: Option<&GitCommitId>,
    ) -> Result<PushOutcome, Error> {
        match self.push_with_lease(remote, branch, commit, expected) {
            // Another Windlass process was faster.
            Err(Error::Moved { .. }) if self.remote_tip(remote, branch)?.as_ref() == Some(commit) => {
                Ok(PushOutcome::AlreadyPushed)
            }
            sent => sent,
        }
    }

    /// Deletes a remote's branch, if it is at the expected commit. A missing branch is not an error.
    pub fn delete_remote_branch(
        &self,
        remote: &RemoteName,
        branch: &BranchName,
        expected: &GitCommitId,
    ) -> Result<PushOutcome, Error> {
        match self.push_refspec(remote, branch, &format!(":{}", branch.full_ref()), Some(expected)) {
            // Another Windlass process was faster.
            Err(Error::Moved { .. }) if self.remote_tip(remote, branch)?.is_none() => Ok(PushOutcome::AlreadyPushed),
            sent => sent,
        }
    }

    /// Returns the current tip of a remote's branch.
    pub fn remote_tip(&self, remote: &RemoteName, branch: &BranchName) -> Result<Option<GitCommitId>, Error> {
        let full = branch.full_ref();
        let call =
            self.build_command(&["ls-remote", "--quiet", "--refs", "--"]).with_argument(remote).with_argument(&full);
        let unreachable = |said| Error::Unreachable { remote: remote.clone(), said };
        let answer = match call.over_network()?.run_unchecked() {
            Err(Error::NotARepository { .. }) => return Err(unreachable("there is no repository".to_owned())),
            answer => answer?,
        };
        if answer.code != 0 {
            return Err(unreachable(answer.said));
        }
        // Other refs may end with the same text.
        let text = answer.trimmed_text();
        let mut found = text.lines().filter_map(|line| line.split_once('\t'));
        found.find(|(_, name)| *name == full).map(|(id, _)| GitCommitId::new(id)).transpose()
    }

    /// Pushes with a lease.
    pub(super) fn push_with_lease(
        &self,
        remote: &RemoteName,
        branch: &BranchName,
        commit: &GitCommitId,
        expected: Option<&GitCommitId>,
    ) -> Result<PushOutcome, Error> {
        self.push_refspec(remote, branch, &format!("{commit}:{}", branch.full_ref()), expected)
    }

    fn push_refspec(
        &self,
        remote: &RemoteName,
        branch: &BranchName,
        refspec: &str,
        expected: Option<&GitCommitId>,
    ) -> Result<PushOutcome, Error> {
        let full = branch.full_ref();
        let lease = format!("--force-with-lease={full}:{}", expected.map_or("", GitCommitId::as_str));
        let call =
            self.build_command(&["push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no"]);
        let call = call.with_argument(lease).with_argument("--").with_argument(remote).with_argument(refspec);
        let answer = match call.over_network()?.run_unchecked() {
            Err(Error::NotARepository { .. }) => {
                let said = "there is no repository".to_owned();
                return Err(Error::Unreachable { remote: remote.clone(), said });
            }
            answer => answer?,
        };
        if answer.code == 0 {
            return Ok(if has_flagged_line(&answer.bytes, b"=\t") {
                PushOutcome::AlreadyPushed
            } else {
                PushOutcome::Pushed
            });
        }
        match find_push_refusal(&answer.bytes) {
            Some(why) if is_outdated_push(&why) => Err(Error::Moved { branch: branch.clone() }),
            Some(why) => {
                let message = remote_message(&answer.said);
                let why = if message.is_empty() { why } else { format!("{why}: {message}") };
                Err(Error::Rejected { remote: remote.clone(), branch: branch.clone(), why })
            }
            None => Err(Error::Unreachable { remote: remote.clone(), said: answer.said }),
        }
    }
}

/// Returns whether a ref is listed with this flag.
fn has_flagged_line(porcelain: &[u8], flag: &[u8]) -> bool {
    porcelain.split(|byte| *byte == b'\n').any(|line| line.starts_with(flag))
}

/// Returns the reason of a rejected ref, such as `[rejected] (stale info)`, from the line that begins with `!`.
fn find_push_refusal(porcelain: &[u8]) -> Option<String> {
    let line = porcelain.split(|byte| *byte == b'\n').find(|line| line.starts_with(b"!\t"))?;
    line.splitn(3, |byte| *byte == b'\t').nth(2).map(clean_message)
}

/// Returns whether another push came first.
fn is_outdated_push(why: &str) -> bool {
    why.starts_with("[rejected]")
        || ["cannot lock ref", "failed to update ref", "incorrect old value"].iter().any(|words| why.contains(words))
}

/// Returns the messages of the remote.
fn remote_message(said: &str) -> String {
    let lines = said.split("; ").filter_map(|line| line.strip_prefix("remote: ")).map(str::trim);
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}
