//! Names of branches: each one is accepted by git, and unambiguous.

use windlass_process::ProgramExit;
use windlass_vcs::git::{BranchName, ExistingBranch, WorktreeRequest};

use crate::scene::{Scene, branch, write};

/// Git accepts every name that we accept: every pair of odd pieces, at every position.
#[test]
fn what_we_take_git_takes() {
    let scene = Scene::empty();
    let pieces =
        ["a", ".", "..", "/", "-", "@", "{", "@{", ".lock", "lock", "~", " ", "\\", "\u{7f}", "\u{e9}", "HEAD", "refs"];
    let names = pieces
        .iter()
        .flat_map(|one| pieces.iter().flat_map(move |two| [format!("{one}{two}"), format!("x{one}/{two}y")]));
    let taken: Vec<_> = names.filter_map(|name| BranchName::new(&name).ok()).collect();
    assert!(taken.len() > 50, "{}", taken.len());
    for name in taken {
        let (exit, _, _) = scene.try_git(&scene.root, &["check-ref-format", "--branch", name.as_str()]);
        assert_eq!(exit, Exit::Code(0), "{name}");
    }
}

#[test]
fn odd_names_are_names_and_nothing_else() {
    let scene = Scene::new();
    let start = [scene.base().commit];
    for (number, name) in
        ["windlass/$(touch x)".replace(' ', "_"), "windlass/;x".into(), "windlass/'\"".into(), "windlass/ü|&".into()]
            .iter()
            .enumerate()
    {
        let (name, path) = (branch(name), scene.place(&format!("--t{number}")));
        let wanted = WorktreeRequest { branch: &name, path: &path, start: &start, existing: ExistingBranch::IfOurs };
        let opened = scene.with(|git| git.open_worktree(wanted)).unwrap_or_else(|error| panic!("{name}: {error}"));
        write(&path, "b", "1");
        scene.with(|git| git.commit_all(&opened.worktree, "work")).unwrap().expect("work");
        assert_eq!(scene.with(|git| git.tip(&name)).unwrap(), Some(scene.head(&path)));
    }
    assert!(!scene.root.join("x").exists());
}

/// Git does not take a tag or a file of the same name for the branch.
#[test]
fn the_branch_is_what_is_meant() {
    let scene = Scene::new();
    let start = scene.base().commit;
    let other = scene.commit(&scene.root, "another");
    scene.git(&scene.root, &["tag", "windlass/t1", other.as_str()]);
    scene.git(&scene.root, &["tag", "main", start.as_str()]);
    assert_eq!(scene.base().commit, other);
    let opened = scene.try_open("t1", std::slice::from_ref(&start)).unwrap();
    assert_eq!(scene.head(&opened.worktree.path), start);
    write(&opened.worktree.path, "windlass/t1", "1");
    let done = scene.with(|git| git.commit_all(&opened.worktree, "work")).unwrap().expect("work");
    scene.git(&opened.worktree.path, &["checkout", "--quiet", "--detach", start.as_str()]);
    scene.with(|git| git.commit_all(&opened.worktree, "nothing")).unwrap();
    assert_eq!(scene.git(&opened.worktree.path, &["branch", "--show-current"]), "windlass/t1");
    assert_eq!(scene.with(|git| git.work(&opened.worktree.branch, &start)).unwrap().head, done);
}
