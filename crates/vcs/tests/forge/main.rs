//! Changes on a local test forge that behaves like GitHub and GitLab.

mod faults;
mod merging;
mod tokens;

use std::time::Duration;

use windlass_process::Environment;
use windlass_testkit::forge::{self as testkit, Fault, Flavour, GitBackend, PullStage, TOKEN, commit};
use windlass_vcs::forge::{
    ForgeChange, ForgeChangeState, ForgeClient, ForgeError, ForgeOptions, ForgeProject, ForgeToken, ForgeVendor,
    NewChange,
};

const BOTH: [Flavour; 2] = [Flavour::GitHub, Flavour::GitLab];
const BRANCH: &str = "windlass/t7-fix";

/// A forge with a client for it.
struct Scene {
    server: testkit::Forge,
    forge: ForgeClient,
}

impl Scene {
    fn new(flavour: Flavour) -> Self {
        Self::of(flavour, GitBackend::default(), ForgeClient::DEFAULT_TIMEOUT)
    }

    fn of(flavour: Flavour, ground: GitBackend, timeout: Duration) -> Self {
        let project = match flavour {
            Flavour::GitHub => "o/r",
            Flavour::GitLab => "a/b/c.d",
        };
        let server = testkit::Forge::start(flavour, project, ground).expect("a free port");
        let site = site(&server, flavour, project);
        let forge = ForgeClient::new(site.clone(), token(&site, TOKEN), &Environment::new(), timeout);
        Self { server, forge }
    }

    /// Returns the number of requests with this method.
    fn count(&self, method: &str) -> usize {
        self.server.requests().iter().filter(|request| request.method == method).count()
    }
}

fn site(server: &testkit::Forge, flavour: Flavour, project: &str) -> ForgeProject {
    let kind = match flavour {
        Flavour::GitHub => ForgeVendor::GitHub,
        Flavour::GitLab => ForgeVendor::GitLab,
    };
    let settings = ForgeOptions { kind: Some(kind), api: Some(server.api()), project: None };
    let remote = format!("git@127.0.0.1:{project}.git");
    ForgeProject::from_remote(&remote, &settings).expect("it can be read").expect("it is a forge")
}

fn token(site: &ForgeProject, token: &str) -> ForgeToken {
    let environment = ["GH_ENTERPRISE_TOKEN", "GITLAB_TOKEN"].map(|name| (name.into(), token.into())).to_vec();
    ForgeToken::find_token(site, &environment, |_| panic!("no program is needed")).expect("there is one")
}

fn new() -> NewChange {
    NewChange {
        branch: BRANCH.to_owned(),
        base: "main".to_owned(),
        head: commit(BRANCH),
        title: "Fix the login".to_owned(),
        body: "It was broken.\n\n/merge\n".to_owned(),
    }
}

fn merged(text: &str) -> PullStage {
    PullStage::Merged { commit: commit(text) }
}

fn number(found: Option<ForgeChange>) -> Option<u64> {
    found.map(|change| change.number)
}

#[test]
fn a_change_is_opened_once() {
    for flavour in BOTH {
        let Scene { server, forge } = &Scene::new(flavour);
        assert_eq!(forge.find_change(BRANCH, "main").unwrap(), None);
        let change = forge.open_change(&new()).unwrap();
        let place = if flavour == Flavour::GitHub { "o/r/pull/1" } else { "a/b/c.d/-/merge_requests/1" };
        let host = server.api().split("/api").next().unwrap().to_owned();
        assert_eq!(
            change,
            ForgeChange {
                number: 1,
                url: format!("{host}/{place}"),
                branch: BRANCH.to_owned(),
                base: "main".to_owned(),
                head: commit(BRANCH),
                state: ForgeChangeState::Open,
            }
        );
        assert_eq!(forge.open_change(&new()).unwrap(), change);
        assert_eq!(forge.find_change(BRANCH, "main").unwrap().as_ref(), Some(&change));
        assert_eq!(forge.view_change(1).unwrap(), change);
        assert_eq!(forge.find_change(BRANCH, "next").unwrap(), None, "another base");
        assert_eq!(server.pulls().len(), 1);
    }
}

#[test]
fn nothing_in_a_text_is_a_command_or_too_long() {
    for flavour in BOTH {
        let Scene { server, forge } = &Scene::new(flavour);
        let title = format!("Fix\r\nthe \u{1b}[31mlogin \"quoted\" {}", "ä".repeat(300));
        let body = format!("a\0b\n/merge\n{}", "€".repeat(70_000));
        forge.open_change(&NewChange { title, body, ..new() }).unwrap();
        let pull = server.pulls().remove(0);
        assert!(pull.title.starts_with("Fix the [31mlogin \"quoted\" ä"), "{}", pull.title);
        assert!(pull.body.starts_with(if flavour == Flavour::GitLab {
            "ab\n\\/merge\n€"
        } else {
            "ab\n/merge\n€"
        }));
        assert!(pull.body.chars().count() <= 65_536 && pull.title.chars().count() <= 256);
    }
}

