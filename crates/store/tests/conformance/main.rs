//! The contract of every backend, as tests.
//!
//! A backend takes part by an implementation of [`Backend`] and a module with [`conformance!`]; the tests themselves do not
//! know which one they run against. `decided_outside` is SQLite without its own `execute_command`, so that the tests cover both
//! ways of executing a command.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod backends;
mod commits;
mod races;
mod reading;
#[path = "../scene/mod.rs"]
mod scene;
mod waiting;

macro_rules! tests {
    ($backend:ty: $($test:ident in $module:ident;)+) => {
        $(#[test] fn $test() { crate::$module::$test::<$backend>(); })+
    };
}

/// All of the tests, for one backend.
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
            positions_grow in reading;
            pages_add_up_to_the_whole in reading;
            filters_pick_by_type_task_and_session in reading;
            causes_are_positions_in_the_log in reading;
            sessions_and_hooks_are_in_the_history_of_their_task in reading;
            a_view_stays_as_it_is in reading;
            one_handle_may_look_twice_at_once in reading;
            what_is_there_is_not_waited_for in waiting;
            patience_ends in waiting;
            a_waiter_is_woken_by_an_append_and_by_nothing_else in waiting;
            many_writers_lose_and_double_nothing in races;
        }
    };
}

mod sqlite {
    conformance!(crate::backends::OnDisk);

    #[test]
    fn back_is_forth_reversed() {
        crate::reading::back_is_forth_reversed();
    }
}

mod memory {
    conformance!(crate::backends::InMemory);
}

mod decided_outside {
    conformance!(crate::backends::DecidedOutside);
}
