//! The reaction to keys, commits and answers of other threads.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{TestScreen, samples};
use crate::dialog::DialogState;
use crate::event::{ErrorLine, LiveUpdate, StoreCommand, TopEvent, TopRequest};
use crate::model::MAX_LOADED_PAGES;
use crate::page::{ScreenPage, ViewData, ViewQuery};
use crate::row::RowTarget;
use crate::update::{start, update};

fn control(letter: char) -> TopEvent {
    TopEvent::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL))
}

fn refusal(message: &str, hint: &str) -> ErrorLine {
    ErrorLine { message: message.to_owned(), hint: Some(hint.to_owned()), is_error: true }
}

fn footer(screen: &TestScreen) -> String {
    screen.draw().lines().last().unwrap_or_default().to_owned()
}

#[test]
fn cursor_skips_headings_and_stays_in_list() {
    let mut screen = TestScreen::start((60, 20));
    let visited: Vec<Option<RowTarget>> = (0..6)
        .map(|_| {
            let target = screen.model.current().target().cloned();
            screen.press(KeyCode::Down);
            target
        })
        .collect();
    let expected = [
        RowTarget::Waiting("T3".to_owned()),
        RowTarget::Waiting("T2".to_owned()),
        RowTarget::Session("fix-the-login-3757e17e".to_owned()),
        RowTarget::Task("T4".to_owned()),
        RowTarget::Task("T5".to_owned()),
        RowTarget::Task("T5".to_owned()),
    ];
    assert_eq!(visited, expected.map(Some));
}

#[test]
fn enter_opens_page_and_escape_returns_to_cursor() {
    let mut screen = TestScreen::start((60, 20));
    screen.press(KeyCode::Down);
    screen.press(KeyCode::Enter);
    assert_eq!(screen.model.current().page, ScreenPage::Change("T2".to_owned()));
    screen.press(KeyCode::Esc);
    assert_eq!(screen.model.current().page, ScreenPage::Now);
    assert_eq!(screen.model.current().target(), Some(&RowTarget::Waiting("T2".to_owned())));
    screen.press(KeyCode::Backspace);
    assert_eq!(screen.model.current().page, ScreenPage::Now, "there is nothing before the first page");
}

#[test]
fn tab_visits_every_screen_and_returns() {
    let mut screen = TestScreen::start((60, 20));
    let mut visited = Vec::new();
    for _ in 0..6 {
        screen.press(KeyCode::Tab);
        visited.push(screen.model.current().page.tab().title());
    }
    assert_eq!(visited, ["Tasks", "Session", "Why", "Change", "Log", "Now"]);
    screen.press(KeyCode::BackTab);
    assert_eq!(screen.model.current().page, ScreenPage::Log);
}

#[test]
fn answer_is_sent_with_choice_and_text() {
    let mut screen = TestScreen::start((60, 20));
    screen.type_text("a");
    screen.press(KeyCode::Down);
    screen.type_text("use q and j");
    screen.press(KeyCode::Enter);
    let text = Some("use q and j".to_owned());
    let command = StoreCommand::Answer { subject: "T3".to_owned(), answer: samples::answer("retry"), text };
    assert_eq!(screen.take_requests(), [TopRequest::Execute(command.clone())]);
    screen.press(KeyCode::Enter);
    assert_eq!(screen.take_requests(), [], "a command is sent once");
    screen.apply(TopEvent::CommandEnded(command, Ok("answered T3: retry".to_owned())));
    assert_eq!(screen.model.dialog, None);
    assert_eq!(footer(&screen), "answered T3: retry");
}

#[test]
fn refused_answer_keeps_dialog_and_text() {
    let mut screen = TestScreen::start((80, 24));
    screen.type_text("a");
    screen.type_text("a long story");
    screen.press(KeyCode::Enter);
    let Some(TopRequest::Execute(command)) = screen.take_requests().pop() else { panic!("a command") };
    let error = refusal("T3 is claimed", "`windlass task show T3` shows by whom");
    screen.apply(TopEvent::CommandEnded(command, Err(error)));
    assert!(screen.draw().contains("> a long story"), "{}", screen.draw());
    assert_eq!(footer(&screen), "T3 is claimed · `windlass task show T3` shows by whom");
}

