//! The reaction to events: `update(model, event) → requests`.
//!
//! Invariants:
//! - Nothing here reads the store, a file or a clock.
//! - A text that was typed is kept until its command has succeeded.

mod commands;
mod dialogs;
mod keys;
mod pages;

use windlass_app::tone::TextTone;

use self::pages::reload_page;
use crate::dialog::DialogState;
use crate::event::{ErrorLine, LiveUpdate, StoreCommand, TopEvent, TopRequest};
use crate::model::{PageState, PendingDialog, TopModel};
use crate::page::{ScreenPage, ViewData, ViewQuery};
use crate::row::RowTarget;
use crate::screens;

/// The time after which a page with a running process is loaded again: a process that dies writes no event. In milliseconds.
const PROCESS_CHECK_INTERVAL: i64 = 10_000;

/// Applies an event, and returns the work for other threads.
pub fn update(model: &mut TopModel, event: TopEvent) -> Vec<TopRequest> {
    let mut requests = match event {
        TopEvent::Key(key) => keys::apply_key(model, key),
        TopEvent::Paste(text) => {
            dialogs::insert_text(model, &text);
            dialogs::apply_filter(model)
        }
        TopEvent::Resized(columns, rows) => {
            model.size = (columns, rows);
            model.rebuild_rows();
            Vec::new()
        }
        TopEvent::Continued => vec![TopRequest::Redraw],
        TopEvent::Committed => reload_page(model),
        TopEvent::Ticked(now) => {
            let is_due = now / PROCESS_CHECK_INTERVAL != model.now / PROCESS_CHECK_INTERVAL;
            model.now = now;
            // The rows show ages.
            if !matches!(model.current().data, Some(ViewData::Change(_) | ViewData::Log { .. } | ViewData::Why(_))) {
                model.rebuild_rows();
            }
            let has_process = model.current().data.as_ref().is_some_and(screens::shows_running_process);
            if is_due && has_process { reload_page(model) } else { Vec::new() }
        }
        TopEvent::Loaded(query, loaded) => apply_loaded(model, &query, *loaded),
        TopEvent::CommandEnded(command, ended) => apply_command_end(model, &command, ended),
        TopEvent::Notice(notice) => {
            model.show_error(&notice);
            model.notices.push(notice.message);
            Vec::new()
        }
        TopEvent::Live(live) => {
            apply_live_update(model, live);
            Vec::new()
        }
        TopEvent::Ended => vec![TopRequest::Quit],
    };
    requests.extend(load_side_task(model));
    requests.extend(follow_session(model));
    requests
}

/// Returns the requests of a program that starts.
pub fn start(model: &mut TopModel) -> Vec<TopRequest> {
    reload_page(model)
}

fn apply_loaded(model: &mut TopModel, query: &ViewQuery, loaded: Result<ViewData, ErrorLine>) -> Vec<TopRequest> {
    if let Some(side) = model.side.as_mut().filter(|side| side.page == query.page) {
        let again = side.finish_load(query, loaded.clone()).then(|| side.begin_load()).flatten();
        if model.current().page != query.page {
            model.rebuild_rows();
            return again.into_iter().map(TopRequest::Load).collect();
        }
    }
    let Some(state) = model.pages.iter_mut().rev().find(|state| state.page == query.page) else { return Vec::new() };
    let is_first = state.data.is_none();
    let failed = loaded.as_ref().err().cloned();
    let is_loaded = failed.is_none();
    let again = state.finish_load(query, loaded);
    if model.current().page != query.page {
        return Vec::new();
    }
    // A page without contents shows the error itself.
    if let Some(error) = failed.filter(|_| !is_first) {
        model.show_error(&error);
    }
    model.rebuild_rows();
    if is_first && let ScreenPage::Task(id) = &query.page {
        model.current_mut().move_to_target(&RowTarget::Task(id.clone()));
        model.scroll_to_cursor();
    }
    let pending = model.pending_dialog.take().filter(|_| is_loaded && model.dialog.is_none());
    let mut requests = match pending {
        Some(PendingDialog::Answer) => {
            dialogs::open_answer(model);
            Vec::new()
        }
        Some(PendingDialog::Merge) => commands::merge_change(model),
        None => Vec::new(),
    };
    let query = again.then(|| model.current_mut().begin_load()).flatten();
    requests.extend(query.map(TopRequest::Load));
    requests
}

fn apply_command_end(
    model: &mut TopModel,
    command: &StoreCommand,
    ended: Result<String, ErrorLine>,
) -> Vec<TopRequest> {
    if let Some(at) = model.running.iter().position(|running| running == command) {
        model.running.remove(at);
    }
    let requests = reload_page(model);
    match ended {
        // The dialog stays open with all that was typed.
        Err(error) => model.show_error(&error),
        Ok(said) => {
            if model.dialog.as_ref().and_then(DialogState::command).as_ref() == Some(command) {
                let key = model.dialog.take().and_then(|dialog| dialog.draft_key());
                key.map(|key| model.drafts.remove(&key));
            } else {
                model.drafts.retain(|_, draft| command.typed_text() != Some(draft.as_str()));
            }
            // What was reported while it ran stays visible.
            let notices: String = model.notices.iter().map(|notice| format!(" · {notice}")).collect();
            let tone = if notices.is_empty() { TextTone::Good } else { TextTone::Warning };
            model.show_message(tone, format!("{said}{notices}"));
        }
    }
    model.notices.clear();
    requests
}

fn apply_live_update(model: &mut TopModel, update: LiveUpdate) {
    let had_text = model.has_live_text();
    match update {
        LiveUpdate::TurnStarted(session) => {
            (model.live.session, model.live.is_writing) = (session, true);
            model.live.lines.clear();
        }
        LiveUpdate::Lines(session, lines) if session == model.live.session => model.live.add_lines(lines),
        LiveUpdate::TurnEnded(session) if session == model.live.session => model.live.is_writing = false,
        LiveUpdate::Lines(..) | LiveUpdate::TurnEnded(_) => {}
    }
    if had_text != model.has_live_text() {
        model.rebuild_rows();
    }
}

/// Loads the task under the cursor beside the list of tasks, on a wide terminal.
fn load_side_task(model: &mut TopModel) -> Option<TopRequest> {
    let task = match (model.has_side_pane(), &model.current().page, model.current().target()) {
        (true, ScreenPage::Tasks, Some(RowTarget::Task(id))) => Some(ScreenPage::Task(id.clone())),
        _ => None,
    };
    if model.side.as_ref().map(|side| &side.page) == task.as_ref() {
        return None;
    }
    model.side = task.map(PageState::new);
    model.side.as_mut().and_then(PageState::begin_load).map(TopRequest::Load)
}

/// Follows the output of the session that is shown, as long as it is shown.
fn follow_session(model: &mut TopModel) -> Option<TopRequest> {
    let session = match (&model.current().page, &model.current().data) {
        (ScreenPage::Session(_), Some(ViewData::Session(timeline))) => Some(timeline.session.name.clone()),
        _ => None,
    };
    if session == model.followed {
        return None;
    }
    model.followed.clone_from(&session);
    model.live = crate::model::LiveText { session: session.clone().unwrap_or_default(), ..Default::default() };
    Some(TopRequest::Follow(session))
}
