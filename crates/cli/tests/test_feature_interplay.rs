//! Interplay of two features, with agents that lie, die, amend, and break the work in their last turn

use crate::support::git_project::GitProject;

const DELIVERY_CONFIG: &str = "hooks: {before_submit: [create_pr], before_merge: [merge_pr]}\n";

/// A repository whose base is checked out nowhere, so that a hook may merge into it.
fn create_detached_project(config: &str) -> GitProject {
    let repo = GitProject::new(config);
    repo.git(&["switch", "-q", "-c", "desk"]);
    repo.world.run_ok(&["trust", "--yes"]);
    GitProject { world: repo.world.with_windlass() }
}

/// Commits of agents that no ref reaches, by their subjects. One that an agent has rewritten itself is called `Draft`, and
/// `stand-in` is a commit that is only there to look for conflicts.
fn find_lost_commits(repo: &GitProject) -> Vec<String> {
    let found = repo.git(&["fsck", "--no-reflogs", "--unreachable"]);
    let commits = found.lines().filter_map(|line| line.strip_prefix("unreachable commit "));
    let subject = |commit: &str| repo.git(&["log", "-1", "--format=%s", commit]);
    commits.map(subject).filter(|subject| !["Draft", "stand-in"].contains(&subject.as_str())).collect()
}

