//! Every screen on a small and on a usual terminal.

use crossterm::event::KeyCode;

use super::TestScreen;
use crate::event::{LiveUpdate, TopEvent};

const SIZES: [(u16, u16); 2] = [(60, 20), (100, 30)];

/// Draws a screen in both sizes, after some keys.
#[track_caller]
fn check_screen(name: &str, prepare: impl Fn(&mut TestScreen)) {
    for size in SIZES {
        let mut screen = TestScreen::start(size);
        prepare(&mut screen);
        insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), screen.draw());
    }
}

#[test]
fn now_screen_shows_questions_work_and_next_tasks() {
    check_screen("now", |_| {});
}

#[test]
fn task_list_shows_states_and_waits() {
    check_screen("tasks", |screen| screen.type_text("2"));
}

#[test]
fn wide_task_list_shows_selected_task_beside_it() {
    let mut screen = TestScreen::start((160, 24));
    screen.type_text("2j");
    insta::assert_snapshot!("tasks_160x24", screen.draw());
}

#[test]
fn task_page_draws_graph_around_task() {
    check_screen("task", |screen| {
        screen.type_text("2G");
        screen.press(KeyCode::Enter);
    });
}

#[test]
fn session_list_shows_newest_first() {
    check_screen("sessions", |screen| screen.type_text("5333"));
}

#[test]
fn session_page_groups_timeline_by_iteration() {
    check_screen("session", |screen| {
        screen.type_text("jj");
        screen.press(KeyCode::Enter);
    });
}

#[test]
fn session_page_with_turn_shows_live_text() {
    for size in [(60, 20), (100, 30), (160, 24)] {
        let mut screen = TestScreen::start(size);
        screen.type_text("jj");
        screen.press(KeyCode::Enter);
        let name = "fix-the-login-3757e17e".to_owned();
        screen.apply(TopEvent::Live(LiveUpdate::TurnStarted(name.clone())));
        let lines = vec!["I look at the form first.".to_owned(), "$ grep -rn login src".to_owned()];
        screen.apply(TopEvent::Live(LiveUpdate::Lines(name, lines)));
        insta::assert_snapshot!(format!("live_{}x{}", size.0, size.1), screen.draw());
    }
}

#[test]
fn why_page_shows_facts_with_evidence() {
    check_screen("why", |screen| {
        screen.type_text("wjjjjjj ");
    });
}

#[test]
fn change_page_shows_checks_and_diff() {
    check_screen("change", |screen| {
        screen.type_text("j");
        screen.press(KeyCode::Enter);
    });
}

#[test]
fn change_list_shows_branches() {
    check_screen("changes", |screen| screen.type_text("5"));
}

#[test]
fn log_screen_shows_newest_event_last() {
    check_screen("log", |screen| screen.type_text("6"));
}

#[test]
fn answer_dialog_lists_offered_answers() {
    check_screen("answer", |screen| {
        screen.type_text("a");
        screen.press(KeyCode::Down);
        screen.type_text("Use the memory queue in tests, as the others do");
    });
}

#[test]
fn help_screen_lists_keys() {
    check_screen("help", |screen| screen.type_text("?"));
}

#[test]
fn small_terminal_says_that_it_is_too_small() {
    for size in [(39, 12), (60, 9), (5, 3), (1, 1), (0, 0)] {
        let screen = TestScreen::start(size);
        let drawn = screen.draw();
        assert!(size.0 < 30 || drawn.contains("too small"), "{size:?}\n{drawn}");
    }
}
