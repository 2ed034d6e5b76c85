//! GitHub's REST API, version 2022-11-28.

use serde::Deserialize;
use serde_json::json;
use ureq::http::Method as Verb;

use super::api::{ExtraHeaders, ForgeApi};
use super::forge_dialect::{ForgeChangeView, ForgeDialect, MergeResponse, NEWEST_CHANGES};
use super::{ForgeChange, ForgeChangeState, ForgeError, ForgeMergeMethod, MergeObstacle, NewChange, text};

pub(super) const EXTRA_HEADERS: ExtraHeaders =
    &[("accept", "application/vnd.github+json"), ("x-github-api-version", "2022-11-28")];
/// The longest title, in letters.
const MAX_TITLE_LETTERS: usize = 256;

pub(super) struct GitHubDialect {
    pub(super) api: ForgeApi,
    /// `owner/name`.
    pub(super) project: String,
}

#[derive(Deserialize)]
struct PullRequest {
    number: u64,
    html_url: String,
    state: String,
    merged_at: Option<String>,
    merge_commit_sha: Option<String>,
    mergeable_state: Option<String>,
    head: PullRequestEnd,
    base: PullRequestEnd,
}

#[derive(Deserialize)]
struct PullRequestEnd {
    #[serde(rename = "ref")]
    branch: String,
    sha: String,
    /// `None`: a deleted fork.
    repo: Option<GitHubRepository>,
}

#[derive(Deserialize)]
struct GitHubRepository {
    id: u64,
}

#[derive(Deserialize)]
struct GitHubMerge {
    sha: String,
}

impl PullRequest {
    /// Returns whether the branch belongs to this repository, and not to a fork. Ids survive the renaming of a repository.
    fn is_from_project(&self) -> bool {
        let id = |end: &PullRequestEnd| end.repo.as_ref().map(|repo| repo.id);
        id(&self.head).is_some() && id(&self.head) == id(&self.base)
    }
}

impl GitHubDialect {
    fn api_path(&self, rest: &str) -> String {
        format!("/repos/{}/pulls{rest}", self.project)
    }

    fn convert_pull_request(&self, pull: PullRequest) -> Result<ForgeChange, ForgeError> {
        let state = match (pull.merged_at, pull.merge_commit_sha, pull.state.as_str()) {
            (Some(_), Some(commit), _) => ForgeChangeState::Merged { commit },
            (Some(_), None, _) => return Err(self.api.malformed_error("a merged change has no commit")),
            (None, _, "open") => ForgeChangeState::Open,
            (None, _, _) => ForgeChangeState::Closed,
        };
        ForgeChange {
            number: pull.number,
            url: pull.html_url,
            branch: pull.head.branch,
            base: pull.base.branch,
            head: pull.head.sha,
            state,
        }
        .validate_fields(&self.api)
    }
}

impl ForgeDialect for GitHubDialect {
    fn newest_changes(&self, branch: &str, base: &str) -> Result<Vec<ForgeChange>, ForgeError> {
        let owner = self.project.split('/').next().unwrap_or_default();
        let head = format!("{owner}:{branch}");
        let (head, base) = (text::encode_component(&head), text::encode_component(base));
        let query = format!("?head={head}&base={base}&state=all&sort=created&direction=desc&per_page={NEWEST_CHANGES}");
        let pulls: Vec<PullRequest> = self.api.fetch_json(&self.api_path(&query))?;
        pulls.into_iter().filter(PullRequest::is_from_project).map(|pull| self.convert_pull_request(pull)).collect()
    }

    fn view_change(&self, number: u64) -> Result<ForgeChangeView, ForgeError> {
        let pull: PullRequest = self.api.fetch_json(&self.api_path(&format!("/{number}")))?;
        let mergeable = pull.mergeable_state.clone().unwrap_or_default();
        Ok(ForgeChangeView { change: self.convert_pull_request(pull)?, mergeable })
    }

    fn create_change(&self, new: &NewChange) -> Result<Option<ForgeChange>, ForgeError> {
        let body = json!({
            "head": new.branch,
            "base": new.base,
            "title": text::fit_title(&new.title, MAX_TITLE_LETTERS),
            "body": text::fit_body(&new.body),
        });
        let answer = self.api.send_request(&Verb::POST, &self.api_path(""), Some(&body))?;
        match answer.status {
            201 => Ok(Some(self.convert_pull_request(self.api.parse_body(&answer)?)?)),
            422 if self.api.error_message(&answer).contains("already exists") => Ok(None),
            _ => Err(self.api.refusal_error(&answer)),
        }
    }

    fn merge_change(&self, number: u64, head: &str, method: ForgeMergeMethod) -> Result<MergeResponse, ForgeError> {
        let body = json!({"sha": head, "merge_method": method.name()});
        let answer = self.api.send_request(&Verb::PUT, &self.api_path(&format!("/{number}/merge")), Some(&body))?;
        match answer.status {
            200 => {
                let GitHubMerge { sha } = self.api.parse_body(&answer)?;
                text::check_commit(&sha).map_err(|_| self.api.malformed_error("it has an invalid commit"))?;
                Ok(MergeResponse::Merged { commit: sha })
            }
            // 405: cannot merge now or by this method. 409: the branch or the base moved.
            405 | 409 => Ok(MergeResponse::Refused(self.api.error_message(&answer))),
            _ => Err(self.api.refusal_error(&answer)),
        }
    }

    /// Uses known texts of the refusal, or else the state that GitHub computed.
    fn classify_obstacle(&self, looked: &ForgeChangeView, refusal: &str) -> (MergeObstacle, String) {
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