/// Hooks × worktrees: piped output after a passed gate leads to a turn that the gate judges, too.
#[test]
fn agent_that_breaks_tests_on_the_last_words_of_a_hook_is_sent_back() {
    let repo = create_detached_project(
        "hooks:
  stop: [{name: tests, command: 'grep -q good state.txt || { echo tests are red >&2; exit 2; }'}]
  post_iteration: [{name: lint, command: 'echo style: say more', pipe_output: true}]
  before_submit: [create_pr]
  before_merge: [merge_pr]\n",
    );
    repo.set_agent(
        "prompt=$(cat); case $prompt in *'are red'*) echo good again > state.txt ;; *'say more'*) echo broken > state.txt ;; \
         *) echo good > state.txt ;; esac; git add .; git commit -qm Work",
    );
    let ran = repo.add_task("Write it").world.run(&["run", "--agent", "command:agent"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(repo.show_file("main:state.txt"), "good again", "the last turn was judged, and is in the base: {ran}");
    assert_eq!(find_lost_commits(&repo), Vec::<String>::new(), "{ran}");
}

/// Rules of stop hooks × another configuration: work that waits for a gate is judged by the last turn of its agent.
#[test]
fn rules_judge_resumed_work_by_its_last_turn() {
    let config = "completion: promise
validation: [{type: command, name: tests_pass, config: {command: 'test -f work.txt'}}]
hooks:
  stop:
    - {name: tdd, rules: [tdd]}
    - {name: said, when: \"promise == 'COMPLETE'\", command: 'cat > $HOME/said; echo asked >> $HOME/asked'}
  before_submit: [create_pr]
  before_merge: [{name: ci, command: judge-of-ann}]\n";
    let repo = create_detached_project(config);
    repo.set_agent("echo turn >> $HOME/turns; echo work > work.txt; echo it works");
    let ran = repo.add_task("Write it").world.run(&["run", "--agent", "command:agent"]);
    assert_eq!(ran.code, 3, "{ran}");
    repo.world.write(".windlass/config.yaml", format!("# another\n{config}"));
    repo.write_program("judge-of-ann", "exit 0");
    let ran = repo.world.run(&["run", "--trust", "--agent", "command:agent"]);
    let beside = |name: &str| std::fs::read_to_string(repo.world.path(&format!("../home/{name}"))).unwrap();
    assert_eq!(
        (ran.code, beside("turns").as_str(), beside("asked").as_str()),
        (0, "turn\n", "asked\nasked\n"),
        "{ran}"
    );
    assert!(beside("said").contains("it works"), "{}", beside("said"));
}

/// Stop hooks × moved base: two tasks that are green by themselves and red together.
#[test]
fn work_that_is_red_on_the_newer_base_is_sent_back_before_the_merge() {
    let repo = create_detached_project(
        "hooks:
  stop: [{name: tests, command: 'test \"$(ls | grep -c part)\" -lt 2 || { echo too many parts >&2; exit 2; }'}]
  before_submit: [create_pr]
  before_merge: [merge_pr]\n",
    );
    repo.write_program(
        "agent",
        "prompt=$(cat); own=$WINDLASS_TASK_ID
case $prompt in
*'too many parts'*) git rm -q part-$own; echo $own > note-$own ;;
*) echo $own > part-$own; touch $HOME/$own; until test -e $HOME/T1 && test -e $HOME/T2; do :; done ;;
esac
git add .; git commit -qm Work; echo '<promise>COMPLETE</promise>'",
    );
    let ran = repo.add_task("One").add_task("Two").world.run(&["run", "--workers", "2", "--agent", "command:agent"]);
    assert_eq!(ran.code, 0, "{ran}");
    let files = repo.git(&["ls-tree", "--name-only", "main"]);
    let count = |kind: &str| files.lines().filter(|file| file.starts_with(kind)).count();
    assert_eq!((count("part-"), count("note-")), (1, 1), "{files}\n{ran}");
}

/// Workers × merge conflict: the slower agent gets the conflict, resolves it by rewriting its commit, and both are in the base.
#[test]
fn workers_that_change_the_same_line_both_end_up_in_the_base() {
    let repo = create_detached_project(DELIVERY_CONFIG);
    repo.write_program(
        "agent",
        "prompt=$(cat); own=$WINDLASS_TASK_ID
case $prompt in
*onflict*) git rebase -q main > /dev/null 2>&1; printf 'one\\ntwo\\nthree\\nT1\\nT2\\n' > a.txt; git add .
  git -c core.editor=: rebase --continue > /dev/null 2>&1 ;;
*) echo $own >> a.txt; git commit -qam Draft; touch $HOME/$own
  until test -e $HOME/T1 && test -e $HOME/T2; do :; done ;;
esac
echo '<promise>COMPLETE</promise>'",
    );
    let ran = repo.add_task("One").add_task("Two").world.run(&["run", "--workers", "2", "--agent", "command:agent"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(repo.show_file("main:a.txt"), "one\ntwo\nthree\nT1\nT2", "{ran}");
    assert_eq!(find_lost_commits(&repo), Vec::<String>::new(), "{ran}");
    assert_eq!(repo.git(&["branch", "--list", "windlass/*"]), "", "{ran}");
}

/// Stacked changes × reopen × amend: the task below is reopened, its commit is rewritten, and both are merged in order.
#[test]
fn change_below_that_was_reopened_and_amended_is_merged_first() {
    let repo = create_detached_project("hooks: {before_submit: [create_pr]}\n");
    repo.git(&["switch", "-q", "main"]);
    repo.set_agent("own=$WINDLASS_TASK_ID; echo $own > $own.txt; git add .; git commit -qm Draft");
    repo.add_task("Below").world.run_ok(&["task", "add", "Above", "--depends", "T1"]);
    assert_eq!(repo.world.run(&["run", "--agent", "command:agent"]).code, 0);
    repo.world.run_ok(&["task", "reopen", "T1", "--force", "--reason", "say it louder"]);
    assert!(repo.world.expect_failure(&["change", "merge", "T2"]).contains("T1 is ready"));
    repo.set_agent("cat > $HOME/prompt; echo LOUD > T1.txt; git commit -qa --amend -m Loud");
    let ran = repo.world.run(&["run", "--task", "T1", "--agent", "command:agent"]);
    assert_eq!(ran.code, 0, "{ran}");
    let prompt = std::fs::read_to_string(repo.world.path("../home/prompt")).unwrap();
    assert!(prompt.contains("say it louder"), "{prompt}");
    for id in ["T1", "T2"] {
        repo.world.run_ok(&["change", "merge", id]);
    }
    assert_eq!((repo.show_file("main:T1.txt"), repo.show_file("main:T2.txt")), ("LOUD".into(), "T2".into()));
}

/// Dead agents × worktrees × stop hooks: files of a dead agent's turn are there for its next turn, and are judged.
#[test]
fn agent_that_dies_with_uncommitted_work_finds_it_again() {
    let repo = create_detached_project(
        "limits: {failure_span: 1ms}\nhooks: {stop: [{name: whole, command: 'test $(wc -l < half.txt) = 3 || { echo not whole >&2; exit 2; }'}]}\n",
    );
    repo.write_program(
        "agent",
        "cat > /dev/null; echo part >> half.txt; test $(wc -l < half.txt) != 1 || kill -9 $$; echo '<promise>COMPLETE</promise>'",
    );
    let ran = repo.add_task("Write it").world.run(&["run", "--agent", "command:agent"]);
    assert!(ran.code == 0 && ran.stdout.contains("ended by signal 9") && ran.stdout.contains("whole blocks"), "{ran}");
    assert_eq!(repo.show_file("windlass/t1-write-it:half.txt"), "part\npart\npart", "{ran}");
    repo.world.run_printed_commands(&ran.stdout);
}

/// Worktrees × nested runs: no agent works in the person's own tree unasked.
#[test]
fn agent_in_a_worktree_starts_no_goal_in_the_project() {
    let repo = create_detached_project("");
    let nested = "windlass run \"Beside it\" --agent command:agent 2>&1";
    repo.set_agent(&format!("cat > /dev/null; echo work > work.txt; {nested}"));
    let ran = repo.add_task("One").world.run(&["run", "--agent", "command:agent"]);
    assert_eq!(ran.code, 0, "{ran}");
    let hint = "hint: `windlass task add 'Beside it'` leaves the goal for a run that works on it in a worktree";
    assert!(ran.stdout.contains(hint), "{ran}");
    assert_eq!(repo.world.events_of_type("task_created").len(), 1, "{ran}");
}

/// Worktrees × nested runs × work begun in place: it goes on there if a person says so.
#[test]
fn agent_in_a_worktree_resumes_no_work_in_the_project() {
    let repo = create_detached_project("");
    repo.write_program("begins", "cat > /dev/null; echo half > half.txt");
    let ran = repo.world.run(&["run", "Mend it", "--max-iterations", "1", "--agent", "command:begins"]);
    assert_eq!(ran.code, 3, "{ran}");
    repo.write_program("beside", "cat > /dev/null; echo beside > beside.txt; echo '<promise>COMPLETE</promise>'");
    repo.set_agent("cat > /dev/null; echo work > work.txt; windlass run --task T1 --agent command:beside 2>&1");
    repo.world.run_ok(&["task", "add", "One"]);
    let ran = repo.world.run(&["run", "--task", "T2", "--agent", "command:agent"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("hint: leave it to a person: `windlass run --task T1 "), "{ran}");
    assert!(!repo.world.path("beside.txt").exists(), "{ran}");
    assert_eq!(repo.show_task("T1")["state"], "needs_continuation", "{ran}");
}

#[test]
fn agent_in_a_worktree_resumes_no_session_in_the_project() {
    let repo = create_detached_project("");
    repo.write_program("dies", "cat > /dev/null; kill -9 $(cat $HOME/run)");
    let dying = "echo $$ > $HOME/run; exec windlass run \"Mend it\" --session mend --agent command:dies";
    repo.world.run_command(repo.world.program("sh").args(["-c", dying]));
    repo.write_program("dies", "cat > /dev/null; echo beside > beside.txt; echo '<promise>COMPLETE</promise>'");
    repo.set_agent("cat > /dev/null; echo work > work.txt; windlass run --session mend --agent command:dies 2>&1");
    let ran = repo.add_task("One").world.run(&["run", "--task", "T2", "--agent", "command:agent"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("hint: leave it to a person: `windlass run --session mend "), "{ran}");
    assert!(!repo.world.path("beside.txt").exists(), "{ran}");
}