#[test]
fn long_error_is_shown_whole_in_box_that_scrolls() {
    let mut screen = TestScreen::start((60, 12));
    let cursor = screen.model.current().cursor;
    let causes: String = (1..=40).map(|number| format!(" cause-{number}")).collect();
    let mut requests = update(&mut screen.model, TopEvent::Committed);
    let Some(TopRequest::Load(query)) = requests.pop() else { panic!("a query") };
    screen.apply(TopEvent::Loaded(query, Box::new(Err(refusal(&causes, "`windlass doctor` repairs it")))));
    assert!(screen.draw().contains("Error · ↑↓ scroll") && screen.draw().contains(" cause-1 "), "{}", screen.draw());
    for _ in 0..20 {
        screen.press(KeyCode::Down);
    }
    assert!(screen.draw().contains("cause-40") && screen.draw().contains("repairs it"), "{}", screen.draw());
    assert_eq!(screen.model.current().cursor, cursor);
    screen.press(KeyCode::Esc);
    assert!(!screen.draw().contains("cause"), "{}", screen.draw());
}

#[test]
fn closed_dialog_keeps_text_until_it_is_sent() {
    let mut screen = TestScreen::start((60, 20));
    screen.type_text("jjs");
    screen.type_text("mind the gap");
    screen.press(KeyCode::Esc);
    screen.press(KeyCode::Esc);
    screen.type_text("s");
    assert!(screen.draw().contains("> mind the gap"), "{}", screen.draw());
    screen.press(KeyCode::Enter);
    let Some(TopRequest::Execute(command)) = screen.take_requests().pop() else { panic!("a command") };
    screen.apply(TopEvent::CommandEnded(command, Ok("sent".to_owned())));
    screen.type_text("s");
    assert!(!screen.draw().contains("mind the gap"), "{}", screen.draw());
}

#[test]
fn pasted_lines_are_text_and_no_keys() {
    let mut screen = TestScreen::start((60, 20));
    screen.apply(TopEvent::Paste("q\ny\n".to_owned()));
    assert_eq!(screen.take_requests(), [], "a paste outside of a dialog does nothing");
    screen.type_text("jjs");
    screen.apply(TopEvent::Paste("one\r\ntwo\n".to_owned()));
    assert_eq!(screen.take_requests(), []);
    screen.press(KeyCode::Enter);
    let session = "fix-the-login-3757e17e".to_owned();
    let said = StoreCommand::Say { session, text: "one\ntwo\n".to_owned() };
    assert_eq!(screen.take_requests(), [TopRequest::Execute(said)]);
}

#[test]
fn cancel_asks_for_reason_before_it_ends_session() {
    for (typed, reason) in [("wrong branch", Some("wrong branch".to_owned())), ("", None)] {
        let mut screen = TestScreen::start((60, 20));
        screen.type_text("jjc");
        screen.press(KeyCode::Esc);
        assert_eq!((screen.take_requests(), &screen.model.dialog), (vec![], &None));
        screen.type_text("c");
        assert!(screen.draw().contains("End the session?"), "{}", screen.draw());
        screen.type_text(typed);
        screen.press(KeyCode::Enter);
        let session = "fix-the-login-3757e17e".to_owned();
        assert_eq!(screen.take_requests(), [TopRequest::Execute(StoreCommand::CancelSession { session, reason })]);
    }
}

#[test]
fn merge_asks_where_change_can_be_merged() {
    let mut screen = TestScreen::start((60, 20));
    screen.type_text("m");
    assert!(footer(&screen).starts_with("no change that can be merged"), "{}", footer(&screen));
    screen.type_text("jmy");
    let merge = StoreCommand::MergeChange { task: "T2".to_owned() };
    assert_eq!(screen.take_requests(), [TopRequest::Execute(merge)]);
}

#[test]
fn merge_question_names_branch_and_remote_of_push() {
    let push = "Windlass then pushes main to origin.";
    let with_remote: fn(&ViewQuery) -> ViewData = change_with_remote;
    for (data, is_pushed) in [(with_remote, true), (super::sample_data, false)] {
        let mut screen = TestScreen::start_with((60, 20), data);
        screen.type_text("jm");
        assert_eq!(screen.model.current().page, ScreenPage::Change("T2".to_owned()));
        let Some(DialogState::Confirm { question, .. }) = &screen.model.dialog else { panic!("a question") };
        assert_eq!(question.ends_with(push), is_pushed, "{question}");
        screen.press(KeyCode::Esc);
        assert_eq!(screen.draw().contains(push), is_pushed, "{}", screen.draw());
    }
}

