//! Pull requests in the form of GitHub's REST API (2022-11-28).

use serde_json::{Value, json};

use super::{ForgeServer, Pull, PullStage, Query, Request, says};
use crate::provider::http::Response;

pub(super) const ROOT: &str = "/api/v3";
/// The ids of the repository and of a fork.
const IDS: (u64, u64) = (7, 8);
const LONGEST: (usize, usize) = (256, 65_536);

pub(super) fn answer(room: &ForgeServer, request: &Request) -> Response {
    let query = Query::of(request, ROOT);
    let path: Vec<&str> = query.path.iter().map(String::as_str).collect();
    let ["repos", owner, name, "pulls", rest @ ..] = path.as_slice() else { return says(404, "Not Found") };
    if format!("{owner}/{name}") != room.project {
        return says(404, "Not Found");
    }
    if request.header("x-github-api-version") != Some("2022-11-28") {
        return says(400, "no version of the API is named");
    }
    match (request.method.as_str(), rest) {
        ("GET", []) => list(room, &query, owner),
        ("POST", []) => open(room, &request.body, owner),
        ("GET", [number]) => look(room, number),
        ("PUT", [number, "merge"]) => merge(room, number, &request.body),
        _ => says(404, "Not Found"),
    }
}

fn list(room: &ForgeServer, query: &Query, owner: &str) -> Response {
    let state = query.get("state").unwrap_or("open");
    let is_wanted = |pull: &Pull| {
        let head = query.get("head").is_none_or(|head| head == format!("{owner}:{}", pull.branch));
        let is_open = pull.stage == PullStage::Open;
        let is_in_state = state == "all" || (state == "open") == is_open;
        head && is_in_state && query.get("base").is_none_or(|base| base == pull.base)
    };
    room.list(query, is_wanted, |pull| shape(room, pull))
}

fn open(room: &ForgeServer, body: &Value, owner: &str) -> Response {
    let field = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    let (branch, base, title) = (field("head"), field("base"), field("title"));
    let invalid = |field: &str, code: &str| {
        let error = json!({"resource": "PullRequest", "field": field, "code": code});
        Response::json(422, &json!({"message": "Validation Failed", "errors": [error]}))
    };
    let custom = |message: String| {
        let error = json!({"resource": "PullRequest", "code": "custom", "message": message});
        Response::json(422, &json!({"message": "Validation Failed", "errors": [error]}))
    };
    let heads = ((room.ground.head)(&branch), (room.ground.head)(&base));
    let (Some(head), Some(base_head)) = heads else { return invalid("head", "invalid") };
    if head == base_head {
        return custom(format!("No commits between {base} and {branch}"));
    }
    if title.is_empty() || title.chars().count() > LONGEST.0 || field("body").chars().count() > LONGEST.1 {
        return invalid("title", "invalid");
    }
    let mut desk = room.desk();
    let is_same = |pull: &&Pull| pull.stage == PullStage::Open && (&pull.branch, &pull.base) == (&branch, &base);
    if desk.pulls.iter().any(|pull| is_same(&pull)) {
        return custom(format!("A pull request already exists for {owner}:{branch}."));
    }
    let pull = Pull {
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
    let Some(pull) = found(room, number) else { return says(404, "Not Found") };
    let mut shape = shape(room, &pull);
    shape["mergeable_state"] = pull.refusal.as_ref().map_or("clean", |refusal| refusal.state).into();
    shape["merged"] = matches!(pull.stage, PullStage::Merged { .. }).into();
    Response::json(200, &shape)
}

fn merge(room: &ForgeServer, number: &str, body: &Value) -> Response {
    let Some(pull) = found(room, number) else { return says(404, "Not Found") };
    if pull.stage != PullStage::Open {
        return says(405, "Pull Request is not mergeable");
    }
    if let Some(refusal) = &pull.refusal {
        return says(refusal.status, refusal.message);
    }
    if pull.draft {
        return says(405, "Pull Request is still a draft");
    }
    if body["sha"].as_str().is_some_and(|sha| sha != pull.head) {
        return says(409, "Head branch was modified. Review and try the merge again.");
    }
    match (room.ground.merge)(&pull, body["merge_method"].as_str().unwrap_or("merge")) {
        Ok(commit) => {
            let answer = json!({"sha": commit, "merged": true, "message": "Pull Request successfully merged"});
            room.desk().edit(pull.number, |pull| pull.stage = PullStage::Merged { commit });
            Response::json(200, &answer)
        }
        Err(why) => says(405, &why),
    }
}

fn shape(room: &ForgeServer, pull: &Pull) -> Value {
    let (owner, _) = room.project.split_once('/').unwrap_or_default();
    let repository = |id: u64| json!({"id": id, "full_name": room.project, "owner": {"login": owner}});
    let head = if pull.is_from_fork { IDS.1 } else { IDS.0 };
    let commit = match &pull.stage {
        PullStage::Merged { commit } => Some(commit),
        _ => None,
    };
    json!({
        "number": pull.number,
        "html_url": format!("http://{}/{}/pull/{}", room.address, room.project, pull.number),
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
