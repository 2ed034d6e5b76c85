//! Dependencies between tasks, and their effects on the waiting tasks.

use std::fmt::Write;

use super::script::{ScriptProject, check, default_rules};
use crate::task::TaskState;
use crate::view::StateView;

#[test]
fn task_without_dependencies_is_ready_at_once() {
    check(
        "add one
         add two after=T1",
        "T1 task_created
         T1 task_ready
         T2 task_created
         T2 dependency_added depends_on T1",
    );
}

#[test]
fn task_depending_on_completed_task_is_ready_at_once() {
    check(
        "add one
         complete T1
         --
         add two after=T1",
        "T2 task_created
         T2 dependency_added depends_on T1
         T2 task_ready",
    );
}

#[test]
fn waiting_task_cannot_be_started_completed_or_claimed() {
    check(
        "add one
         add two
         add three after=T1,T2
         --
         start T3
         complete T3
         claim T3 by=w1 for=60s
         complete T1
         start T3",
        "! T3 waits for T1 and T2
         ! T3 waits for T1 and T2
         ! T3 waits for T1 and T2
         T1 task_completed
         ! T3 waits for T2",
    );
}

#[test]
fn two_edges_between_same_tasks_count_once() {
    check(
        "add one
         add two after=T1,T1
         link T1 blocks T2
         --
         complete T1",
        "T1 task_completed
         T2 task_ready
         T2 dependency_satisfied T1",
    );
    check(
        "add one
         add two after=T1
         link T1 blocks T2
         --
         unlink T2 depends_on T1
         unlink T1 blocks T2",
        "T2 dependency_removed T1
         T1 dependency_removed T2
         T2 task_ready",
    );
}

#[test]
fn dependency_edge_makes_ready_task_wait_until_removed() {
    check(
        "add one
         add two
         --
         link T2 depends_on T1
         unlink T2 depends_on T1
         unlink T2 depends_on T1
         link T2 references T1",
        "T2 dependency_added depends_on T1
         T2 task_waiting
         T2 dependency_removed T1
         T2 task_ready
         ! there is no edge T2 depends_on T1
         T2 dependency_added references T1",
    );
}

#[test]
fn duplicate_dependency_edge_records_no_event() {
    check("add one\nadd two after=T1\n--\nlink T2 depends_on T1", "");
}

#[test]
fn dependency_cycle_is_refused_with_its_full_path() {
    check(
        "add one
         add two after=T1
         add three after=T2
         add four after=T3
         --
         link T1 depends_on T4
         link T4 blocks T1
         link T1 depends_on T2
         link T1 spawned_by T4",
        "! cannot add the edge: it would close a cycle: T1 → T4 → T3 → T2 → T1
         ! cannot add the edge: it would close a cycle: T1 → T4 → T3 → T2 → T1
         ! cannot add the edge: it would close a cycle: T1 → T2 → T1
         T1 dependency_added spawned_by T4",
    );
}

#[test]
fn task_cannot_wait_for_itself() {
    check(
        "add one\n--\nlink T1 depends_on T1\nlink T1 blocks T1\nadd two after=T2",
        "! cannot link T1 to itself
         ! cannot link T1 to itself
         ! there is no task T2",
    );
}

#[test]
fn task_with_waiting_dependents_cannot_be_deleted_alone() {
    check(
        "add one
         add two after=T1
         add three after=T2
         --
         delete T1
         delete T3
         delete T2
         delete T1
         delete T1
         add four after=T1
         link T1 references T2",
        "! cannot delete T1: it is needed by T2
         T3 task_deleted
         T2 task_deleted
         T1 task_deleted
         ! cannot delete T1: it is deleted
         ! cannot link T4 to T1: T1 is deleted
         ! cannot link T2 to T1: T1 is deleted",
    );
}

#[test]
fn completed_task_with_dependents_can_be_deleted() {
    check("add one\nadd two after=T1\ncomplete T1\n--\ndelete T1", "T1 task_deleted");
    let project = ScriptProject::after(default_rules(), "add one\nadd two after=T1\ncomplete T1\ndelete T1");
    assert_eq!((project.find_task("T2").state, project.find_task("T2").open_dependencies), (TaskState::Ready, 0));
}

#[test]
fn cascading_deletion_deletes_dependents_first() {
    check(
        "add one
         add two after=T1
         add three after=T1,T2
         add four
         --
         delete T1 cascade",
        "T3 task_deleted
         T2 task_deleted
         T1 task_deleted",
    );
}

#[test]
fn forced_deletion_blocks_waiting_dependents() {
    check(
        "add one
         add two
         add three after=T1,T2
         --
         delete T1 block
         complete T2
         unblock T3",
        "T3 task_blocked by T1
         T1 task_deleted
         T2 task_completed
         T3 task_unblocked
         T3 task_ready",
    );
}

/// No task waits for a completed one.
#[test]
fn forced_deletion_of_completed_task_leaves_dependents_unblocked() {
    check(
        "add one
         add two after=T1
         add three
         add four after=T1,T3
         complete T1
         --
         delete T1 block
         complete T3",
        "T1 task_deleted
         T3 task_completed
         T4 task_ready
         T4 dependency_satisfied T3",
    );
}