fn change_with_remote(query: &ViewQuery) -> ViewData {
    let mut data = super::sample_data(query);
    if let ViewData::Change(details) = &mut data {
        details.merge_remote = Some("origin".to_owned());
    }
    data
}

#[test]
fn merge_question_of_landed_change_is_about_its_record() {
    let mut screen = TestScreen::start_with((60, 20), |query| match super::sample_data(query) {
        ViewData::Change(mut details) => {
            (details.has_landed, details.change.state) = (true, "merged".to_owned());
            ViewData::Change(details)
        }
        other => other,
    });
    screen.type_text("jm");
    let Some(DialogState::Confirm { question, command }) = &screen.model.dialog else { panic!("a question") };
    assert_eq!(question, "The change of T2 is already in main: record it?");
    assert_eq!(*command, StoreCommand::MergeChange { task: "T2".to_owned() });
}

#[test]
fn late_merge_question_opens_only_if_no_key_came_between() {
    for (keys, is_asked) in [("", true), ("/", false), ("j", false)] {
        let mut screen = TestScreen::start((60, 20));
        screen.press(KeyCode::Down);
        let key = TopEvent::Key(KeyEvent::new(KeyCode::Char('m'), KeyModifiers::NONE));
        let mut requests = update(&mut screen.model, key);
        let Some(TopRequest::Load(query)) = requests.pop() else { panic!("a query") };
        screen.type_text(keys);
        let before = screen.model.dialog.clone();
        let data = super::sample_data(&query);
        screen.apply(TopEvent::Loaded(query, Box::new(Ok(data))));
        let is_confirmed = matches!(screen.model.dialog, Some(DialogState::Confirm { .. }));
        assert_eq!(is_confirmed, is_asked, "{keys}");
        assert!(is_asked || screen.model.dialog == before, "{keys}: {:?}", screen.model.dialog);
    }
}

#[test]
fn page_that_is_left_before_it_loads_opens_no_dialog() {
    let mut screen = TestScreen::start((60, 20));
    screen.press(KeyCode::Down);
    let requests = update(&mut screen.model, TopEvent::Key(KeyEvent::new(KeyCode::Char('m'), KeyModifiers::NONE)));
    assert!(matches!(&requests[..], [TopRequest::Load(query)] if query.page == ScreenPage::Change("T2".to_owned())));
    screen.press(KeyCode::Esc);
    assert_eq!((&screen.model.current().page, &screen.model.dialog), (&ScreenPage::Now, &None));
}

#[test]
fn notice_of_command_stays_beside_its_success() {
    let mut screen = TestScreen::start((100, 20));
    screen.type_text("jmy");
    let Some(TopRequest::Execute(command)) = screen.take_requests().pop() else { panic!("a command") };
    let notice = ErrorLine { message: "warning: the hook `chat` failed".to_owned(), hint: None, is_error: false };
    screen.apply(TopEvent::Notice(notice));
    screen.apply(TopEvent::CommandEnded(command, Ok("merged the change of T2".to_owned())));
    assert_eq!(footer(&screen), "merged the change of T2 · warning: the hook `chat` failed");
}

#[test]
fn answer_key_in_task_list_opens_answers_of_that_task() {
    let mut screen = TestScreen::start_with((60, 20), |query| match super::sample_data(query) {
        ViewData::Task { mut details, graph } => {
            details.answers = vec![samples::answer("retry")];
            details.question = Some(samples::question("Which queue do you want?"));
            details.task.id = "T3".to_owned();
            ViewData::Task { details, graph }
        }
        other => other,
    });
    screen.type_text("2ja");
    assert_eq!(screen.model.current().page, ScreenPage::Task("T3".to_owned()));
    assert!(screen.draw().contains("▸ retry"), "{}", screen.draw());
    assert!(screen.draw().contains("│ Which queue do you want?"), "{}", screen.draw());
    let rows: Vec<String> = screen.model.current().rows.iter().map(|row| row.plain_text()).collect();
    for text in ["the tests fail for the third time", "Which queue do you want?"] {
        assert!(rows.contains(&text.to_owned()), "{rows:?}");
    }
}

