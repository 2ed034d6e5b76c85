//! Merges on a forge: only of the commit that the caller names.

use windlass_testkit::forge::{ForgeFault, ForgeFlavour, MergeRefusal, PullStage, commit};
use windlass_vcs::forge::{
    ForgeChangeState, ForgeClient, ForgeError, ForgeMergeMethod, ForgeMergeOutcome, MergeObstacle, RetryAdvice,
};

use crate::{BOTH_FLAVOURS, BRANCH, ForgeFixture, merged_stage, new_change};

fn merge_change(forge: &ForgeClient) -> Result<ForgeMergeOutcome, ForgeError> {
    forge.merge_change(1, &commit(BRANCH), ForgeMergeMethod::Merge)
}

#[test]
fn named_commit_is_merged_once() {
    for flavour in BOTH_FLAVOURS {
        let fixture = ForgeFixture::new(flavour);
        fixture.forge.open_change(&new_change()).unwrap();
        let squash_commit = commit(&format!("squash {}", commit(BRANCH)));
        let first = fixture.forge.merge_change(1, &commit(BRANCH), ForgeMergeMethod::Squash).unwrap();
        assert_eq!(first, ForgeMergeOutcome::Merged { commit: squash_commit.clone() });
        assert_eq!(
            fixture.forge.view_change(1).unwrap().state,
            ForgeChangeState::Merged { commit: squash_commit.clone() }
        );
        assert_eq!(
            merge_change(&fixture.forge).unwrap(),
            ForgeMergeOutcome::AlreadyMerged { commit: squash_commit, head: commit(BRANCH) }
        );
        assert_eq!(fixture.count_requests("PUT"), 1);
    }
}

#[test]
fn change_with_moved_branch_is_reported_stale() {
    for flavour in BOTH_FLAVOURS {
        let fixture = ForgeFixture::new(flavour);
        fixture.forge.open_change(&new_change()).unwrap();
        fixture.server.edit(1, |pull| pull.head = commit("pushed since"));
        let stale = ForgeMergeOutcome::Stale { head: commit("pushed since") };
        assert_eq!(merge_change(&fixture.forge).unwrap(), stale);
        assert_eq!(fixture.count_requests("PUT"), 0);
        // Another user pushes between the check and the merge.
        fixture.server.edit(1, |pull| pull.head = commit(BRANCH));
        fixture.server.fault("GET", ForgeFault::Push { number: 1, head: commit("pushed since") });
        assert_eq!(merge_change(&fixture.forge).unwrap(), stale);
        assert_eq!(fixture.count_requests("PUT"), 1);
        assert_eq!(fixture.server.pulls()[0].stage, PullStage::Open);
    }
}

#[test]
fn closed_change_is_reported_not_mergeable() {
    for flavour in BOTH_FLAVOURS {
        let fixture = ForgeFixture::new(flavour);
        fixture.server.add_change(BRANCH, "main", PullStage::Closed);
        let seen = merge_change(&fixture.forge).unwrap();
        assert!(matches!(seen, ForgeMergeOutcome::NotMergeable { obstacle: MergeObstacle::Person, .. }), "{seen:?}");
        assert_eq!(fixture.count_requests("PUT"), 0);
    }
}

#[test]
fn change_merged_concurrently_is_already_merged() {
    for flavour in BOTH_FLAVOURS {
        let fixture = ForgeFixture::new(flavour);
        fixture.forge.open_change(&new_change()).unwrap();
        // The server merges the first request. The client receives the answer to the second one.
        fixture.server.fault("PUT", ForgeFault::Race);
        let squash_commit = commit(&format!("merge {}", commit(BRANCH)));
        assert_eq!(
            merge_change(&fixture.forge).unwrap(),
            ForgeMergeOutcome::AlreadyMerged { commit: squash_commit, head: commit(BRANCH) }
        );
    }
}

#[test]
fn merge_with_lost_answer_is_found_again() {
    for flavour in BOTH_FLAVOURS {
        for fault in [ForgeFault::LostAnswer, ForgeFault::CutAnswer] {
            let fixture = ForgeFixture::new(flavour);
            fixture.forge.open_change(&new_change()).unwrap();
            fixture.server.fault("PUT", fault);
            assert_eq!(merge_change(&fixture.forge).unwrap_err().retry_advice(), RetryAdvice::After(None));
            assert!(matches!(merge_change(&fixture.forge).unwrap(), ForgeMergeOutcome::AlreadyMerged { .. }));
            assert_eq!(fixture.count_requests("PUT"), 1);
        }
    }
}

#[test]
fn merge_of_another_head_names_it() {
    for flavour in BOTH_FLAVOURS {
        let fixture = ForgeFixture::new(flavour);
        fixture.server.add_change(BRANCH, "main", merged_stage("m"));
        fixture.server.edit(1, |pull| pull.head = commit("other work"));
        let expected = ForgeMergeOutcome::AlreadyMerged { commit: commit("m"), head: commit("other work") };
        assert_eq!(merge_change(&fixture.forge).unwrap(), expected);
    }
}

#[track_caller]
fn check_refused_merge(flavour: ForgeFlavour, refusal: MergeRefusal, expected: MergeObstacle) {
    let fixture = ForgeFixture::new(flavour);
    fixture.forge.open_change(&new_change()).expect("it is opened");
    let message = refusal.message;
    fixture.server.edit(1, |pull| pull.refusal = Some(refusal));
    match merge_change(&fixture.forge).expect("it is answered") {
        ForgeMergeOutcome::NotMergeable { obstacle, why } => {
            assert_eq!(obstacle, expected, "{message}");
            assert!(why.contains(message), "{why}");
        }
        merging => panic!("{merging:?}"),
    }
    assert_eq!(fixture.server.pulls()[0].stage, PullStage::Open);
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
        check_refused_merge(ForgeFlavour::GitHub, MergeRefusal { status, message, state }, expected);
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
        check_refused_merge(ForgeFlavour::GitLab, MergeRefusal { status, message, state }, expected);
    }
}

#[test]
fn missing_merge_right_is_forbidden() {
    for (flavour, status) in [(ForgeFlavour::GitHub, 403), (ForgeFlavour::GitLab, 401)] {
        let fixture = ForgeFixture::new(flavour);
        fixture.forge.open_change(&new_change()).unwrap();
        let refusal = MergeRefusal { status, message: "You are not allowed to.", state: "clean" };
        fixture.server.edit(1, |pull| pull.refusal = Some(refusal));
        let error = merge_change(&fixture.forge).unwrap_err();
        assert!(matches!(error, ForgeError::Forbidden { .. }), "{error}");
        assert_eq!(error.retry_advice(), RetryAdvice::Never);
    }
}
