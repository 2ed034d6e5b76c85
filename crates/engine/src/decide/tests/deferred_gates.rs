//! Finished work at a gate whose hook could not run. The hooks are those of `pipeline.rs`.

use super::pipeline::pipeline_rules;
use super::script::{ScriptProject, check_with};
use crate::delivery::DeliveryGate;
use crate::session::NextAction;
use crate::task::TaskState;

/// A session whose work is done and whose hook `pr` cannot reach its forge.
const UNREACHABLE_FORGE: &str = "add one
    session a task=T1 grounds=worktrees
    workspace a
    turn-done a.1 says=complete
    work a
    hook pr out=failure message=unreachable";

/// A session whose work is submitted and whose hook `review` has no gatekeeper.
const MISSING_GATEKEEPER: &str = "add one
    session a task=T1 grounds=worktrees
    workspace a
    turn-done a.1 says=complete
    work a
    hook tests
    hook review out=failure message=no-reviewer";

#[test]
fn next_session_resumes_at_stalled_gate_without_new_turn() {
    check_with(
        pipeline_rules(&["pr"]),
        &format!(
            "{UNREACHABLE_FORGE}\n--\nsession b task=T1 grounds=worktrees\nworkspace b\nwork b\nhook pr opens=http://x/1"
        ),
        "T1 session_started
         T1 task_claimed w1 epoch 2
         T1 task_started
         T1 workspace_opened
         T1 submission_started
         T1 hook_started pr 1 by w1
         T1 hook_finished pr Success
         T1 change_opened http://x/1
         T1 task_submitted
         T1 task_completed
         T1 session_ended Completed",
    );
}

#[test]
fn submitted_work_resumes_at_merge_gate_without_resubmission() {
    check_with(
        pipeline_rules(&["tests", "told", "review"]),
        &format!(
            "{}\n--\nsession b task=T1 grounds=worktrees\nworkspace b\nwork b\nhook review",
            MISSING_GATEKEEPER.replace("hook tests", "hook tests\nhook told")
        ),
        "T1 session_started
         T1 task_claimed w1 epoch 2
         T1 task_started
         T1 workspace_opened
         T1 merge_started
         T1 hook_started review 1 by w1
         T1 hook_finished review Success
         T1 task_completed
         T1 session_ended Completed",
    );
    let script = format!("{MISSING_GATEKEEPER}\nsession b task=T1 grounds=worktrees\nworkspace b\nwork b");
    assert_eq!(
        ScriptProject::after(pipeline_rules(&["tests", "review"]), &script).find_task("T1").state,
        TaskState::Submitted
    );
}

/// Another configuration may have other hooks before this one.
#[test]
fn under_another_configuration_it_is_submitted_again() {
    for (other, gate) in
        [("config=hooks:{x:[]}", DeliveryGate::BeforeMerge), ("agent=command:false", DeliveryGate::BeforeSubmit)]
    {
        let script = format!("{MISSING_GATEKEEPER}\nsession b task=T1 grounds=worktrees {other}\nworkspace b");
        let mut project = ScriptProject::after(pipeline_rules(&["tests", "review"]), &script);
        assert_eq!(project.run_script("work b"), ["T1 submission_started"], "{other}");
        assert_eq!(project.find_task("T1").stalled.unwrap().gate, DeliveryGate::BeforeSubmit);
        project.run_script("hook tests\nhook review out=failure");
        let stalled = project.find_task("T1").stalled.unwrap();
        assert_eq!((stalled.gate, stalled.agent.as_str()), (gate, "command:true"), "a did the work");
    }
}

/// The stop hooks of another configuration have not seen the work.
#[test]
fn under_another_configuration_the_stop_hooks_judge_first() {
    let stalled = UNREACHABLE_FORGE.replace("says=complete", "says=complete\nhook stop");
    for (other, judged) in [("", "pr"), ("config=hooks:{x:[]}", "stop"), ("agent=command:false", "stop")] {
        let script = format!("{stalled}\nsession b task=T1 grounds=worktrees {other}\nworkspace b\nwork b");
        let mut project = ScriptProject::after(pipeline_rules(&["stop", "pr"]), &script);
        assert_eq!(
            project.run_script(&format!("hook {judged}"))[0],
            format!("T1 hook_started {judged} 1 by w1"),
            "{other}"
        );
    }
    // The hooks of another agent have judged it meanwhile, but not those of its own agent.
    let script = MISSING_GATEKEEPER.replace("says=complete", "says=complete\nhook stop");
    let other = "session b task=T1 grounds=worktrees agent=command:false\nworkspace b\nwork b\nhook stop\nhook tests";
    let again = "hook review out=failure\nsession c task=T1 grounds=worktrees\nworkspace c\nwork c";
    let mut project =
        ScriptProject::after(pipeline_rules(&["stop", "tests", "review"]), &format!("{script}\n{other}\n{again}"));
    assert_eq!(project.run_script("hook stop")[0], "T1 hook_started stop 1 by w1");
}