#[test]
fn answer_dialog_scrolls_through_whole_message() {
    let mut screen = TestScreen::start_with((60, 20), |query| match super::sample_data(query) {
        ViewData::Now(mut view) => {
            let lines: Vec<String> = (1..=40).map(|number| format!("line-{number} of it")).collect();
            view.waiting[0].message = Some(lines.join("\n"));
            ViewData::Now(view)
        }
        other => other,
    });
    screen.type_text("aBlue");
    let mut seen = String::new();
    for _ in 0..40 {
        seen += &screen.draw();
        screen.press(KeyCode::PageDown);
    }
    assert_eq!((1..=40).find(|number| !seen.contains(&format!("│ line-{number} of it"))), None, "{seen}");
    let last = screen.draw();
    assert!(last.contains("PgUp PgDn scroll") && last.contains("> Blue") && last.contains("▸ continue"), "{last}");
    screen.press(KeyCode::PageUp);
    assert!(!screen.draw().contains("line-40"), "{}", screen.draw());
}

#[test]
fn session_that_asks_shows_whole_message() {
    let mut screen = TestScreen::start_with((100, 30), |query| match super::sample_data(query) {
        ViewData::Session(mut timeline) => {
            timeline.answers = vec![samples::answer("continue")];
            timeline.question = Some(samples::question("I have fixed the form.\nAll tests should pass."));
            ViewData::Session(timeline)
        }
        other => other,
    });
    screen.type_text("jjl");
    assert!(screen.draw().contains("│ I have fixed the form."), "{}", screen.draw());
    screen.type_text("a");
    assert!(screen.draw().contains("The agent's last message:"), "{}", screen.draw());
}

#[test]
fn enter_on_text_keeps_cursor_and_has_no_hint() {
    let mut screen = TestScreen::start_with((60, 20), |query| match super::sample_data(query) {
        ViewData::Change(mut details) => {
            details.findings[0].text = "an example is missing\nsecond line".to_owned();
            ViewData::Change(details)
        }
        other => other,
    });
    screen.type_text("jlj");
    let cursor = screen.model.current().cursor;
    assert_eq!(screen.model.current().target(), Some(&RowTarget::Text(0)));
    for key in [KeyCode::Enter, KeyCode::Char(' ')] {
        screen.press(key);
        assert_eq!(screen.model.current().cursor, cursor);
    }
    assert!(!footer(&screen).contains("Enter"), "{}", footer(&screen));
    screen.press(KeyCode::Down);
    assert!(footer(&screen).contains("Enter fold"), "{}", footer(&screen));
}

#[test]
fn note_about_more_causes_follows_causes() {
    let mut screen = TestScreen::start_with((100, 30), |query| match super::sample_data(query) {
        ViewData::Why(view) => ViewData::Why(windlass_app::views::WhyView { has_more_causes: true, ..view }),
        other => other,
    });
    screen.type_text("w");
    let rows: Vec<String> = screen.model.current().rows.iter().map(|row| row.plain_text()).collect();
    let find = |text: &str| rows.iter().rposition(|row| row.contains(text));
    assert_eq!(find("more causes"), find("because").map(|at| at + 1), "{rows:?}");
}

#[test]
fn quit_asks_only_while_command_runs() {
    let mut screen = TestScreen::start((60, 20));
    screen.type_text("jmyq");
    assert_eq!(screen.take_requests().len(), 1, "only the merge");
    screen.type_text("n");
    screen.type_text("qy");
    assert_eq!(screen.take_requests(), [TopRequest::Quit]);
    let mut screen = TestScreen::start((60, 20));
    screen.type_text("q");
    assert_eq!(screen.take_requests(), [TopRequest::Quit]);
}

#[test]
fn control_keys_suspend_redraw_and_quit_also_in_dialogs() {
    let mut screen = TestScreen::start((60, 20));
    screen.type_text("jjs");
    for letter in ['z', 'l', 'c'] {
        screen.apply(control(letter));
    }
    assert_eq!(screen.take_requests(), [TopRequest::Suspend, TopRequest::Redraw, TopRequest::Quit]);
}

#[test]
fn commit_during_load_loads_once_more() {
    let mut screen = TestScreen::start((60, 20));
    let mut requests = update(&mut screen.model, TopEvent::Committed);
    let Some(TopRequest::Load(query)) = requests.pop() else { panic!("a query") };
    for _ in 0..5 {
        assert_eq!(update(&mut screen.model, TopEvent::Committed), [], "a query is under way");
    }
    let data = ViewData::Now(samples::now_view());
    let again = update(&mut screen.model, TopEvent::Loaded(query.clone(), Box::new(Ok(data.clone()))));
    assert_eq!(again, [TopRequest::Load(query.clone())]);
    assert_eq!(update(&mut screen.model, TopEvent::Loaded(query, Box::new(Ok(data)))), []);
}

