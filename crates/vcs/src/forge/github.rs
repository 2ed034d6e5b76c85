//! GitHub's REST API, version 2022-11-28.

use serde::Deserialize;
use serde_json::json;
use ureq::http::Method as Verb;

use super::api::{Api, Wishes};
use super::dialect::{Dialect, Looked, MergeAnswer, NEWEST};
use super::{Change, ForgeError, MergeObstacle, Method, NewChange, State, text};

pub(super) const WISHES: Wishes = &[("accept", "application/vnd.github+json"), ("x-github-api-version", "2022-11-28")];
/// The longest title, in letters.
const TITLE: usize = 256;

pub(super) struct GitHub {
    pub(super) api: Api,
    /// `owner/name`.
    pub(super) project: String,
}

#[derive(Deserialize)]
struct Pull {
    number: u64,
    html_url: String,
    state: String,
    merged_at: Option<String>,
    merge_commit_sha: Option<String>,
    mergeable_state: Option<String>,
    head: End,
    base: End,
}

#[derive(Deserialize)]
struct End {
    #[serde(rename = "ref")]
    branch: String,
    sha: String,
    /// `None`: a deleted fork.
    repo: Option<Repository>,
}

#[derive(Deserialize)]
struct Repository {
    id: u64,
}

#[derive(Deserialize)]
struct Merge {
    sha: String,
}

impl Pull {
    /// Returns whether the branch belongs to this repository, and not to a fork. Ids survive the renaming of a repository.
    fn is_ours(&self) -> bool {
        let id = |end: &End| end.repo.as_ref().map(|repo| repo.id);
        id(&self.head).is_some() && id(&self.head) == id(&self.base)
    }
}

impl GitHub {
    fn path(&self, rest: &str) -> String {
        format!("/repos/{}/pulls{rest}", self.project)
    }

    fn change(&self, pull: Pull) -> Result<Change, ForgeError> {
        let state = match (pull.merged_at, pull.merge_commit_sha, pull.state.as_str()) {
            (Some(_), Some(commit), _) => State::Merged { commit },
            (Some(_), None, _) => return Err(self.api.malformed("a merged change has no commit")),
            (None, _, "open") => State::Open,
            (None, _, _) => State::Closed,
        };
        Change {
            number: pull.number,
            url: pull.html_url,
            branch: pull.head.branch,
            base: pull.base.branch,
            head: pull.head.sha,
            state,
        }
        .checked(&self.api)
    }
}

impl Dialect for GitHub {
    fn newest_changes(&self, branch: &str, base: &str) -> Result<Vec<Change>, ForgeError> {
        let owner = self.project.split('/').next().unwrap_or_default();
        let head = format!("{owner}:{branch}");
        let (head, base) = (text::encoded(&head), text::encoded(base));
        let query = format!("?head={head}&base={base}&state=all&sort=created&direction=desc&per_page={NEWEST}");
        let pulls: Vec<Pull> = self.api.fetch(&self.path(&query))?;
        pulls.into_iter().filter(Pull::is_ours).map(|pull| self.change(pull)).collect()
    }

    fn look(&self, number: u64) -> Result<Looked, ForgeError> {
        let pull: Pull = self.api.fetch(&self.path(&format!("/{number}")))?;
        let mergeable = pull.mergeable_state.clone().unwrap_or_default();
        Ok(Looked { change: self.change(pull)?, mergeable })
    }

    fn create(&self, new: &NewChange) -> Result<Option<Change>, ForgeError> {
        let body = json!({
            "head": new.branch,
            "base": new.base,
            "title": text::title(&new.title, TITLE),
            "body": text::body(&new.body),
        });
        let answer = self.api.ask(&Verb::POST, &self.path(""), Some(&body))?;
        match answer.status {
            201 => Ok(Some(self.change(self.api.read(&answer)?)?)),
            422 if self.api.message(&answer).contains("already exists") => Ok(None),
            _ => Err(self.api.refusal(&answer)),
        }
    }

    fn accept(&self, number: u64, head: &str, method: Method) -> Result<MergeAnswer, ForgeError> {
        let body = json!({"sha": head, "merge_method": method.name()});
        let answer = self.api.ask(&Verb::PUT, &self.path(&format!("/{number}/merge")), Some(&body))?;
        match answer.status {
            200 => {
                let Merge { sha } = self.api.read(&answer)?;
                text::check_commit(&sha).map_err(|_| self.api.malformed("a commit in it is none"))?;
                Ok(MergeAnswer::Merged { commit: sha })
            }
            // 405: cannot merge now or by this method. 409: the branch or the base moved.
            405 | 409 => Ok(MergeAnswer::Refused(self.api.message(&answer))),
            _ => Err(self.api.refusal(&answer)),
        }
    }

    /// Uses known texts of the refusal, or else the state that GitHub computed.
    fn obstacle(&self, looked: &Looked, refusal: &str) -> (MergeObstacle, String) {
        let words = refusal.to_ascii_lowercase();
        let says = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
        let obstacle = match looked.mergeable.as_str() {
            _ if says(&["was modified", "try the merge again", "in progress"]) => MergeObstacle::Pending,
            _ if says(&["conflict"]) => MergeObstacle::Behind,
            _ if says(&["status check", "check run", "required check"]) => MergeObstacle::Pending,
            _ if says(&["draft", "review", "approv"]) => MergeObstacle::Person,
            "dirty" | "behind" => MergeObstacle::Behind,
            "unstable" | "unknown" | "" => MergeObstacle::Pending,
            _ => MergeObstacle::Person,
        };
        (obstacle, refusal.to_owned())
    }
}