/// The session ends with the reason each time, and does not run the gate again.
#[test]
fn stalled_gate_failing_again_leaves_task_for_next_run() {
    let mut project = ScriptProject::after(pipeline_rules(&["pr"]), UNREACHABLE_FORGE);
    for name in ["b", "c"] {
        let script = format!("session {name} work=graph grounds=worktrees\nworkspace {name}\nwork {name}");
        let answered = project.run_script(&format!("{script}\n--\nhook pr out=failure message=unreachable"));
        assert_eq!(
            answered,
            [
                "T1 hook_started pr 1 by w1",
                "T1 hook_finished pr Failure",
                "T1 pipeline_failed pr Failed: GiveUp 1/3",
                "T1 task_needs_continuation",
                "T1 session_ended Limit, not finished, and left for the next run: T1"
            ]
        );
        let task = project.find_task("T1");
        assert_eq!((task.state, task.findings, task.stalled.is_some()), (TaskState::NeedsContinuation, vec![], true));
    }
}

#[test]
fn changed_work_starts_an_iteration() {
    let turn = ["T1 iteration_started b.1", "T1 turn_started b.1 to work"];
    for work in ["work b head=def", "work b commits=0", "unfit b markers"] {
        let script = format!("{UNREACHABLE_FORGE}\nsession b task=T1 grounds=worktrees\nworkspace b");
        let mut project = ScriptProject::after(pipeline_rules(&["pr"]), &script);
        assert_eq!(project.find_session("b").next_action(), NextAction::Work);
        assert_eq!(project.run_script(work), turn, "{work}");
        assert_eq!(project.find_task("T1").stalled, None);
    }
}

#[test]
fn changed_task_is_not_resumed_at_gate() {
    for other in [
        "reword T1 two",
        "describe T1 at length",
        "retype T1 docs",
        "answer T1 continue",
        "block T1\nanswer T1 continue please",
        "link T1 depends_on T2\ncomplete T2",
        "fail T1\nreopen T1",
    ] {
        let project = ScriptProject::after(pipeline_rules(&["pr"]), &format!("{UNREACHABLE_FORGE}\nadd zero\n{other}"));
        assert_eq!(project.find_task("T1").stalled, None, "{other}");
    }
    let project = ScriptProject::after(pipeline_rules(&["pr"]), &format!("{UNREACHABLE_FORGE}\nrelabel T1 labels=x"));
    assert!(project.find_task("T1").stalled.is_some(), "labels are no work");
}

/// A person's message before the session continues is for the next agent.
#[test]
fn message_from_person_starts_turn_before_stalled_gate() {
    let script = format!("{UNREACHABLE_FORGE}\nsession b task=T1 grounds=worktrees\nsay b wait\n--");
    let mut project = ScriptProject::after(pipeline_rules(&["pr"]), &script);
    assert_eq!(
        project.run_script("workspace b"),
        ["T1 workspace_opened", "T1 iteration_started b.1", "T1 turn_started b.1 to work wait"]
    );
    assert_eq!(project.find_task("T1").stalled, None);
    // The same applies while the session checks the work before its submission.
    let script = format!("{UNREACHABLE_FORGE}\nsession b task=T1 grounds=worktrees\nworkspace b\nsay b wait");
    for go_on in ["work b", "advance b"] {
        let mut project = ScriptProject::after(pipeline_rules(&["pr"]), &script);
        assert_eq!(project.run_script(go_on), ["T1 iteration_started b.1", "T1 turn_started b.1 to work wait"]);
    }
}

/// A rebase onto a moved base does not change the work: no new turn is necessary.
#[test]
fn work_moved_by_hook_is_resubmitted_without_new_turn() {
    let script = UNREACHABLE_FORGE.replace("hook pr out", "hook tests moves=def\nhook pr out");
    let begun = "session b task=T1 grounds=worktrees\nworkspace b";
    for (head, next) in [("def", "T1 submission_started"), ("abc", "T1 iteration_started b.1")] {
        let mut project = ScriptProject::after(pipeline_rules(&["tests", "pr"]), &format!("{script}\n{begun}"));
        assert_eq!(project.run_script(&format!("work b head={head}"))[0], next);
    }
}