#[test]
fn failed_task_blocks_dependents_until_it_is_reopened() {
    check(
        "add one
         add two after=T1
         add three after=T2
         --
         fail T1
         unblock T2
         reopen T1
         complete T1",
        "T1 task_failed
         T2 task_blocked by T1
         T2 task_unblocked
         T2 task_blocked by T1
         T1 task_reopened from failed
         T1 task_ready
         T2 task_unblocked
         T1 feedback_queued
         T1 task_completed
         T2 task_ready
         T2 dependency_satisfied T1",
    );
}

#[test]
fn completing_a_failed_task_by_force_frees_those_who_wait() {
    check(
        "add one
         add two
         add three after=T1,T2
         fail T1
         --
         complete T1
         forced complete T1
         complete T2",
        "! cannot complete T1: it is failed, and that is possible only from ready, active, submitted or needs_continuation
         T1 task_completed (forced)
         T3 task_unblocked (forced)
         T2 task_completed
         T3 task_ready
         T3 dependency_satisfied T2",
    );
}

#[test]
fn waiter_of_two_failed_tasks_stays_blocked_by_other() {
    check(
        "add one
         add two
         add three after=T1,T2
         fail T1
         fail T2
         --
         reopen T1
         forced complete T2",
        "T1 task_reopened from failed
         T1 task_ready
         T3 task_unblocked
         T3 task_blocked by T2
         T1 feedback_queued
         T2 task_completed (forced)
         T3 task_unblocked (forced)",
    );
}

#[test]
fn forced_completion_keeps_waiter_blocked_by_other_failure() {
    check(
        "add one
         add two
         add three after=T1,T2
         fail T1
         fail T2
         --
         forced complete T1
         reopen T2",
        "T1 task_completed (forced)
         T3 task_unblocked (forced)
         T3 task_blocked by T2 (forced)
         T2 task_reopened from failed
         T2 task_ready
         T3 task_unblocked
         T2 feedback_queued",
    );
}

#[test]
fn task_linked_to_failed_task_is_blocked_until_unlinked() {
    check(
        "add one
         fail T1
         --
         add two after=T1
         unlink T2 depends_on T1
         link T1 blocks T2",
        "T2 task_created
         T2 dependency_added depends_on T1
         T2 task_blocked by T1
         T2 dependency_removed T1
         T2 task_unblocked
         T2 task_ready
         T1 dependency_added blocks T2
         T2 task_blocked by T1",
    );
}

#[test]
fn task_blocked_by_deletion_is_unblocked_by_relinking_restored_dependency() {
    check(
        "add one
         add two after=T1
         delete T1 block
         forced reopen T1
         complete T1
         --
         link T2 depends_on T1",
        "T2 dependency_added depends_on T1
         T2 task_unblocked
         T2 task_ready",
    );
}

#[test]
fn second_link_to_failed_task_records_only_edge() {
    check(
        "add one
         add two after=T1
         start T1
         fail T1
         --
         link T1 blocks T2",
        "T1 dependency_added blocks T2",
    );
}

#[test]
fn reopening_a_completed_task_makes_others_wait_again() {
    check(
        "add one
         add two after=T1
         complete T1
         --
         reopen T1
         forced reopen T1",
        "! cannot reopen T1: it is completed, and that is possible only from failed
         T1 task_reopened from completed (forced)
         T1 task_ready (forced)
         T2 task_waiting (forced)
         T1 feedback_queued",
    );
}

#[test]
fn forced_start_or_reopen_clears_block_of_task() {
    let project = ScriptProject::after(default_rules(), "add one\nblock T1 no key\nforced start T1");
    assert_eq!((project.find_task("T1").state, project.find_task("T1").blocked), (TaskState::Active, None));
    let project = ScriptProject::after(default_rules(), "add one\nblock T1 no key\ndelete T1\nforced reopen T1");
    assert_eq!((project.find_task("T1").state, project.find_task("T1").blocked), (TaskState::Ready, None));
}

#[test]
fn thousand_dependents_become_ready_in_one_commit() {
    let mut script = "add hub labels=agent\n".to_owned();
    for number in 0..1000 {
        writeln!(script, "add spoke {number} after=T1").unwrap();
    }
    let mut project = ScriptProject::after(default_rules(), &script);
    let answered = project.run_script("complete T1");
    assert_eq!(answered.iter().filter(|line| line.ends_with("task_ready")).count(), 1001, "and the review");
    assert_eq!(answered.iter().filter(|line| line.ends_with("dependency_satisfied T1")).count(), 1000);
    assert!(!answered.iter().any(|line| line.contains("error")));
    assert!(project.memory.tasks().all(|task| task.state != TaskState::Created));
    assert_eq!(project.memory.next_claimable(None).unwrap().map(|(_, id)| id), Some("T2".parse().unwrap()));
}

#[test]
fn task_that_needs_continuation_waits_for_new_dependency() {
    check(
        "add one
         add two
         start T2
         link T2 depends_on T1
         --
         continue T2 not there yet
         claim T2 by=w1 for=60s
         complete T1
         claim T2 by=w2 for=60s",
        "T2 task_needs_continuation
         T2 task_waiting
         ! T2 waits for T1
         T1 task_completed
         T2 task_ready
         T2 dependency_satisfied T1
         T2 task_claimed w2 epoch 1
         T2 task_started",
    );
}
