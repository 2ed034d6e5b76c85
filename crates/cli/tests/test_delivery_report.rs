//! Tasks that end with a report, and without a change.

use std::fs;

use crate::support::git_project::GitProject;

/// Works on the first task, and reviews it in the second one.
const REVIEWING_AGENT: &str = "prompt=$(cat)\n\
    case $prompt in *'You review the work on T1'*) echo \"$prompt\" > \"$OLDPROMPT\"; cat work.txt; echo 'It is fine.';;\n\
    *) echo work > work.txt;; esac";

#[test]
fn review_of_an_agents_task_reports_about_its_change() {
    let repo = GitProject::new("hooks:\n  before_submit: [rebase_on_main, create_pr]\n");
    let prompt = repo.world.path("prompt.txt");
    repo.set_agent(&REVIEWING_AGENT.replace("$OLDPROMPT", &prompt.display().to_string()));
    repo.world.run_ok(&["task", "add", "Write it", "--label", "agent"]);
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("create_pr skipped: a report has no change"), "{ran}");
    let review = repo.show_task("T2");
    assert_eq!((&review["state"], &review["result"]), (&"completed".into(), &"work\nIt is fine.".into()), "{review}");
    assert_eq!(review["report"]["reviews"], "T1");
    let shown = repo.world.run_ok(&["task", "show", "T2"]);
    assert!(
        shown.contains("a report about the change of T1") && shown.ends_with("result\n\nwork\nIt is fine.\n"),
        "{shown}"
    );
    let completed = repo.events_of_type("task_completed");
    assert_eq!(completed.last().unwrap()["data"]["result"], "work\nIt is fine.");
    let prompt = fs::read_to_string(prompt).unwrap();
    for told in ["asks for a report, not for a change", "the branch `windlass/t1-write-it`", "`git diff main...HEAD`"] {
        assert!(prompt.contains(told), "{told}\n{prompt}");
    }
    assert_eq!(repo.world.json_lines(&["change", "list"]).len(), 1);
    // The checkout of the report is gone, and the change can be merged.
    assert_eq!(fs::read_dir(repo.world.path(".windlass/worktrees")).unwrap().count(), 1);
    assert!(repo.git(&["branch", "--list", "windlass/t2*"]).is_empty());
    assert!(repo.world.run_ok(&["change", "merge", "T1", "--trust"]).contains("merged into main"));
}

#[test]
fn changes_beside_a_report_are_told_and_not_merged() {
    let repo = GitProject::new("task_types:\n  audit: {result: report}\n");
    repo.set_agent("echo x > kept.txt; git add .; git commit -q -m Kept; echo y > loose.txt; echo 'Three leaks.'");
    repo.world.run_ok(&["task", "add", "Look for leaks", "--type", "audit"]);
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    let commit = repo.git(&["rev-parse", "windlass/t1-look-for-leaks"]);
    let told = format!(
        "T1 ends with a report, so what the agent changed is not merged: uncommitted in \
         .windlass/worktrees/t1-look-for-leaks: loose.txt; committed on windlass/t1-look-for-leaks: {} (Kept)\n",
        &commit[..10]
    );
    assert!(ran.stdout.contains(&told), "{ran}");
    assert_eq!(repo.show_task("T1")["result"], "Three leaks.");
    assert!(repo.world.json_lines(&["change", "list"]).is_empty());
    assert_eq!(repo.show_file("windlass/t1-look-for-leaks:kept.txt"), "x");
    assert!(repo.world.path(".windlass/worktrees/t1-look-for-leaks/loose.txt").is_file());
}

#[test]
fn commits_beside_a_report_are_told_on_whatever_branch_they_are() {
    let fixes = "git checkout -q -b fixes; echo x > fix.txt; git add .; git commit -q -m 'Fix it'; echo Done.";
    for agent in [fixes.to_owned(), format!("{fixes}; git checkout -q -"), format!("{fixes}; git checkout -q --detach")]
    {
        let repo = GitProject::new("task_types:\n  audit: {result: report}\n");
        repo.set_agent(&agent);
        repo.world.run_ok(&["task", "add", "Look for leaks", "--type", "audit"]);
        let ran = repo.run_ready_tasks();
        assert_eq!(ran.code, 0, "{ran}");
        let commit = repo.git(&["rev-parse", "fixes"]);
        let told = format!("what the agent changed is not merged: committed on fixes: {} (Fix it)\n", &commit[..10]);
        assert!(ran.stdout.contains(&told), "{agent}\n{ran}");
    }
}

#[test]
fn report_whose_worktree_has_no_reflog_says_what_is_unknown() {
    let repo = GitProject::new("task_types:\n  audit: {result: report}\n");
    repo.set_agent("echo y > loose.txt; git reflog expire --expire=now --all; echo Done.");
    repo.world.run_ok(&["task", "add", "Look for leaks", "--type", "audit"]);
    let ran = repo.run_ready_tasks();
    assert_eq!(ran.code, 0, "{ran}");
    for told in [": loose.txt; ", "what it committed on other branches is unknown: "] {
        assert!(ran.stdout.contains(told), "{told}\n{ran}");
    }
}
