//! The place of work: in place, or in a worktree, wherever the project lies.

use crate::support::TestWorld;
use crate::support::git_project::GitProject;

/// Work that was begun in place lies there, and not in a worktree.
#[test]
fn task_begun_in_place_resumes_in_place_only_when_named() {
    let repo = GitProject::new("");
    let half = "cat > /dev/null; test -e half.txt && echo '<promise>COMPLETE</promise>' && exit; echo half > half.txt; \
                echo '<promise>BLOCKED</promise>'";
    repo.write_program("agent", half);
    let agent = ["--trust", "--agent", "command:agent"];
    let run = |words: &[&str]| repo.world.run(&[&["run"], words, &agent].concat());
    assert_eq!(run(&["Do it here"]).code, 4);
    repo.world.run_ok(&["answer", "T1", "continue"]);
    let left = "the ready tasks are skipped\n  left: T1  ready  Do it here: started in place; `windlass run --task T1 --agent command:agent --trust` resumes it there\n";
    for words in [&[][..], &["--workers", "2"]] {
        let ran = run(words);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, left), "no agent works in a person's own tree unasked: {ran}");
    }
    repo.add_task("In a worktree");
    assert!(run(&[]).stdout.contains("in a worktree, on windlass/t2-in-a-worktree from main"));
    assert_eq!(repo.show_task("T1")["state"], "ready");
    let ran = run(&["--task", "T1"]);
    assert_eq!((ran.code, repo.show_task("T1")["state"].as_str()), (0, Some("completed")), "{ran}");
    assert!(!ran.stdout.contains("in a worktree") && repo.world.path("half.txt").exists(), "{ran}");
}

/// Work in place needs nothing of git.
#[test]
fn run_in_place_completes_despite_broken_git_repository() {
    let world = TestWorld::empty();
    world.write(".git", "nonsense");
    let agent = "command:cat > /dev/null; echo '<promise>COMPLETE</promise>'";
    let ran = world.run(&["run", "Do it here", "--agent", agent]);
    assert_eq!(ran.code, 0, "{ran}");
}

/// Git has no directory for a project of which nothing is committed.
#[test]
fn uncommitted_project_directory_is_worked_on_in_worktree() {
    let repo = GitProject::new("");
    repo.write_program(
        "agent",
        "cat > /dev/null; pwd -P > where; echo x > work.txt; echo '<promise>COMPLETE</promise>'",
    );
    let project = repo.world.path("below/project");
    std::fs::create_dir_all(&project).unwrap();
    let windlass = |words: &[&str]| repo.world.run_in("below/project", words);
    assert_eq!(windlass(&["init"]).code, 0);
    assert_eq!(windlass(&["task", "add", "Work"]).code, 0);
    let ran = windlass(&["run", "--trust", "--agent", "command:agent"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(!project.join("work.txt").exists(), "{ran}");
    assert_eq!(repo.git(&["show", "windlass/t1-work:below/project/work.txt"]), "x");
    // An agent that removes it in its worktree does not get the person's own instead.
    repo.write_program("agent", "cat > /dev/null; rm -r \"$PWD\"; echo '<promise>COMPLETE</promise>'");
    windlass(&["task", "add", "More"]);
    windlass(&["run", "--trust", "--agent", "command:agent"]);
    assert!(project.join(".windlass").exists());
}

#[test]
fn agent_whose_script_is_elsewhere_is_not_refused_before_the_run() {
    let repo = GitProject::new("");
    repo.set_agent("cat > /dev/null; echo x > work.txt");
    for agent in ["command:bash agent", "command:sh no.sh || agent"] {
        let ran = repo.world.run(&["run", "Do it here", "--trust", "--agent", agent]);
        assert_eq!(ran.code, 0, "{agent}: {ran}");
    }
    repo.world.write("on-base.sh", "agent\n");
    repo.git(&["add", "on-base.sh"]);
    repo.git(&["commit", "-q", "-m", "Agent"]);
    repo.git(&["checkout", "-q", "-b", "before", "HEAD~1"]);
    repo.world.write(".windlass/config.yaml", "base_branch: main\n");
    repo.world.run_ok(&["task", "add", "In a worktree"]);
    let ran = repo.world.run(&["run", "--trust", "--agent", "command:sh on-base.sh"]);
    assert_eq!(ran.code, 0, "{ran}");
}
