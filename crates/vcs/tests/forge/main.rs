//! Changes on a local test forge that behaves like GitHub and GitLab.

mod faults;
mod merges;
mod tokens;

use std::time::Duration;

use windlass_process::Environment;
use windlass_testkit::forge::{self as testkit, ForgeFault, ForgeFlavour, GitBackend, PullStage, TOKEN, commit};
use windlass_vcs::forge::{
    ForgeChange, ForgeChangeState, ForgeClient, ForgeError, ForgeOptions, ForgeProject, ForgeToken, ForgeVendor,
    NewChange,
};

const BOTH_FLAVOURS: [ForgeFlavour; 2] = [ForgeFlavour::GitHub, ForgeFlavour::GitLab];
const BRANCH: &str = "windlass/t7-fix";

/// A forge with a client for it.
struct ForgeFixture {
    server: testkit::Forge,
    forge: ForgeClient,
}

impl ForgeFixture {
    fn new(flavour: ForgeFlavour) -> Self {
        Self::with_backend(flavour, GitBackend::default(), ForgeClient::DEFAULT_TIMEOUT)
    }

    fn with_backend(flavour: ForgeFlavour, backend: GitBackend, timeout: Duration) -> Self {
        let project = match flavour {
            ForgeFlavour::GitHub => "o/r",
            ForgeFlavour::GitLab => "a/b/c.d",
        };
        let server = testkit::Forge::start(flavour, project, backend).expect("a free port");
        let remote_project = forge_project(&server, flavour, project);
        let forge =
            ForgeClient::new(remote_project.clone(), test_token(&remote_project, TOKEN), &Environment::new(), timeout);
        Self { server, forge }
    }

    /// Returns the number of requests with an HTTP method.
    fn count_requests(&self, method: &str) -> usize {
        self.server.requests().iter().filter(|request| request.method == method).count()
    }
}

fn forge_project(server: &testkit::Forge, flavour: ForgeFlavour, project: &str) -> ForgeProject {
    let kind = match flavour {
        ForgeFlavour::GitHub => ForgeVendor::GitHub,
        ForgeFlavour::GitLab => ForgeVendor::GitLab,
    };
    let settings = ForgeOptions { kind: Some(kind), api: Some(server.api()), project: None };
    let remote = format!("git@127.0.0.1:{project}.git");
    ForgeProject::from_remote(&remote, &settings).expect("it can be read").expect("it is a forge")
}

fn test_token(remote_project: &ForgeProject, token: &str) -> ForgeToken {
    let environment = ["GH_ENTERPRISE_TOKEN", "GITLAB_TOKEN"].map(|name| (name.into(), token.into())).to_vec();
    ForgeToken::find_token(remote_project, &environment, |_| panic!("no program is needed")).expect("there is one")
}

fn new_change() -> NewChange {
    NewChange {
        branch: BRANCH.to_owned(),
        base: "main".to_owned(),
        head: commit(BRANCH),
        title: "Fix the login".to_owned(),
        body: "It was broken.\n\n/merge\n".to_owned(),
    }
}

fn merged_stage(text: &str) -> PullStage {
    PullStage::Merged { commit: commit(text) }
}

fn change_number(found: Option<ForgeChange>) -> Option<u64> {
    found.map(|change| change.number)
}

#[test]
fn change_opened_twice_is_created_once() {
    for flavour in BOTH_FLAVOURS {
        let ForgeFixture { server, forge } = &ForgeFixture::new(flavour);
        assert_eq!(forge.find_change(BRANCH, "main").unwrap(), None);
        let change = forge.open_change(&new_change()).unwrap();
        let place = if flavour == ForgeFlavour::GitHub { "o/r/pull/1" } else { "a/b/c.d/-/merge_requests/1" };
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
        assert_eq!(forge.open_change(&new_change()).unwrap(), change);
        assert_eq!(forge.find_change(BRANCH, "main").unwrap().as_ref(), Some(&change));
        assert_eq!(forge.view_change(1).unwrap(), change);
        assert_eq!(forge.find_change(BRANCH, "next").unwrap(), None, "another base");
        assert_eq!(server.pulls().len(), 1);
    }
}

#[test]
fn change_title_and_body_are_sanitized_and_length_limited() {
    for flavour in BOTH_FLAVOURS {
        let ForgeFixture { server, forge } = &ForgeFixture::new(flavour);
        let title = format!("Fix\r\nthe \u{1b}[31mlogin \"quoted\" {}", "ä".repeat(300));
        let body = format!("a\0b\n/merge\n{}", "€".repeat(70_000));
        forge.open_change(&NewChange { title, body, ..new_change() }).unwrap();
        let pull = server.pulls().remove(0);
        assert!(pull.title.starts_with("Fix the [31mlogin \"quoted\" ä"), "{}", pull.title);
        assert!(pull.body.starts_with(if flavour == ForgeFlavour::GitLab {
            "ab\n\\/merge\n€"
        } else {
            "ab\n/merge\n€"
        }));
        assert!(pull.body.chars().count() <= 65_536 && pull.title.chars().count() <= 256);
    }
}

