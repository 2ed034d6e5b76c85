//! Merge requests in the form of GitLab's REST API (v4).

use serde_json::{Value, json};

use super::{ForgePull, ForgeServer, HttpRequest, PullStage, RequestQuery, error_response};
use crate::provider::http::HttpResponse;

pub(super) const ROOT: &str = "/api/v4";
/// The ids of the project and of a fork.
const IDS: (u64, u64) = (7, 8);
const MAX_LENGTHS: usize = 255;

pub(super) fn respond(server: &ForgeServer, request: &HttpRequest) -> HttpResponse {
    let query = RequestQuery::parse(request, ROOT);
    let path: Vec<&str> = query.path.iter().map(String::as_str).collect();
    let ["projects", project, "merge_requests", rest @ ..] = path.as_slice() else {
        return error_response(404, "404 Not Found");
    };
    if *project != server.project {
        return error_response(404, "404 Project Not Found");
    }
    match (request.method.as_str(), rest) {
        ("GET", []) => list_pulls(server, &query),
        ("POST", []) => open_pull(server, &request.body),
        ("GET", [number]) => show_pull(server, number),
        ("PUT", [number, "merge"]) => merge_pull(server, number, &request.body),
        _ => error_response(404, "404 Not Found"),
    }
}

fn list_pulls(server: &ForgeServer, query: &RequestQuery) -> HttpResponse {
    let is_wanted = |pull: &ForgePull| {
        let state = query.get("state").unwrap_or("all");
        (state == "all" || state == pull_state(pull))
            && query.get("source_branch").is_none_or(|branch| branch == pull.branch)
            && query.get("target_branch").is_none_or(|base| base == pull.base)
    };
    server.list_page(query, is_wanted, |pull| pull_json(server, pull))
}

fn open_pull(server: &ForgeServer, body: &Value) -> HttpResponse {
    let field = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    let (branch, base, title) = (field("source_branch"), field("target_branch"), field("title"));
    if title.is_empty() || title.chars().count() > MAX_LENGTHS {
        return HttpResponse::json(400, &json!({"message": {"title": ["is too long (maximum is 255 characters)"]}}));
    }
    let Some(head) = (server.backend.head)(&branch) else {
        return HttpResponse::json(400, &json!({"message": {"validate_branches": ["Source branch does not exist"]}}));
    };
    let mut state = server.state();
    let is_same = |pull: &&ForgePull| pull.stage == PullStage::Open && (&pull.branch, &pull.base) == (&branch, &base);
    if let Some(pull) = state.pulls.iter().find(is_same) {
        let message = format!("Another open merge request already exists for this source branch: !{}", pull.number);
        return HttpResponse::json(409, &json!({"message": [message]}));
    }
    let pull = ForgePull {
        number: 0,
        branch,
        base,
        head,
        draft: title.starts_with("Draft: "),
        title,
        body: field("description"),
        stage: PullStage::Open,
        is_from_fork: false,
        refusal: None,
    };
    state.add_pull(pull);
    let pull = state.pulls.last().cloned();
    drop(state);
    HttpResponse::json(201, &pull.map(|pull| pull_json(server, &pull)).unwrap_or_default())
}

fn find_pull(server: &ForgeServer, number: &str) -> Option<ForgePull> {
    let number: u64 = number.parse().ok()?;
    server.state().pulls.iter().find(|pull| pull.number == number).cloned()
}

fn show_pull(server: &ForgeServer, number: &str) -> HttpResponse {
    match find_pull(server, number) {
        Some(pull) => HttpResponse::json(200, &pull_json(server, &pull)),
        None => error_response(404, "404 Not found"),
    }
}

fn merge_pull(server: &ForgeServer, number: &str, body: &Value) -> HttpResponse {
    let Some(pull) = find_pull(server, number) else { return error_response(404, "404 Not found") };
    if pull.stage != PullStage::Open || pull.draft {
        return error_response(405, "405 Method Not Allowed");
    }
    if let Some(refusal) = &pull.refusal {
        return error_response(refusal.status, refusal.message);
    }
    if body["sha"].as_str().is_some_and(|sha| sha != pull.head) {
        return error_response(409, "SHA does not match HEAD of source branch");
    }
    let method = if body["squash"] == Value::Bool(true) { "squash" } else { "merge" };
    match (server.backend.merge)(&pull, method) {
        Ok(commit) => {
            let merged = ForgePull { stage: PullStage::Merged { commit }, ..pull };
            server.state().edit(merged.number, |pull| *pull = merged.clone());
            HttpResponse::json(200, &pull_json(server, &merged))
        }
        Err(why) => error_response(422, &why),
    }
}

fn pull_state(pull: &ForgePull) -> &'static str {
    match pull.stage {
        PullStage::Open => "opened",
        PullStage::Merged { .. } => "merged",
        PullStage::Closed => "closed",
    }
}

fn pull_json(server: &ForgeServer, pull: &ForgePull) -> Value {
    let commit = match &pull.stage {
        PullStage::Merged { commit } => Some(commit),
        _ => None,
    };
    let status = match (&pull.refusal, &pull.stage) {
        (_, PullStage::Merged { .. } | PullStage::Closed) => "not_open",
        (Some(refusal), _) => refusal.state,
        (None, _) if pull.draft => "draft_status",
        (None, _) => "mergeable",
    };
    json!({
        "id": 1000 + pull.number,
        "iid": pull.number,
        "project_id": IDS.0,
        "web_url": format!("http://{}/{}/-/merge_requests/{}", server.address, server.project, pull.number),
        "state": pull_state(pull),
        "title": pull.title,
        "description": pull.body,
        "draft": pull.draft,
        "source_branch": pull.branch,
        "target_branch": pull.base,
        "source_project_id": if pull.is_from_fork { IDS.1 } else { IDS.0 },
        "target_project_id": IDS.0,
        "sha": pull.head,
        "merge_commit_sha": commit,
        "squash_commit_sha": null,
        "detailed_merge_status": status,
    })
}