#[test]
fn failed_load_keeps_rows_and_shows_error() {
    let mut screen = TestScreen::start((60, 20));
    let rows = screen.model.current().rows.clone();
    let mut requests = update(&mut screen.model, TopEvent::Committed);
    let Some(TopRequest::Load(query)) = requests.pop() else { panic!("a query") };
    let error = refusal("the store is damaged", "`windlass doctor` repairs it");
    screen.apply(TopEvent::Loaded(query, Box::new(Err(error))));
    assert_eq!(screen.model.current().rows, rows);
    assert_eq!(footer(&screen), "the store is damaged · `windlass doctor` repairs it");
}

#[test]
fn filter_of_tasks_is_part_of_query_and_escape_removes_it() {
    let mut screen = TestScreen::start((60, 20));
    screen.type_text("2/mail");
    screen.press(KeyCode::Enter);
    let page = ScreenPage::Tasks;
    assert_eq!(screen.loaded.last(), Some(&ViewQuery { page: page.clone(), filter: "mail".to_owned(), pages: 1 }));
    screen.press(KeyCode::Esc);
    assert_eq!(screen.loaded.last(), Some(&ViewQuery { page: page.clone(), filter: String::new(), pages: 1 }));
    assert_eq!(screen.model.current().page, page);
}

#[test]
fn cursor_at_end_of_loaded_rows_loads_next_page() {
    for (keys, step, page) in [("2", 'j', ScreenPage::Tasks), ("6", 'k', ScreenPage::Log)] {
        let mut screen = TestScreen::start_with((60, 20), |query| match super::sample_data(query) {
            ViewData::Tasks(tasks) => {
                ViewData::Tasks(windlass_app::views::TaskPage { has_more: query.pages < 3, ..tasks })
            }
            ViewData::Log { page, .. } => ViewData::Log { page, has_older: query.pages < 3 },
            other => other,
        });
        screen.type_text(keys);
        let mut loaded = Vec::new();
        for _ in 0..10 {
            screen.press(KeyCode::Char(step));
            loaded.push(screen.loaded.last().map(|query| query.pages));
        }
        loaded.dedup();
        assert_eq!(loaded, [Some(1), Some(2), Some(3)], "{page:?}");
        screen.type_text("/x");
        let filter = "x".to_owned();
        assert_eq!(screen.loaded.last(), Some(&ViewQuery { page, filter, pages: 1 }));
    }
}

#[test]
fn endless_list_stops_after_most_pages() {
    for (keys, step) in [("2", 'j'), ("6", 'k')] {
        let mut screen = TestScreen::start_with((60, 20), |query| match super::sample_data(query) {
            ViewData::Tasks(tasks) => ViewData::Tasks(windlass_app::views::TaskPage { has_more: true, ..tasks }),
            ViewData::Log { page, .. } => ViewData::Log { page, has_older: true },
            other => other,
        });
        screen.type_text(keys);
        (0..40).for_each(|_| screen.press(KeyCode::Char(step)));
        assert_eq!(screen.loaded.last().map(|query| query.pages), Some(MAX_LOADED_PAGES));
        assert!(screen.draw().contains("filter to see more"), "{}", screen.draw());
    }
}

#[test]
fn filter_of_rows_keeps_matching_rows() {
    let mut screen = TestScreen::start((60, 20));
    screen.type_text("/ROTATE");
    let rows: Vec<String> = screen.model.current().rows.iter().map(|row| row.plain_text()).collect();
    assert_eq!(rows.len(), 1, "{rows:?}");
    screen.press(KeyCode::Esc);
    assert!(screen.model.current().rows.len() > 10);
}

#[test]
fn filter_words_choose_states_types_and_tasks() {
    let query = crate::view_loader::parse_task_query("blocked Login form");
    assert_eq!(query.states, [windlass_engine::TaskState::Blocked]);
    assert_eq!(query.text.as_deref(), Some("Login form"));
    let (query, words) = crate::view_loader::parse_log_query("t3 hook_finished Blocked");
    assert_eq!(query.task, Some("T3".parse().unwrap()));
    assert_eq!(query.types, ["hook_finished".parse().unwrap()]);
    assert_eq!(words, ["blocked"]);
}

