//! Branch names: git accepts each of them, and each of them is unambiguous.

use windlass_process::ProgramExit;
use windlass_vcs::git::{BranchName, ExistingBranch, WorktreeRequest};

use crate::fixture::{GitFixture, branch_name, write_file};

/// Git accepts every name that Windlass accepts: every pair of odd pieces, at every position.
#[test]
fn accepted_branch_names_are_valid_for_git() {
    let fixture = GitFixture::without_commits();
    let pieces =
        ["a", ".", "..", "/", "-", "@", "{", "@{", ".lock", "lock", "~", " ", "\\", "\u{7f}", "\u{e9}", "HEAD", "refs"];
    let names = pieces
        .iter()
        .flat_map(|one| pieces.iter().flat_map(move |two| [format!("{one}{two}"), format!("x{one}/{two}y")]));
    let accepted: Vec<_> = names.filter_map(|name| BranchName::new(&name).ok()).collect();
    assert!(accepted.len() > 50, "{}", accepted.len());
    for name in accepted {
        let (exit, _, _) = fixture.try_run_git(&fixture.root, &["check-ref-format", "--branch", name.as_str()]);
        assert_eq!(exit, ProgramExit::Code(0), "{name}");
    }
}

#[test]
fn odd_names_are_names_and_nothing_else() {
    let fixture = GitFixture::new();
    let start = [fixture.fetch_base_branch().commit];
    for (number, name) in
        ["windlass/$(touch x)".replace(' ', "_"), "windlass/;x".into(), "windlass/'\"".into(), "windlass/ü|&".into()]
            .iter()
            .enumerate()
    {
        let (name, path) = (branch_name(name), fixture.worktree_path(&format!("--t{number}")));
        let request = WorktreeRequest { branch: &name, path: &path, start: &start, existing: ExistingBranch::IfOurs };
        let opened =
            fixture.with_client(|git| git.open_worktree(request)).unwrap_or_else(|error| panic!("{name}: {error}"));
        write_file(&path, "b", "1");
        fixture.with_client(|git| git.commit_all(&opened.worktree, "work")).unwrap().expect("work");
        assert_eq!(fixture.with_client(|git| git.branch_tip(&name)).unwrap(), Some(fixture.read_head(&path)));
    }
    assert!(!fixture.root.join("x").exists());
}

/// A tag or a file with the name of the branch does not hide the branch.
#[test]
fn branch_wins_over_tag_or_file_with_same_name() {
    let fixture = GitFixture::new();
    let start = fixture.fetch_base_branch().commit;
    let other = fixture.commit_files(&fixture.root, "another");
    fixture.run_git(&fixture.root, &["tag", "windlass/t1", other.as_str()]);
    fixture.run_git(&fixture.root, &["tag", "main", start.as_str()]);
    assert_eq!(fixture.fetch_base_branch().commit, other);
    let opened = fixture.try_open_worktree("t1", std::slice::from_ref(&start)).unwrap();
    assert_eq!(fixture.read_head(&opened.worktree.path), start);
    write_file(&opened.worktree.path, "windlass/t1", "1");
    let done = fixture.with_client(|git| git.commit_all(&opened.worktree, "work")).unwrap().expect("work");
    fixture.run_git(&opened.worktree.path, &["checkout", "--quiet", "--detach", start.as_str()]);
    fixture.with_client(|git| git.commit_all(&opened.worktree, "nothing")).unwrap();
    assert_eq!(fixture.run_git(&opened.worktree.path, &["branch", "--show-current"]), "windlass/t1");
    assert_eq!(fixture.with_client(|git| git.read_branch_work(&opened.worktree.branch, &start)).unwrap().head, done);
}
