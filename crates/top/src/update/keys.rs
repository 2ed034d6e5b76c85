//! Keys outside of dialogs.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use windlass_app::tone::TextTone;

use super::pages::{open_page, reload_page};
use super::{commands, dialogs};
use crate::event::TopRequest;
use crate::model::{PageState, TopModel};
use crate::page::{ScreenPage, ScreenTab};
use crate::row::RowTarget;
use crate::screens;

pub fn apply_key(model: &mut TopModel, key: KeyEvent) -> Vec<TopRequest> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    // The person does something else than wait for the dialog.
    model.pending_dialog = None;
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        match key.code {
            KeyCode::Char('c') => return vec![TopRequest::Quit],
            KeyCode::Char('z') => return vec![TopRequest::Suspend],
            KeyCode::Char('l') => return vec![TopRequest::Redraw],
            _ => {}
        }
    }
    if model.has_help {
        model.has_help = false;
        return Vec::new();
    }
    if model.has_message_box() && apply_message_key(model, key.code) {
        return Vec::new();
    }
    if model.dialog.is_some() {
        return dialogs::apply_key(model, key);
    }
    let had_message = model.message.take().is_some();
    let page_rows = isize::try_from(model.pane_heights().0.saturating_sub(2).max(1)).unwrap_or(1);
    match (key.code, key.modifiers.contains(KeyModifiers::CONTROL)) {
        (KeyCode::Char('d'), true) => move_cursor(model, page_rows / 2),
        (KeyCode::Char('u'), true) => move_cursor(model, -(page_rows / 2)),
        (KeyCode::Char('f'), true) | (KeyCode::PageDown, _) => move_cursor(model, page_rows),
        (KeyCode::Char('b'), true) | (KeyCode::PageUp, _) => move_cursor(model, -page_rows),
        (_, true) => Vec::new(),
        (KeyCode::Down | KeyCode::Char('j'), _) => move_cursor(model, 1),
        (KeyCode::Up | KeyCode::Char('k'), _) => move_cursor(model, -1),
        (KeyCode::Home | KeyCode::Char('g'), _) => move_to_edge(model, false),
        (KeyCode::End | KeyCode::Char('G'), _) => move_to_edge(model, true),
        (KeyCode::Enter | KeyCode::Right | KeyCode::Char('l'), _) => open_target(model),
        (KeyCode::Left | KeyCode::Char('h') | KeyCode::Backspace, _) => go_back(model),
        (KeyCode::Esc, _) if had_message => Vec::new(),
        (KeyCode::Esc, _) if !model.current().filter.is_empty() => dialogs::set_filter(model, String::new()),
        (KeyCode::Esc, _) => go_back(model),
        (KeyCode::Tab, _) => switch_tab(model, model.current().page.tab().step(1)),
        (KeyCode::BackTab, _) => switch_tab(model, model.current().page.tab().step(ScreenTab::ALL.len() - 1)),
        (KeyCode::Char(digit @ '1'..='6'), _) => {
            let number = usize::try_from(digit.to_digit(10).unwrap_or(1)).unwrap_or(1);
            switch_tab(model, ScreenTab::ALL[number - 1])
        }
        (KeyCode::Char(letter), _) => apply_letter(model, letter),
        _ => Vec::new(),
    }
}

/// Scrolls or closes the box of the message. Returns false for a key with another meaning, which also closes the box.
fn apply_message_key(model: &mut TopModel, code: KeyCode) -> bool {
    let by = match code {
        KeyCode::Up | KeyCode::PageUp => -1,
        KeyCode::Down | KeyCode::PageDown => 1,
        _ => {
            model.message = None;
            return matches!(code, KeyCode::Esc | KeyCode::Enter);
        }
    };
    let size = model.size;
    if let Some(message) = &mut model.message {
        message.scroll(by, size);
    }
    true
}

