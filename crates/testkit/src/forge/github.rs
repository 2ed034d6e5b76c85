//! Pull requests in the form of GitHub's REST API (2022-11-28).

use serde_json::{Value, json};

use super::{ForgePull, ForgeServer, HttpRequest, PullStage, RequestQuery, error_response};
use crate::provider::http::HttpResponse;

pub(super) const ROOT: &str = "/api/v3";
/// The ids of the repository and of a fork.
const IDS: (u64, u64) = (7, 8);
const MAX_LENGTHS: (usize, usize) = (256, 65_536);

pub(super) fn respond(server: &ForgeServer, request: &HttpRequest) -> HttpResponse {
    let query = RequestQuery::parse(request, ROOT);
    let path: Vec<&str> = query.path.iter().map(String::as_str).collect();
    let ["repos", owner, name, "pulls", rest @ ..] = path.as_slice() else { return error_response(404, "Not Found") };
    if format!("{owner}/{name}") != server.project {
        return error_response(404, "Not Found");
    }
    if request.header("x-github-api-version") != Some("2022-11-28") {
        return error_response(400, "no version of the API is named");
    }
    match (request.method.as_str(), rest) {
        ("GET", []) => list_pulls(server, &query, owner),
        ("POST", []) => open_pull(server, &request.body, owner),
        ("GET", [number]) => show_pull(server, number),
        ("PUT", [number, "merge"]) => merge_pull(server, number, &request.body),
        _ => error_response(404, "Not Found"),
    }
}

fn list_pulls(server: &ForgeServer, query: &RequestQuery, owner: &str) -> HttpResponse {
    let state = query.get("state").unwrap_or("open");
    let is_wanted = |pull: &ForgePull| {
        let head = query.get("head").is_none_or(|head| head == format!("{owner}:{}", pull.branch));
        let is_open = pull.stage == PullStage::Open;
        let is_in_state = state == "all" || (state == "open") == is_open;
        head && is_in_state && query.get("base").is_none_or(|base| base == pull.base)
    };
    server.list_page(query, is_wanted, |pull| pull_json(server, pull))
}

fn open_pull(server: &ForgeServer, body: &Value, owner: &str) -> HttpResponse {
    let field = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    let (branch, base, title) = (field("head"), field("base"), field("title"));
    let invalid = |field: &str, code: &str| {
        let error = json!({"resource": "PullRequest", "field": field, "code": code});
        HttpResponse::json(422, &json!({"message": "Validation Failed", "errors": [error]}))
    };
    let custom = |message: String| {
        let error = json!({"resource": "PullRequest", "code": "custom", "message": message});
        HttpResponse::json(422, &json!({"message": "Validation Failed", "errors": [error]}))
    };
    let heads = ((server.backend.head)(&branch), (server.backend.head)(&base));
    let (Some(head), Some(base_head)) = heads else { return invalid("head", "invalid") };
    if head == base_head {
        return custom(format!("No commits between {base} and {branch}"));
    }
    if title.is_empty() || title.chars().count() > MAX_LENGTHS.0 || field("body").chars().count() > MAX_LENGTHS.1 {
        return invalid("title", "invalid");
    }
    let mut state = server.state();
    let is_same = |pull: &&ForgePull| pull.stage == PullStage::Open && (&pull.branch, &pull.base) == (&branch, &base);
    if state.pulls.iter().any(|pull| is_same(&pull)) {
        return custom(format!("A pull request already exists for {owner}:{branch}."));
    }
    let pull = ForgePull {
        number: 0,
        branch,
        base,
        head,
        title,
        body: field("body"),
        draft: body["draft"] == Value::Bool(true),
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
    let Some(pull) = find_pull(server, number) else { return error_response(404, "Not Found") };
    let mut body = pull_json(server, &pull);
    body["mergeable_state"] = pull.refusal.as_ref().map_or("clean", |refusal| refusal.state).into();
    body["merged"] = matches!(pull.stage, PullStage::Merged { .. }).into();
    HttpResponse::json(200, &body)
}

fn merge_pull(server: &ForgeServer, number: &str, body: &Value) -> HttpResponse {
    let Some(pull) = find_pull(server, number) else { return error_response(404, "Not Found") };
    if pull.stage != PullStage::Open {
        return error_response(405, "Pull Request is not mergeable");
    }
    if let Some(refusal) = &pull.refusal {
        return error_response(refusal.status, refusal.message);
    }
    if pull.draft {
        return error_response(405, "Pull Request is still a draft");
    }
    if body["sha"].as_str().is_some_and(|sha| sha != pull.head) {
        return error_response(409, "Head branch was modified. Review and try the merge again.");
    }
    match (server.backend.merge)(&pull, body["merge_method"].as_str().unwrap_or("merge")) {
        Ok(commit) => {
            let answer = json!({"sha": commit, "merged": true, "message": "Pull Request successfully merged"});
            server.state().edit(pull.number, |pull| pull.stage = PullStage::Merged { commit });
            HttpResponse::json(200, &answer)
        }
        Err(why) => error_response(405, &why),
    }
}

fn pull_json(server: &ForgeServer, pull: &ForgePull) -> Value {
    let (owner, _) = server.project.split_once('/').unwrap_or_default();
    let repository = |id: u64| json!({"id": id, "full_name": server.project, "owner": {"login": owner}});
    let head = if pull.is_from_fork { IDS.1 } else { IDS.0 };
    let commit = match &pull.stage {
        PullStage::Merged { commit } => Some(commit),
        _ => None,
    };
    json!({
        "number": pull.number,
        "html_url": format!("http://{}/{}/pull/{}", server.address, server.project, pull.number),
        "state": if pull.stage == PullStage::Open { "open" } else { "closed" },
        "title": pull.title,
        "body": pull.body,
        "draft": pull.draft,
        "merged_at": commit.map(|_| "2026-01-17T10:00:00Z"),
        // GitHub also shows a commit for an open pull request: that of the last test merge.
        "merge_commit_sha": commit.map_or_else(|| super::commit("test merge"), Clone::clone),
        "head": {"ref": pull.branch, "sha": pull.head, "label": format!("{owner}:{}", pull.branch), "repo": repository(head)},
        "base": {"ref": pull.base, "sha": super::commit(&pull.base), "label": format!("{owner}:{}", pull.base), "repo": repository(IDS.0)},
    })
}