#[test]
fn open_change_is_found_among_the_newest_and_the_newest_one_otherwise() {
    for flavour in BOTH_FLAVOURS {
        let ForgeFixture { server, forge } = &ForgeFixture::new(flavour);
        for _ in 0..25 {
            server.add_change(BRANCH, "main", PullStage::Closed);
        }
        let open = server.add_change(BRANCH, "main", PullStage::Open);
        for _ in 0..5 {
            server.add_change(BRANCH, "main", PullStage::Closed);
        }
        assert_eq!(change_number(forge.find_change(BRANCH, "main").unwrap()), Some(open));
        server.edit(open, |pull| pull.stage = PullStage::Closed);
        assert_eq!(change_number(forge.find_change(BRANCH, "main").unwrap()), Some(31), "the newest otherwise");
    }
}

#[test]
fn changes_of_forks_are_not_ours() {
    for flavour in BOTH_FLAVOURS {
        let ForgeFixture { server, forge } = &ForgeFixture::new(flavour);
        let theirs = server.add_change(BRANCH, "main", PullStage::Closed);
        server.edit(theirs, |pull| pull.is_from_fork = true);
        assert_eq!(forge.find_change(BRANCH, "main").unwrap(), None);
    }
}

#[test]
fn merged_or_closed_change_is_not_reopened() {
    for flavour in BOTH_FLAVOURS {
        for (stage, state) in [
            (merged_stage("m"), ForgeChangeState::Merged { commit: commit("m") }),
            (PullStage::Closed, ForgeChangeState::Closed),
        ] {
            let ForgeFixture { server, forge } = &ForgeFixture::new(flavour);
            server.add_change(BRANCH, "main", stage);
            assert_eq!(forge.open_change(&new_change()).unwrap().state, state);
            assert_eq!(forge.view_change(1).unwrap().state, state);
            assert_eq!(server.pulls().len(), 1);
        }
    }
}

#[test]
fn new_work_on_an_old_branch_is_a_new_change() {
    for flavour in BOTH_FLAVOURS {
        let ForgeFixture { server, forge } = &ForgeFixture::new(flavour);
        let old = server.add_change(BRANCH, "main", merged_stage("m"));
        server.edit(old, |pull| pull.head = commit("old work"));
        let change = forge.open_change(&new_change()).unwrap();
        assert_eq!((change.number, change.state), (2, ForgeChangeState::Open));
    }
}

#[test]
fn refusal_quotes_the_forge() {
    let missing =
        || GitBackend { head: Box::new(|branch| (branch == "main").then(|| commit(branch))), ..GitBackend::default() };
    for (flavour, said) in [
        (ForgeFlavour::GitHub, "(422): Validation Failed; head: invalid"),
        (ForgeFlavour::GitLab, "(400): validate_branches: Source branch does not exist"),
    ] {
        let fixture = ForgeFixture::with_backend(flavour, missing(), ForgeClient::DEFAULT_TIMEOUT);
        let error = fixture.forge.open_change(&new_change()).unwrap_err().to_string();
        assert!(error.ends_with(said), "{error}");
    }
}

#[test]
fn hostile_names_never_reach_a_forge() {
    for flavour in BOTH_FLAVOURS {
        let fixture = ForgeFixture::new(flavour);
        for name in ["--force", "a b", "a\nb", "", "a..b"] {
            assert!(matches!(fixture.forge.find_change(name, "main"), Err(ForgeError::BadBranch { .. })));
            assert!(matches!(fixture.forge.find_change("x", name), Err(ForgeError::BadBranch { .. })));
        }
        assert!(matches!(
            fixture.forge.open_change(&NewChange { head: "HEAD".to_owned(), ..new_change() }),
            Err(ForgeError::BadCommit { .. })
        ));
        assert!(fixture.server.requests().is_empty());
        let strange = "ü/a&b=c#d%2e+e";
        fixture.forge.open_change(&NewChange { branch: strange.to_owned(), ..new_change() }).unwrap();
        assert_eq!(change_number(fixture.forge.find_change(strange, "main").unwrap()), Some(1));
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
    let fixture = ForgeFixture::new(ForgeFlavour::GitHub);
    for (body, why) in cases {
        fixture.server.fault("GET", ForgeFault::FixedAnswer { status: 200, headers: Vec::new(), body });
        let error = fixture.forge.view_change(1).unwrap_err().to_string();
        assert!(error.ends_with(why), "{error}");
    }
}