#[test]
fn open_change_is_found_among_the_newest_and_the_newest_one_otherwise() {
    for flavour in BOTH {
        let Scene { server, forge } = &Scene::new(flavour);
        for _ in 0..25 {
            server.put(BRANCH, "main", PullStage::Closed);
        }
        let open = server.put(BRANCH, "main", PullStage::Open);
        for _ in 0..5 {
            server.put(BRANCH, "main", PullStage::Closed);
        }
        assert_eq!(number(forge.find_change(BRANCH, "main").unwrap()), Some(open));
        server.edit(open, |pull| pull.stage = PullStage::Closed);
        assert_eq!(number(forge.find_change(BRANCH, "main").unwrap()), Some(31), "the newest otherwise");
    }
}

#[test]
fn changes_of_forks_are_not_ours() {
    for flavour in BOTH {
        let Scene { server, forge } = &Scene::new(flavour);
        let theirs = server.put(BRANCH, "main", PullStage::Closed);
        server.edit(theirs, |pull| pull.is_from_fork = true);
        assert_eq!(forge.find_change(BRANCH, "main").unwrap(), None);
    }
}

#[test]
fn merged_or_closed_change_is_not_reopened() {
    for flavour in BOTH {
        for (stage, state) in [
            (merged("m"), ForgeChangeState::Merged { commit: commit("m") }),
            (PullStage::Closed, ForgeChangeState::Closed),
        ] {
            let Scene { server, forge } = &Scene::new(flavour);
            server.put(BRANCH, "main", stage);
            assert_eq!(forge.open_change(&new()).unwrap().state, state);
            assert_eq!(forge.view_change(1).unwrap().state, state);
            assert_eq!(server.pulls().len(), 1);
        }
    }
}

#[test]
fn new_work_on_an_old_branch_is_a_new_change() {
    for flavour in BOTH {
        let Scene { server, forge } = &Scene::new(flavour);
        let old = server.put(BRANCH, "main", merged("m"));
        server.edit(old, |pull| pull.head = commit("old work"));
        let change = forge.open_change(&new()).unwrap();
        assert_eq!((change.number, change.state), (2, ForgeChangeState::Open));
    }
}

#[test]
fn refusal_quotes_the_forge() {
    let missing =
        || GitBackend { head: Box::new(|branch| (branch == "main").then(|| commit(branch))), ..GitBackend::default() };
    for (flavour, said) in [
        (Flavour::GitHub, "(422): Validation Failed; head: invalid"),
        (Flavour::GitLab, "(400): validate_branches: Source branch does not exist"),
    ] {
        let scene = Scene::of(flavour, missing(), ForgeClient::DEFAULT_TIMEOUT);
        let error = scene.forge.open_change(&new()).unwrap_err().to_string();
        assert!(error.ends_with(said), "{error}");
    }
}

#[test]
fn hostile_names_never_reach_a_forge() {
    for flavour in BOTH {
        let scene = Scene::new(flavour);
        for name in ["--force", "a b", "a\nb", "", "a..b"] {
            assert!(matches!(scene.forge.find_change(name, "main"), Err(ForgeError::BadBranch { .. })));
            assert!(matches!(scene.forge.find_change("x", name), Err(ForgeError::BadBranch { .. })));
        }
        assert!(matches!(
            scene.forge.open_change(&NewChange { head: "HEAD".to_owned(), ..new() }),
            Err(ForgeError::BadCommit { .. })
        ));
        assert!(scene.server.requests().is_empty());
        let strange = "ü/a&b=c#d%2e+e";
        scene.forge.open_change(&NewChange { branch: strange.to_owned(), ..new() }).unwrap();
        assert_eq!(number(scene.forge.find_change(strange, "main").unwrap()), Some(1));
    }
}

#[test]
fn forge_responses_are_validated() {
    let pull = |sha: &str, url: &str, branch: &str| {
        format!(
            r#"{{"number": 1, "html_url": "{url}", "state": "open", "merged_at": null, "merge_commit_sha": null,
            "head": {{"ref": "{branch}", "sha": "{sha}", "repo": {{"id": 1}}}},
            "base": {{"ref": "main", "sha": "{sha}", "repo": {{"id": 1}}}}}}"#
        )
    };
    let sha = commit("x");
    let cases = [
        (pull("--exec=x", "https://x/1", "x"), "it has an invalid commit"),
        (pull(&sha, "javascript:alert(1)", "x"), "it has an invalid address"),
        (pull(&sha, "https://x/\\u001b[31m", "x"), "it has an invalid address"),
        (pull(&sha, "https://x/1", "--force"), "it has an invalid branch name"),
    ];
    let scene = Scene::new(Flavour::GitHub);
    for (body, why) in cases {
        scene.server.fault("GET", Fault::Says { status: 200, headers: Vec::new(), body });
        let error = scene.forge.view_change(1).unwrap_err().to_string();
        assert!(error.ends_with(why), "{error}");
    }
}