/// A session must submit work on a newer base again, even after a stop in between.
#[test]
fn work_moved_before_merge_is_submitted_again_after_stop() {
    let script = format!("{MISSING_GATEKEEPER}\nsession b task=T1 grounds=worktrees\nworkspace b\nwork b\nhook review");
    let script = format!("{script}\nbegin merge\nstop b\nfinish merge out=continue moves=def");
    let mut project = ScriptProject::after(pipeline_rules(&["tests", "review", "merge"]), &script);
    assert_eq!(project.find_task("T1").state, TaskState::NeedsContinuation);
    project.run_script("session c task=T1 grounds=worktrees\nworkspace c");
    assert_eq!(project.run_script("work c head=def"), ["T1 submission_started"]);
}

#[test]
fn deferred_gate_survives_crash_at_any_moment() {
    let steps = ["session b task=T1 grounds=worktrees", "workspace b", "work b", "begin review"];
    for crashed in 0..=steps.len() {
        let mut project = ScriptProject::after(pipeline_rules(&["tests", "review"]), MISSING_GATEKEEPER);
        for (at, step) in steps.iter().enumerate() {
            if at == crashed {
                project.simulate_crash();
            }
            project.run_script(step);
        }
        project.simulate_crash();
        let answered = project.run_script("resume b by=w2\nrecover review by=w2\nfinish review by=w2");
        assert_eq!(answered.last().unwrap(), "T1 session_ended Completed", "{answered:?}");
    }
}

/// A stop of the session during the gate loses no work.
#[test]
fn stalled_gate_is_preserved_when_session_stops_during_it() {
    let script = format!(
        "{MISSING_GATEKEEPER}\nsession b task=T1 grounds=worktrees\nworkspace b\nwork b\nbegin review\nstop b\nfinish review out=cancelled"
    );
    let mut project = ScriptProject::after(pipeline_rules(&["tests", "review"]), &script);
    project.run_script("session c task=T1 grounds=worktrees\nworkspace c");
    assert_eq!(project.run_script("work c"), ["T1 merge_started"]);
}

/// A cancelled hook has given no verdict, independent of its output and its failure policy.
#[test]
fn work_on_its_way_goes_on_there_after_a_cancelled_session() {
    let done = "add one\nsession a task=T1 grounds=worktrees\nworkspace a\nturn-done a.1 says=complete\nwork a";
    let again = "session b task=T1 grounds=worktrees\nworkspace b";
    for (way, next) in [
        ("begin tests\nstop a\nfinish tests out=cancelled tells=half", "T1 submission_started"),
        ("stop a", "T1 submission_started"),
        ("hook tests\nbegin told\nstop a\nfinish told", "T1 merge_started"),
        ("hook tests\nhook told\nbegin review\nstop a\nfinish review out=cancelled", "T1 merge_started"),
    ] {
        let script = format!("{done}\n{way}\n{again}");
        let mut project = ScriptProject::after(pipeline_rules(&["tests", "told", "review"]), &script);
        assert_eq!(project.run_script("work b")[0], next, "{way}");
    }
    let refused = format!("{done}\nhook tests\nhook told\nbegin review\nstop a\nfinish review out=block");
    let project = ScriptProject::after(pipeline_rules(&["tests", "told", "review"]), &refused);
    assert_eq!(project.find_task("T1").stalled, None, "a hook has said no");
}

/// The end of the session names a hook that did not pass, across any number of sessions.
#[test]
fn waiver_of_stalled_work_is_told_by_the_session_that_completes_it() {
    let script = UNREACHABLE_FORGE.replace("worktrees\n", "worktrees retries=0 limit=complete\n");
    let script = script.replace("work a", "hook stop out=block\nwork a");
    let script = format!("{script}\nsession b task=T1 grounds=worktrees\nworkspace b\nwork b");
    let mut project = ScriptProject::after(pipeline_rules(&["stop", "pr"]), &script);
    let lines = project.run_script("hook pr");
    let waived = "`stop` blocks, and may not send the agent back; `on_retry_limit: complete` lets it pass";
    assert_eq!(lines.last().unwrap(), &format!("T1 session_ended Completed, {waived}"));
}

