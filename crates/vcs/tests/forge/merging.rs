//! Merging: the commit that the caller names, or nothing.

use windlass_testkit::forge::{Fault, Flavour, PullStage, Refusal, commit};
use windlass_vcs::forge::{
    ForgeChangeState, ForgeClient, ForgeError, ForgeMergeMethod, ForgeMergeOutcome, MergeObstacle, RetryAdvice,
};

use crate::{BOTH, BRANCH, Scene, merged, new};

fn merge(forge: &ForgeClient) -> Result<ForgeMergeOutcome, ForgeError> {
    forge.merge_change(1, &commit(BRANCH), ForgeMergeMethod::Merge)
}

#[test]
fn named_commit_is_merged_once() {
    for flavour in BOTH {
        let scene = Scene::new(flavour);
        scene.forge.open_change(&new()).unwrap();
        let got = commit(&format!("squash {}", commit(BRANCH)));
        let first = scene.forge.merge_change(1, &commit(BRANCH), ForgeMergeMethod::Squash).unwrap();
        assert_eq!(first, Merging::Merged { commit: got.clone() });
        assert_eq!(scene.forge.look(1).unwrap().state, State::Merged { commit: got.clone() });
        assert_eq!(merge(&scene.forge).unwrap(), Merging::AlreadyMerged { commit: got, head: commit(BRANCH) });
        assert_eq!(scene.count("PUT"), 1);
    }
}

#[test]
fn a_branch_that_moved_is_not_merged() {
    for flavour in BOTH {
        let scene = Scene::new(flavour);
        scene.forge.open_change(&new()).unwrap();
        scene.server.edit(1, |pull| pull.head = commit("pushed since"));
        let stale = ForgeMergeOutcome::Stale { head: commit("pushed since") };
        assert_eq!(merge(&scene.forge).unwrap(), stale);
        assert_eq!(scene.count("PUT"), 0);
        // A push arrives between the check and the merge.
        scene.server.edit(1, |pull| pull.head = commit(BRANCH));
        scene.server.fault("GET", Fault::Push { number: 1, head: commit("pushed since") });
        assert_eq!(merge(&scene.forge).unwrap(), stale);
        assert_eq!(scene.count("PUT"), 1);
        assert_eq!(scene.server.pulls()[0].stage, PullStage::Open);
    }
}

#[test]
fn a_closed_change_is_not_merged() {
    for flavour in BOTH {
        let scene = Scene::new(flavour);
        scene.server.put(BRANCH, "main", PullStage::Closed);
        let seen = merge(&scene.forge).unwrap();
        assert!(matches!(seen, Merging::NotMergeable { obstacle: MergeObstacle::Person, .. }), "{seen:?}");
        assert_eq!(scene.count("PUT"), 0);
    }
}

#[test]
fn change_merged_concurrently_is_already_merged() {
    for flavour in BOTH {
        let scene = Scene::new(flavour);
        scene.forge.open_change(&new()).unwrap();
        // The server merges our own request first: we get the answer to the second one.
        scene.server.fault("PUT", Fault::Race);
        let got = commit(&format!("merge {}", commit(BRANCH)));
        assert_eq!(merge(&scene.forge).unwrap(), Merging::AlreadyMerged { commit: got, head: commit(BRANCH) });
    }
}

#[test]
fn merge_with_lost_answer_is_found_again() {
    for flavour in BOTH {
        for fault in [Fault::Mute, Fault::Cut] {
            let scene = Scene::new(flavour);
            scene.forge.open_change(&new()).unwrap();
            scene.server.fault("PUT", fault);
            assert_eq!(merge(&scene.forge).unwrap_err().retry(), Retry::After(None));
            assert!(matches!(merge(&scene.forge).unwrap(), Merging::AlreadyMerged { .. }));
            assert_eq!(scene.count("PUT"), 1);
        }
    }
}

#[test]
fn merge_of_another_head_names_it() {
    for flavour in BOTH {
        let scene = Scene::new(flavour);
        scene.server.put(BRANCH, "main", merged("m"));
        scene.server.edit(1, |pull| pull.head = commit("other work"));
        let expected = ForgeMergeOutcome::AlreadyMerged { commit: commit("m"), head: commit("other work") };
        assert_eq!(merge(&scene.forge).unwrap(), expected);
    }
}

#[track_caller]
fn refused(flavour: Flavour, refusal: Refusal, expected: MergeObstacle) {
    let scene = Scene::new(flavour);
    scene.forge.open_change(&new()).expect("it is opened");
    let message = refusal.message;
    scene.server.edit(1, |pull| pull.refusal = Some(refusal));
    match merge(&scene.forge).expect("it is answered") {
        ForgeMergeOutcome::NotMergeable { obstacle, why } => {
            assert_eq!(obstacle, expected, "{message}");
            assert!(why.contains(message), "{why}");
        }
        merging => panic!("{merging:?}"),
    }
    assert_eq!(scene.server.pulls()[0].stage, PullStage::Open);
}

#[test]
fn github_says_what_is_in_the_way() {
    for (status, message, state, expected) in [
        (405, "Pull Request is not mergeable", "dirty", MergeObstacle::Behind),
        (405, "Pull Request has merge conflicts", "unknown", MergeObstacle::Behind),
        (405, "Pull Request is not mergeable", "unknown", MergeObstacle::Pending),
        (405, "Base branch was modified. Review and try the merge again.", "clean", MergeObstacle::Pending),
        (405, "Required status check \"ci\" is expected.", "blocked", MergeObstacle::Pending),
        (
            405,
            "At least 1 approving review is required by reviewers with write access.",
            "blocked",
            MergeObstacle::Person,
        ),
        (405, "Pull Request is still a draft", "draft", MergeObstacle::Person),
        (405, "the branch is not up to date", "behind", MergeObstacle::Behind),
        (405, "Merge commits are not allowed on this repository.", "clean", MergeObstacle::Person),
    ] {
        refused(Flavour::GitHub, Refusal { status, message, state }, expected);
    }
}

#[test]
fn gitlab_says_what_is_in_the_way() {
    for (status, message, state, expected) in [
        (406, "Branch cannot be merged", "conflict", MergeObstacle::Behind),
        (422, "Branch cannot be merged", "conflict", MergeObstacle::Behind),
        (405, "405 Method Not Allowed", "need_rebase", MergeObstacle::Behind),
        (405, "405 Method Not Allowed", "ci_must_pass", MergeObstacle::Pending),
        (405, "405 Method Not Allowed", "ci_still_running", MergeObstacle::Pending),
        (405, "405 Method Not Allowed", "not_approved", MergeObstacle::Person),
        (405, "405 Method Not Allowed", "draft_status", MergeObstacle::Person),
        (405, "405 Method Not Allowed", "checking", MergeObstacle::Pending),
        (405, "405 Method Not Allowed", "jira_association_missing", MergeObstacle::Person),
    ] {
        refused(Flavour::GitLab, Refusal { status, message, state }, expected);
    }
}

#[test]
fn missing_merge_right_is_forbidden() {
    for (flavour, status) in [(Flavour::GitHub, 403), (Flavour::GitLab, 401)] {
        let scene = Scene::new(flavour);
        scene.forge.open_change(&new()).unwrap();
        let refusal = Refusal { status, message: "You are not allowed to.", state: "clean" };
        scene.server.edit(1, |pull| pull.refusal = Some(refusal));
        let error = merge(&scene.forge).unwrap_err();
        assert!(matches!(error, ForgeError::Forbidden { .. }), "{error}");
        assert_eq!(error.retry(), Retry::Never);
    }
}
