//! GitLab's REST API, version 4.

use serde::Deserialize;
use serde_json::json;
use ureq::http::Method as Verb;

use super::api::{ExtraHeaders, ForgeApi};
use super::forge_dialect::{ForgeChangeView, ForgeDialect, MergeResponse, NEWEST_CHANGES};
use super::{ForgeChange, ForgeChangeState, ForgeError, ForgeMergeMethod, MergeObstacle, NewChange, text};

pub(super) const EXTRA_HEADERS: ExtraHeaders = &[("accept", "application/json")];
/// The longest title, in letters.
const MAX_TITLE_LETTERS: usize = 255;
/// The number of pages that are searched for requests of the project itself.
const MAX_PAGES: usize = 30;

pub(super) struct GitLabDialect {
    pub(super) api: ForgeApi,
    /// With all its groups.
    pub(super) project: String,
}

#[derive(Deserialize)]
struct GitLabMergeRequest {
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

impl GitLabMergeRequest {
    /// Returns whether the branch belongs to this project, and not to a fork. An old request may have lost its commit, and
    /// its subject is unknown then.
    fn is_from_project(&self) -> bool {
        let is_known = self.sha.is_some() || self.state == "opened";
        is_known && self.source_project_id == Some(self.target_project_id)
    }
}

impl GitLabDialect {
    fn api_path(&self, rest: &str) -> String {
        format!("/projects/{}/merge_requests{rest}", text::encoded(&self.project))
    }

    fn convert_merge_request(&self, request: GitLabMergeRequest) -> Result<ForgeChange, ForgeError> {
        let Some(head) = request.sha else { return Err(self.api.malformed_error("a change has no commit yet")) };
        let state = match request.state.as_str() {
            // A fast-forward merge has no commit of its own.
            "merged" => ForgeChangeState::Merged {
                commit: request.merge_commit_sha.or(request.squash_commit_sha).unwrap_or_else(|| head.clone()),
            },
            "closed" => ForgeChangeState::Closed,
            // A locked request is being merged right now.
            "opened" | "locked" => ForgeChangeState::Open,
            _ => return Err(self.api.malformed_error("a change has an unknown state")),
        };
        ForgeChange {
            number: request.iid,
            url: request.web_url,
            branch: request.source_branch,
            base: request.target_branch,
            head,
            state,
        }
        .validate_fields(&self.api)
    }
}

impl ForgeDialect for GitLabDialect {
    fn newest_changes(&self, branch: &str, base: &str) -> Result<Vec<ForgeChange>, ForgeError> {
        let (branch, base) = (text::encode_component(branch), text::encode_component(base));
        let which = format!("source_branch={branch}&target_branch={base}&state=all&scope=all");
        let mut found = Vec::new();
        // Requests from forks with branches of the same name do not count, and must not hide ours.
        for page in 1..=MAX_PAGES {
            let query = format!("?{which}&order_by=created_at&sort=desc&per_page={NEWEST}&page={page}");
            let requests: Vec<GitLabMergeRequest> = self.api.fetch_json(&self.api_path(&query))?;
            let is_last = requests.len() < NEWEST_CHANGES;
            found.extend(requests.into_iter().filter(GitLabMergeRequest::is_from_project));
            if is_last || found.len() >= NEWEST_CHANGES {
                break;
            }
        }
        found.into_iter().map(|request| self.convert_merge_request(request)).collect()
    }

    fn view_change(&self, number: u64) -> Result<ForgeChangeView, ForgeError> {
        let request: GitLabMergeRequest = self.api.fetch_json(&self.api_path(&format!("/{number}")))?;
        let is_locked = request.state == "locked";
        let status = request.detailed_merge_status.clone().filter(|_| !is_locked);
        Ok(ForgeChangeView {
            change: self.convert_merge_request(request)?,
            mergeable: status.unwrap_or_else(|| "checking".to_owned()),
        })
    }

    fn create_change(&self, new: &NewChange) -> Result<Option<ForgeChange>, ForgeError> {
        let body = json!({
            "source_branch": new.branch,
            "target_branch": new.base,
            "title": text::fit_title(&new.title, MAX_TITLE_LETTERS),
            "description": text::fit_inert_body(&new.body),
            "remove_source_branch": false,
        });
        let answer = self.api.send_request(&Verb::POST, &self.api_path(""), Some(&body))?;
        match answer.status {
            201 => {
                let request: GitLabMergeRequest = self.api.parse_body(&answer)?;
                let sha = request.sha.or_else(|| Some(new.head.clone()));
                Ok(Some(self.convert_merge_request(GitLabMergeRequest { sha, ..request })?))
            }
            409 => Ok(None),
            _ => Err(self.api.refusal_error(&answer)),
        }
    }

    fn merge_change(&self, number: u64, head: &str, method: ForgeMergeMethod) -> Result<MergeResponse, ForgeError> {
        let body =
            json!({"sha": head, "squash": method == ForgeMergeMethod::Squash, "should_remove_source_branch": false});
        let answer = self.api.send_request(&Verb::PUT, &self.api_path(&format!("/{number}/merge")), Some(&body));
        // The token sufficed for viewing: it only lacks the right to merge.
        let answer = answer.map_err(|error| match error {
            ForgeError::Unauthorized { host, why } => {
                ForgeError::Forbidden { host, project: self.project.clone(), why }
            }
            error => error,
        })?;
        match answer.status {
            200 => match self.convert_merge_request(self.api.parse_body(&answer)?)?.state {
                ForgeChangeState::Merged { commit } => Ok(MergeResponse::Merged { commit }),
                _ => Ok(MergeResponse::Refused("it has begun to merge".to_owned())),
            },
            // 405: cannot merge now or by this method. 406 and 422: conflicts. 409: the branch moved.
            405 | 406 | 409 | 422 => Ok(MergeResponse::Refused(self.api.error_message(&answer))),
            _ => Err(self.api.refusal_error(&answer)),
        }
    }

    /// Uses the status that GitLab computed: its texts are the same for nearly every reason.
    fn classify_obstacle(&self, looked: &ForgeChangeView, refusal: &str) -> (MergeObstacle, String) {
        let status = text::quote_line(&looked.mergeable);
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