#[test]
fn work_that_is_moved_before_its_gate_is_asked_again_is_submitted_again() {
    for (there, stalled) in [(&["pr"][..], UNREACHABLE_FORGE), (&["tests", "review"], MISSING_GATEKEEPER)] {
        let script = format!("{stalled}\nsession b task=T1 grounds=worktrees\nworkspace b");
        let mut project = ScriptProject::after(pipeline_rules(there), &script);
        assert_eq!(project.run_script("work b head=def moved=yes"), ["T1 submission_started"]);
        let stalled = project.find_task("T1").stalled.unwrap();
        assert_eq!((stalled.head.as_str(), stalled.gate, stalled.rejudged), ("def", DeliveryGate::BeforeSubmit, true));
    }
    let script = UNREACHABLE_FORGE.replace("work a", "hook stop\nwork a");
    let script = format!("{script}\nsession b task=T1 grounds=worktrees\nworkspace b\nwork b head=def moved=yes");
    let mut project = ScriptProject::after(pipeline_rules(&["stop", "pr"]), &script);
    let lines = project.run_script("hook stop out=block");
    assert!(lines.contains(&"T1 pipeline_failed stop Blocked: Remediate 1/3".to_owned()), "{lines:?}");
}

#[test]
fn work_that_a_step_moves_after_a_hook_has_judged_it_is_judged_again() {
    let begun =
        "add one\nsession a task=T1 grounds=worktrees\nworkspace a\nturn-done a.1 says=complete\nwork a\nhook tests";
    let mut project = ScriptProject::after(pipeline_rules(&["tests", "pr", "review"]), begun);
    let lines = project.run_script("hook pr moves=def message=moved");
    assert_eq!(lines.last().unwrap(), "T1 pipeline_failed pr Moved: Again 1/10");
    assert_eq!(project.run_script("work a head=def moved=yes"), ["T1 submission_started"]);

    let mut project = ScriptProject::after(pipeline_rules(&["tests", "merge", "review"]), begun);
    let lines = project.run_script("hook merge moves=def message=moved");
    assert!(lines.contains(&"T1 hook_finished review Skip".to_owned()), "{lines:?}");
    assert_eq!(lines.last().unwrap(), "T1 pipeline_failed merge Moved: Again 1/10");

    let mut project = ScriptProject::after(pipeline_rules(&["pr", "tests"]), &begun.replace("\nhook tests", ""));
    project.run_script("hook pr moves=def message=moved");
    let lines = project.run_script("hook tests");
    assert_eq!(lines.last().unwrap(), "T1 session_ended Completed", "what is moved first is judged by all others");
}

/// The result of the work is kept although another caller completes the task.
#[test]
fn claimed_result_is_preserved_when_next_session_completes_task() {
    let script = UNREACHABLE_FORGE.replace("turn-done", "epoch=1 run=a.1 complete T1 forty two\nturn-done");
    let script = format!("{script}\nsession b task=T1 grounds=worktrees\nworkspace b\nwork b\nhook pr");
    let project = ScriptProject::after(pipeline_rules(&["pr"]), &script);
    assert_eq!(project.find_task("T1").result.as_deref(), Some("forty two"));
}

#[test]
fn work_in_place_is_not_resumed_at_gate() {
    let script = "add one\nsession a task=T1\nturn-done a.1 says=complete\nhook pr out=failure message=unreachable";
    let project = ScriptProject::after(pipeline_rules(&["pr"]), script);
    assert_eq!(project.find_task("T1").stalled, None);
    assert_eq!(project.find_task("T1").findings.len(), 1);
    let project =
        ScriptProject::after(pipeline_rules(&["pr"]), &script.replace("out=failure", "out=failure unstarted=1"));
    assert_eq!(project.find_task("T1").findings, [], "what could not be started has nothing to say to an agent");
    let project = ScriptProject::after(pipeline_rules(&["pr"]), &format!("{UNREACHABLE_FORGE}\nsession b task=T1"));
    assert!(matches!(project.find_session("b").next_action(), NextAction::Turn(_)));
}

#[test]
fn unstarted_gatekeeper_is_recorded() {
    let script = MISSING_GATEKEEPER.replace("out=failure", "out=failure unstarted=1");
    let unstarted = |script: &str| {
        ScriptProject::after(pipeline_rules(&["tests", "review"]), script).find_task("T1").stalled.unwrap().unstarted
    };
    assert!(unstarted(&script));
    assert!(!unstarted(MISSING_GATEKEEPER));
}
