//! Facts that Windlass queries from git only once.

use std::cell::Cell;

use windlass_process::ProgramSpec;
use windlass_vcs::git::{GitClient, GitRepository, KnownFacts, RemoteName};

use crate::fixture::GitFixture;

/// Returns the number of git calls.
fn count_calls(fixture: &GitFixture, known: &KnownFacts, action: impl FnOnce(&GitClient<'_>)) -> usize {
    let calls = Cell::new(0);
    let run = |spec: &ProgramSpec| {
        calls.set(calls.get() + 1);
        fixture.run_spec(spec)
    };
    let repository = GitRepository::discover(&fixture.root).unwrap().unwrap();
    action(&GitClient::new(repository, &run, &fixture.hostile_environment()).with_known_facts(known));
    calls.get()
}

#[test]
fn commits_are_asked_about_once() {
    let fixture = GitFixture::new();
    let base = fixture.fetch_base_branch().commit;
    let (_, head) = fixture.commit_work("t1", "b", "1");
    let known = KnownFacts::default();
    let query = |git: &GitClient<'_>| {
        assert_eq!(git.merge_base(&base, &head).unwrap(), base);
        assert!(!git.has_all_changes(&base, &head).unwrap());
        assert!(git.has_all_changes(&head, &base).unwrap());
    };
    assert_eq!(count_calls(&fixture, &known, query), 3, "the merge base and two trees");
    assert_eq!(count_calls(&fixture, &known, query), 0);
    assert_eq!(count_calls(&fixture, &KnownFacts::default(), query), 3);
}

#[test]
fn configuration_is_read_again_after_it_was_forgotten() {
    let fixture = GitFixture::with_remote();
    let (known, origin) = (KnownFacts::default(), RemoteName::new("origin").unwrap());
    let query = |git: &GitClient<'_>| drop(git.remote_address(&origin).unwrap());
    assert_eq!(count_calls(&fixture, &known, query), 1);
    assert_eq!(count_calls(&fixture, &known, query), 0);
    fixture.run_git(&fixture.root, &["remote", "set-url", "origin", "https://example.com/moved.git"]);
    known.forget_changeable_facts();
    let check = |git: &GitClient<'_>| assert_eq!(git.remote_address(&origin).unwrap(), "https://example.com/moved.git");
    assert_eq!(count_calls(&fixture, &known, check), 1);
}