#[test]
fn session_is_followed_while_it_is_shown() {
    let mut screen = TestScreen::start((60, 20));
    screen.type_text("jj");
    screen.press(KeyCode::Enter);
    let name = "fix-the-login-3757e17e".to_owned();
    assert_eq!(screen.take_requests(), [TopRequest::Follow(Some(name.clone()))]);
    screen.apply(TopEvent::Live(LiveUpdate::TurnStarted(name.clone())));
    screen.apply(TopEvent::Live(LiveUpdate::Lines("another".to_owned(), vec!["no".to_owned()])));
    screen.apply(TopEvent::Live(LiveUpdate::Lines(name, vec!["yes".to_owned()])));
    assert_eq!(screen.model.live.lines, ["yes"]);
    screen.press(KeyCode::Esc);
    assert_eq!(screen.take_requests(), [TopRequest::Follow(None)]);
    assert!(screen.model.live.lines.is_empty());
}

#[test]
fn wide_task_list_loads_task_under_cursor() {
    let mut screen = TestScreen::start((160, 40));
    screen.type_text("2j");
    let loaded: Vec<&ScreenPage> = screen.loaded.iter().map(|query| &query.page).collect();
    let task = |id: &str| ScreenPage::Task(id.to_owned());
    assert_eq!(loaded, [&ScreenPage::Now, &ScreenPage::Tasks, &task("T1"), &task("T3")]);
}

#[test]
fn cursor_stays_at_its_item_when_rows_change() {
    let mut screen = TestScreen::start((60, 20));
    screen.type_text("2jj");
    assert_eq!(screen.model.current().target(), Some(&RowTarget::Task("T4".to_owned())));
    screen.data = |_| {
        let mut page = samples::task_page();
        page.tasks.remove(0);
        ViewData::Tasks(page)
    };
    screen.apply(TopEvent::Committed);
    assert_eq!(screen.model.current().target(), Some(&RowTarget::Task("T4".to_owned())));
}

#[test]
fn cause_key_goes_to_event_that_caused_it() {
    let mut screen = TestScreen::start((60, 20));
    screen.type_text("wG");
    assert!(screen.model.current_mut().move_to_target(&RowTarget::Event(42)));
    screen.type_text("u");
    assert_eq!(screen.model.current().target(), Some(&RowTarget::Event(40)));
    screen.type_text("g");
    assert_eq!(screen.model.current().target(), Some(&RowTarget::Text(0)));
    screen.type_text("j");
    screen.press(KeyCode::Enter);
    assert_eq!(screen.model.current().target(), Some(&RowTarget::Event(43)));
}

/// A process that dies writes no event.
#[test]
fn page_with_process_is_loaded_again_from_time_to_time() {
    let mut screen = TestScreen::start((60, 20));
    let now = screen.model.now;
    screen.data = |_| {
        let mut view = samples::now_view();
        view.working[0].is_running = false;
        view.working[0].resume_command = Some("windlass run --session fix-the-login-3757e17e".to_owned());
        view.working[0].resume_note = Some("No process runs it; this continues it".to_owned());
        ViewData::Now(view)
    };
    screen.apply(TopEvent::Ticked(now + 1000));
    assert!(!screen.draw().contains("No process runs it"), "{}", screen.draw());
    screen.apply(TopEvent::Ticked(now + 10_000));
    assert!(screen.draw().contains("No process runs it; this continues it: "), "{}", screen.draw());
    let loaded = screen.loaded.len();
    screen.apply(TopEvent::Ticked(now + 20_000));
    assert_eq!(screen.loaded.len(), loaded, "no process is left");
}

#[test]
fn resized_terminal_keeps_cursor_on_screen() {
    let mut screen = TestScreen::start((100, 30));
    screen.press(KeyCode::Char('G'));
    for size in [(60, 12), (40, 10), (200, 60), (39, 9), (60, 20)] {
        screen.apply(TopEvent::Resized(size.0, size.1));
        let (state, height) = (screen.model.current(), usize::from(screen.model.pane_heights().0));
        assert!(state.top <= state.cursor && (state.cursor < state.top + height || height < 8), "{size:?}");
    }
    assert_eq!(screen.model.current().target(), Some(&RowTarget::Task("T5".to_owned())));
}

#[test]
fn start_requests_home_screen_only() {
    let mut model = crate::model::TopModel::new("shop".to_owned(), (60, 20), 0);
    let query = ViewQuery { page: ScreenPage::Now, filter: String::new(), pages: 1 };
    assert_eq!(start(&mut model), [TopRequest::Load(query)]);
}
