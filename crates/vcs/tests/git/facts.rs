//! Facts that git is asked for once.

use std::cell::Cell;

use windlass_process::ProgramSpec;
use windlass_vcs::git::{GitClient, GitRepository, KnownFacts, RemoteName};

use crate::scene::Scene;

/// Returns the number of git calls.
fn count_calls(scene: &Scene, known: &KnownFacts, act: impl FnOnce(&GitClient<'_>)) -> usize {
    let calls = Cell::new(0);
    let run = |spec: &ProgramSpec| {
        calls.set(calls.get() + 1);
        scene.run(spec)
    };
    let repository = GitRepository::discover(&scene.root).unwrap().unwrap();
    act(&GitClient::new(repository, &run, &scene.environment()).with_known_facts(known));
    calls.get()
}

#[test]
fn commits_are_asked_about_once() {
    let scene = Scene::new();
    let base = scene.base().commit;
    let (_, head) = scene.work("t1", "b", "1");
    let known = KnownFacts::default();
    let ask = |git: &GitClient<'_>| {
        assert_eq!(git.merge_base(&base, &head).unwrap(), base);
        assert!(!git.has_all_changes(&base, &head).unwrap());
        assert!(git.has_all_changes(&head, &base).unwrap());
    };
    assert_eq!(count_calls(&scene, &known, ask), 3, "the merge base and two trees");
    assert_eq!(count_calls(&scene, &known, ask), 0);
    assert_eq!(count_calls(&scene, &KnownFacts::default(), ask), 3);
}

#[test]
fn configuration_is_read_again_after_it_was_forgotten() {
    let scene = Scene::with_remote();
    let (known, origin) = (KnownFacts::default(), RemoteName::new("origin").unwrap());
    let ask = |git: &GitClient<'_>| drop(git.remote_address(&origin).unwrap());
    assert_eq!(count_calls(&scene, &known, ask), 1);
    assert_eq!(count_calls(&scene, &known, ask), 0);
    scene.git(&scene.root, &["remote", "set-url", "origin", "https://example.com/moved.git"]);
    known.forget_changeable_facts();
    let check = |git: &GitClient<'_>| assert_eq!(git.address(&origin).unwrap(), "https://example.com/moved.git");
    assert_eq!(count_calls(&scene, &known, check), 1);
}
