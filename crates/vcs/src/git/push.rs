//! Pushes a branch if the remote's branch is at the expected commit.

use super::trouble::clean;
use super::{Branch, Commit, Error, Git, RemoteName};

/// The outcome of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    Now,
    /// The remote had the commit already, and nothing was sent.
    Already,
}

impl Git<'_> {
    /// Sets a remote's branch to a commit, if it is at the expected one (`None`: absent).
    pub fn push(
        &self,
        remote: &RemoteName,
        branch: &Branch,
        commit: &Commit,
        expected: Option<&Commit>,
    ) -> Result<Pushed, Error> {
        match self.send(remote, branch, commit, expected) {
            // Another process of ours was faster.
            Err(Error::Moved { .. }) if self.on_remote(remote, branch)?.as_ref() == Some(commit) => Ok(Pushed::Already),
            sent => sent,
        }
    }

    /// Deletes a remote's branch, if it is at the expected commit. A missing branch is not an error.
    pub fn push_away(&self, remote: &RemoteName, branch: &Branch, expected: &Commit) -> Result<Pushed, Error> {
        match self.send_refspec(remote, branch, &format!(":{}", branch.full()), Some(expected)) {
            // Another process of ours was faster.
            Err(Error::Moved { .. }) if self.on_remote(remote, branch)?.is_none() => Ok(Pushed::Already),
            sent => sent,
        }
    }

    /// Returns the current tip of a remote's branch.
    pub fn on_remote(&self, remote: &RemoteName, branch: &Branch) -> Result<Option<Commit>, Error> {
        let full = branch.full();
        let call = self.call(&["ls-remote", "--quiet", "--refs", "--"]).word(remote).word(&full);
        let unreachable = |said| Error::Unreachable { remote: remote.clone(), said };
        let answer = match call.over_network()?.answer() {
            Err(Error::NotARepository { .. }) => return Err(unreachable("there is no repository".to_owned())),
            answer => answer?,
        };
        if answer.code != 0 {
            return Err(unreachable(answer.said));
        }
        // Other refs may end with the same text.
        let text = answer.line();
        let mut found = text.lines().filter_map(|line| line.split_once('\t'));
        found.find(|(_, name)| *name == full).map(|(id, _)| Commit::new(id)).transpose()
    }

    /// Pushes with a lease.
    pub(super) fn send(
        &self,
        remote: &RemoteName,
        branch: &Branch,
        commit: &Commit,
        expected: Option<&Commit>,
    ) -> Result<Pushed, Error> {
        self.send_refspec(remote, branch, &format!("{commit}:{}", branch.full()), expected)
    }

    fn send_refspec(
        &self,
        remote: &RemoteName,
        branch: &Branch,
        refspec: &str,
        expected: Option<&Commit>,
    ) -> Result<Pushed, Error> {
        let full = branch.full();
        let lease = format!("--force-with-lease={full}:{}", expected.map_or("", Commit::as_str));
        let call = self.call(&["push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no"]);
        let call = call.word(lease).word("--").word(remote).word(refspec);
        let answer = match call.over_network()?.answer() {
            Err(Error::NotARepository { .. }) => {
                let said = "there is no repository".to_owned();
                return Err(Error::Unreachable { remote: remote.clone(), said });
            }
            answer => answer?,
        };
        if answer.code == 0 {
            return Ok(if has_line(&answer.bytes, b"=\t") { Pushed::Already } else { Pushed::Now });
        }
        match refusal(&answer.bytes) {
            Some(why) if is_behind(&why) => Err(Error::Moved { branch: branch.clone() }),
            Some(why) => {
                let told = told_by_remote(&answer.said);
                let why = if told.is_empty() { why } else { format!("{why}: {told}") };
                Err(Error::Rejected { remote: remote.clone(), branch: branch.clone(), why })
            }
            None => Err(Error::Unreachable { remote: remote.clone(), said: answer.said }),
        }
    }
}

/// Returns whether a ref is listed with this flag.
fn has_line(porcelain: &[u8], flag: &[u8]) -> bool {
    porcelain.split(|byte| *byte == b'\n').any(|line| line.starts_with(flag))
}

/// Returns the reason of a rejected ref, such as `[rejected] (stale info)`, from the line that begins with `!`.
fn refusal(porcelain: &[u8]) -> Option<String> {
    let line = porcelain.split(|byte| *byte == b'\n').find(|line| line.starts_with(b"!\t"))?;
    line.splitn(3, |byte| *byte == b'\t').nth(2).map(clean)
}

/// Returns whether another push came first.
fn is_behind(why: &str) -> bool {
    why.starts_with("[rejected]")
        || ["cannot lock ref", "failed to update ref", "incorrect old value"].iter().any(|words| why.contains(words))
}

/// Returns the messages of the remote.
fn told_by_remote(said: &str) -> String {
    let lines = said.split("; ").filter_map(|line| line.strip_prefix("remote: ")).map(str::trim);
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}
