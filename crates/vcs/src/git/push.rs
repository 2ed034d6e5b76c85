//! Pushing a branch to exactly where it is expected to be.

use super::trouble::clean;
use super::{Branch, Commit, Error, Git, RemoteName};

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    Now,
    /// The remote had it already, and nothing was sent.
    Already,
}

impl Git<'_> {
    /// Has a branch of a remote be this commit, if it is where it was expected to be (`None`: not there).
    pub fn push(
        &self,
        remote: &RemoteName,
        branch: &Branch,
        commit: &Commit,
        expected: Option<&Commit>,
    ) -> Result<Pushed, Error> {
        let there = self.on_remote(remote, branch)?;
        if there.as_ref() == Some(commit) {
            return Ok(Pushed::Already);
        }
        if there.as_ref() != expected {
            return Err(Error::Moved { branch: branch.clone() });
        }
        self.send(remote, branch, commit, expected)?;
        Ok(Pushed::Now)
    }

    /// Takes a branch away from a remote, if it is where it was expected to be. One that is not there is no trouble.
    pub fn push_away(&self, remote: &RemoteName, branch: &Branch, expected: &Commit) -> Result<Pushed, Error> {
        match self.on_remote(remote, branch)? {
            None => Ok(Pushed::Already),
            Some(there) if there != *expected => Err(Error::Moved { branch: branch.clone() }),
            Some(_) => {
                self.send_refspec(remote, branch, &format!(":{}", branch.full()), Some(expected)).map(|()| Pushed::Now)
            }
        }
    }

    /// Where a branch of a remote is now.
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
        // Other refs may end with the same words.
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
    ) -> Result<(), Error> {
        self.send_refspec(remote, branch, &format!("{commit}:{}", branch.full()), expected)
    }

    fn send_refspec(
        &self,
        remote: &RemoteName,
        branch: &Branch,
        refspec: &str,
        expected: Option<&Commit>,
    ) -> Result<(), Error> {
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
            return Ok(());
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

/// Why a ref was not taken: `!`, from and to, `[rejected] (stale info)`.
fn refusal(porcelain: &[u8]) -> Option<String> {
    let line = porcelain.split(|byte| *byte == b'\n').find(|line| line.starts_with(b"!\t"))?;
    line.splitn(3, |byte| *byte == b'\t').nth(2).map(clean)
}

/// Whether somebody else was there first.
fn is_behind(why: &str) -> bool {
    why.starts_with("[rejected]")
        || ["cannot lock ref", "failed to update ref", "incorrect old value"].iter().any(|words| why.contains(words))
}

/// What the other side says of itself.
fn told_by_remote(said: &str) -> String {
    let lines = said.split("; ").filter_map(|line| line.strip_prefix("remote: ")).map(str::trim);
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}
