//! Merge requests in the form of GitLab's REST API (v4).

use serde_json::{Value, json};

use super::{ForgeServer, Pull, PullStage, Query, Request, says};
use crate::provider::http::Response;

pub(super) const ROOT: &str = "/api/v4";
/// The ids of the project and of a fork.
const IDS: (u64, u64) = (7, 8);
const LONGEST: usize = 255;

pub(super) fn answer(room: &ForgeServer, request: &Request) -> Response {
    let query = Query::of(request, ROOT);
    let path: Vec<&str> = query.path.iter().map(String::as_str).collect();
    let ["projects", project, "merge_requests", rest @ ..] = path.as_slice() else {
        return says(404, "404 Not Found");
    };
    if *project != room.project {
        return says(404, "404 Project Not Found");
    }
    match (request.method.as_str(), rest) {
        ("GET", []) => list(room, &query),
        ("POST", []) => open(room, &request.body),
        ("GET", [number]) => look(room, number),
        ("PUT", [number, "merge"]) => merge(room, number, &request.body),
        _ => says(404, "404 Not Found"),
    }
}

fn list(room: &ForgeServer, query: &Query) -> Response {
    let is_wanted = |pull: &Pull| {
        let state = query.get("state").unwrap_or("all");
        (state == "all" || state == stage(pull))
            && query.get("source_branch").is_none_or(|branch| branch == pull.branch)
            && query.get("target_branch").is_none_or(|base| base == pull.base)
    };
    room.list(query, is_wanted, |pull| shape(room, pull))
}

fn open(room: &ForgeServer, body: &Value) -> Response {
    let field = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    let (branch, base, title) = (field("source_branch"), field("target_branch"), field("title"));
    if title.is_empty() || title.chars().count() > LONGEST {
        return Response::json(400, &json!({"message": {"title": ["is too long (maximum is 255 characters)"]}}));
    }
    let Some(head) = (room.ground.head)(&branch) else {
        return Response::json(400, &json!({"message": {"validate_branches": ["Source branch does not exist"]}}));
    };
    let mut desk = room.desk();
    let is_same = |pull: &&Pull| pull.stage == PullStage::Open && (&pull.branch, &pull.base) == (&branch, &base);
    if let Some(pull) = desk.pulls.iter().find(is_same) {
        let message = format!("Another open merge request already exists for this source branch: !{}", pull.number);
        return Response::json(409, &json!({"message": [message]}));
    }
    let pull = Pull {
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
    desk.add(pull);
    let pull = desk.pulls.last().cloned();
    drop(desk);
    Response::json(201, &pull.map(|pull| shape(room, &pull)).unwrap_or_default())
}

fn found(room: &ForgeServer, number: &str) -> Option<Pull> {
    let number: u64 = number.parse().ok()?;
    room.desk().pulls.iter().find(|pull| pull.number == number).cloned()
}

fn look(room: &ForgeServer, number: &str) -> Response {
    match found(room, number) {
        Some(pull) => Response::json(200, &shape(room, &pull)),
        None => says(404, "404 Not found"),
    }
}

fn merge(room: &ForgeServer, number: &str, body: &Value) -> Response {
    let Some(pull) = found(room, number) else { return says(404, "404 Not found") };
    if pull.stage != PullStage::Open || pull.draft {
        return says(405, "405 Method Not Allowed");
    }
    if let Some(refusal) = &pull.refusal {
        return says(refusal.status, refusal.message);
    }
    if body["sha"].as_str().is_some_and(|sha| sha != pull.head) {
        return says(409, "SHA does not match HEAD of source branch");
    }
    let method = if body["squash"] == Value::Bool(true) { "squash" } else { "merge" };
    match (room.ground.merge)(&pull, method) {
        Ok(commit) => {
            let merged = Pull { stage: PullStage::Merged { commit }, ..pull };
            room.desk().edit(merged.number, |pull| *pull = merged.clone());
            Response::json(200, &shape(room, &merged))
        }
        Err(why) => says(422, &why),
    }
}

fn stage(pull: &Pull) -> &'static str {
    match pull.stage {
        PullStage::Open => "opened",
        PullStage::Merged { .. } => "merged",
        PullStage::Closed => "closed",
    }
}

fn shape(room: &ForgeServer, pull: &Pull) -> Value {
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
        "web_url": format!("http://{}/{}/-/merge_requests/{}", room.address, room.project, pull.number),
        "state": stage(pull),
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
