//! GitLab's REST API, version 4.

use serde::Deserialize;
use serde_json::json;
use ureq::http::Method as Verb;

use super::api::{Api, Wishes};
use super::dialect::{Dialect, Looked, MergeAnswer, NEWEST};
use super::{Change, ForgeError, MergeObstacle, Method, NewChange, State, text};

pub(super) const WISHES: Wishes = &[("accept", "application/json")];
/// The longest title, in letters.
const TITLE: usize = 255;
/// The number of pages that are searched for requests of the project itself.
const MAX_PAGES: usize = 30;

pub(super) struct GitLab {
    pub(super) api: Api,
    /// With all its groups.
    pub(super) project: String,
}

#[derive(Deserialize)]
struct MergeRequest {
    iid: u64,
    web_url: String,
    state: String,
    source_branch: String,
    target_branch: String,
    /// `None`: a deleted fork.
    source_project_id: Option<u64>,
    target_project_id: u64,
    /// The newest commit of the branch; `None` until GitLab has processed it.
    sha: Option<String>,
    merge_commit_sha: Option<String>,
    squash_commit_sha: Option<String>,
    detailed_merge_status: Option<String>,
}

impl MergeRequest {
    /// Returns whether the branch belongs to this project, and not to a fork. An old request may have lost its commit, and
    /// its subject is unknown then.
    fn is_ours(&self) -> bool {
        let is_known = self.sha.is_some() || self.state == "opened";
        is_known && self.source_project_id == Some(self.target_project_id)
    }
}

impl GitLab {
    fn path(&self, rest: &str) -> String {
        format!("/projects/{}/merge_requests{rest}", text::encoded(&self.project))
    }

    fn change(&self, request: MergeRequest) -> Result<Change, ForgeError> {
        let Some(head) = request.sha else { return Err(self.api.malformed("a change has no commit yet")) };
        let state = match request.state.as_str() {
            // A fast-forward merge has no commit of its own.
            "merged" => State::Merged {
                commit: request.merge_commit_sha.or(request.squash_commit_sha).unwrap_or_else(|| head.clone()),
            },
            "closed" => State::Closed,
            // A locked request is being merged right now.
            "opened" | "locked" => State::Open,
            _ => return Err(self.api.malformed("a change has an unknown state")),
        };
        Change {
            number: request.iid,
            url: request.web_url,
            branch: request.source_branch,
            base: request.target_branch,
            head,
            state,
        }
        .checked(&self.api)
    }
}

impl Dialect for GitLab {
    fn newest_changes(&self, branch: &str, base: &str) -> Result<Vec<Change>, ForgeError> {
        let (branch, base) = (text::encoded(branch), text::encoded(base));
        let which = format!("source_branch={branch}&target_branch={base}&state=all&scope=all");
        let mut found = Vec::new();
        // Requests from forks with branches of the same name do not count, and must not hide ours.
        for page in 1..=MAX_PAGES {
            let query = format!("?{which}&order_by=created_at&sort=desc&per_page={NEWEST}&page={page}");
            let requests: Vec<MergeRequest> = self.api.fetch(&self.path(&query))?;
            let is_last = requests.len() < NEWEST;
            found.extend(requests.into_iter().filter(MergeRequest::is_ours));
            if is_last || found.len() >= NEWEST {
                break;
            }
        }
        found.into_iter().map(|request| self.change(request)).collect()
    }

    fn look(&self, number: u64) -> Result<Looked, ForgeError> {
        let request: MergeRequest = self.api.fetch(&self.path(&format!("/{number}")))?;
        let is_locked = request.state == "locked";
        let status = request.detailed_merge_status.clone().filter(|_| !is_locked);
        Ok(Looked { change: self.change(request)?, mergeable: status.unwrap_or_else(|| "checking".to_owned()) })
    }

    fn create(&self, new: &NewChange) -> Result<Option<Change>, ForgeError> {
        let body = json!({
            "source_branch": new.branch,
            "target_branch": new.base,
            "title": text::title(&new.title, TITLE),
            "description": text::inert_body(&new.body),
            "remove_source_branch": false,
        });
        let answer = self.api.ask(&Verb::POST, &self.path(""), Some(&body))?;
        match answer.status {
            201 => {
                let request: MergeRequest = self.api.read(&answer)?;
                let sha = request.sha.or_else(|| Some(new.head.clone()));
                Ok(Some(self.change(MergeRequest { sha, ..request })?))
            }
            409 => Ok(None),
            _ => Err(self.api.refusal(&answer)),
        }
    }

    fn accept(&self, number: u64, head: &str, method: Method) -> Result<MergeAnswer, ForgeError> {
        let body = json!({"sha": head, "squash": method == Method::Squash, "should_remove_source_branch": false});
        let answer = self.api.ask(&Verb::PUT, &self.path(&format!("/{number}/merge")), Some(&body));
        // The token sufficed for viewing: it only lacks the right to merge.
        let answer = answer.map_err(|error| match error {
            ForgeError::Unauthorized { host, why } => {
                ForgeError::Forbidden { host, project: self.project.clone(), why }
            }
            error => error,
        })?;
        match answer.status {
            200 => match self.change(self.api.read(&answer)?)?.state {
                State::Merged { commit } => Ok(MergeAnswer::Merged { commit }),
                _ => Ok(MergeAnswer::Refused("it has begun to merge".to_owned())),
            },
            // 405: cannot merge now or by this method. 406 and 422: conflicts. 409: the branch moved.
            405 | 406 | 409 | 422 => Ok(MergeAnswer::Refused(self.api.message(&answer))),
            _ => Err(self.api.refusal(&answer)),
        }
    }

    /// Uses the status that GitLab computed: its texts are the same for nearly every reason.
    fn obstacle(&self, looked: &Looked, refusal: &str) -> (MergeObstacle, String) {
        let status = text::quoted(&looked.mergeable);
        let obstacle = match status.as_str() {
            "conflict" | "cannot_be_merged" | "need_rebase" => MergeObstacle::Behind,
            "ci_must_pass"
            | "ci_still_running"
            | "status_checks_must_pass"
            | "security_policy_pipeline_check"
            | "checking"
            | "unchecked"
            | "preparing"
            | "approvals_syncing" => MergeObstacle::Pending,
            _ => MergeObstacle::Person,
        };
        (obstacle, format!("{refusal} ({status})"))
    }
}
