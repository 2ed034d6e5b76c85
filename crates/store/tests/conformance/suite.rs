//! The list of tests that every backend has to pass.

macro_rules! tests {
    ($backend:ty: $($test:ident in $module:ident;)+) => {
        $(#[test] fn $test() { crate::$module::$test::<$backend>(); })+
    };
}

/// Defines all conformance tests for one backend.
macro_rules! conformance {
    ($backend:ty) => {
        tests! { $backend:
            a_commit_is_all_or_nothing in commits;
            acknowledged_is_visible_to_others_and_after_reopening in commits;
            the_same_commit_never_counts_twice in commits;
            a_moved_scope_is_a_conflict in commits;
            another_task_is_no_conflict in commits;
            a_conflict_leaves_nothing_and_can_be_decided_anew in commits;
            a_refused_command_writes_nothing in commits;
            execute_is_decide_and_append in commits;
            positions_grow in event_reads;
            pages_add_up_to_the_whole in event_reads;
            filters_pick_by_type_task_and_session in event_reads;
            causes_are_positions_in_the_log in event_reads;
            sessions_and_hooks_are_in_the_history_of_their_task in event_reads;
            a_view_stays_as_it_is in event_reads;
            one_handle_may_look_twice_at_once in event_reads;
            what_is_there_is_not_waited_for in event_wait;
            patience_ends in event_wait;
            a_waiter_is_woken_by_an_append_and_by_nothing_else in event_wait;
            many_writers_lose_and_double_nothing in races;
        }
    };
}