fn apply_letter(model: &mut TopModel, letter: char) -> Vec<TopRequest> {
    match letter {
        'q' => return commands::quit(model),
        '?' => model.has_help = true,
        '/' => dialogs::open_filter(model),
        'a' => return commands::answer(model),
        's' => commands::say(model),
        'c' => commands::cancel_session(model),
        'm' => return commands::merge_change(model),
        'd' => {
            return match model.current().subject().task {
                Some(task) => open_page(model, ScreenPage::Change(task)),
                None => commands::refuse(model, "no task is selected: d shows the change of one"),
            };
        }
        'w' => {
            return match model.current().subject().why_name() {
                Some(name) => open_page(model, ScreenPage::Why(Some(name.to_owned()))),
                None => commands::refuse(model, "no task or session is selected: w explains one"),
            };
        }
        'u' => return go_to_cause(model),
        'r' => return reload_page(model),
        ' ' => toggle_fold(model),
        _ => {}
    }
    Vec::new()
}

fn move_cursor(model: &mut TopModel, by: isize) -> Vec<TopRequest> {
    model.current_mut().move_cursor(by);
    model.scroll_to_cursor();
    load_more(model)
}

fn move_to_edge(model: &mut TopModel, is_end: bool) -> Vec<TopRequest> {
    model.current_mut().move_to_edge(is_end);
    model.scroll_to_cursor();
    load_more(model)
}

/// Loads one page more when the cursor reaches the end of what was loaded.
fn load_more(model: &mut TopModel) -> Vec<TopRequest> {
    model.current_mut().begin_load_of_more().map(TopRequest::Load).into_iter().collect()
}

fn go_back(model: &mut TopModel) -> Vec<TopRequest> {
    if model.close_page() {
        model.rebuild_rows();
        return reload_page(model);
    }
    Vec::new()
}

/// Opens the page behind the row under the cursor, or folds and unfolds the row. A text has nothing behind it.
fn open_target(model: &mut TopModel) -> Vec<TopRequest> {
    let state = model.current();
    match find_target_page(state) {
        Some(page) if page != state.page => open_page(model, page),
        None if matches!(state.target(), Some(RowTarget::Cause(_))) => go_to_cause(model),
        _ => {
            toggle_fold(model);
            Vec::new()
        }
    }
}

/// Returns the page behind the row under the cursor.
fn find_target_page(state: &PageState) -> Option<ScreenPage> {
    screens::find_opened_page(state.data.as_ref()?, state.target()?)
}

fn toggle_fold(model: &mut TopModel) {
    let state = model.current_mut();
    let Some(target) = state.target().filter(|target| target.has_action()).cloned() else { return };
    if !state.toggled.remove(&target) {
        state.toggled.insert(target.clone());
    }
    // The cursor goes to the first row of the target, which stays when the others are folded away.
    state.move_to_target(&target);
    model.rebuild_rows();
}

/// Goes to the event that caused the one under the cursor.
fn go_to_cause(model: &mut TopModel) -> Vec<TopRequest> {
    let state = model.current();
    let cause = match (&state.data, state.target()) {
        (Some(data), Some(target)) => screens::find_cause(data, target),
        _ => None,
    };
    match cause {
        Some(cause) if model.current_mut().move_to_target(&cause) => model.scroll_to_cursor(),
        Some(_) => model.show_message(TextTone::Warning, "its cause is not on this page: the log (6) has every event"),
        None => {}
    }
    Vec::new()
}

/// Goes to a screen, with the subject of the present one where it has one.
fn switch_tab(model: &mut TopModel, tab: ScreenTab) -> Vec<TopRequest> {
    let subject = model.current().subject();
    let is_there = model.current().page.tab() == tab;
    let newest = model.pages.iter().rev().find(|state| state.page.tab() == tab).map(|state| state.page.clone());
    let page = match tab {
        ScreenTab::Now => ScreenPage::Now,
        ScreenTab::Tasks => ScreenPage::Tasks,
        ScreenTab::Log => ScreenPage::Log,
        ScreenTab::Session if is_there => ScreenPage::Sessions,
        ScreenTab::Change if is_there => ScreenPage::Changes,
        ScreenTab::Session => match subject.session {
            Some(session) => ScreenPage::Session(session),
            None => newest.unwrap_or(ScreenPage::Sessions),
        },
        ScreenTab::Why => match subject.why_name() {
            Some(name) => ScreenPage::Why(Some(name.to_owned())),
            None => newest.unwrap_or(ScreenPage::Why(None)),
        },
        ScreenTab::Change => match find_target_page(model.current()) {
            Some(page @ ScreenPage::Change(_)) => page,
            _ => newest.unwrap_or(ScreenPage::Changes),
        },
    };
    open_page(model, page)
}
