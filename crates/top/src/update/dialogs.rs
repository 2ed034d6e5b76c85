//! Keys while a dialog is open.

use crossterm::event::{KeyCode, KeyEvent};
use windlass_app::tone::TextTone;

use super::pages::{open_page, reload_page};
use crate::answer_text::AnswerText;
use crate::dialog::DialogState;
use crate::event::TopRequest;
use crate::line_editor::LineEditor;
use crate::model::TopModel;
use crate::page::ScreenPage;

/// Opens a dialog, with the text that was typed into it before.
pub fn open_dialog(model: &mut TopModel, mut dialog: DialogState) {
    let draft = dialog.draft_key().and_then(|key| model.drafts.get(&key));
    if let (Some(draft), Some(input)) = (draft, dialog.input_mut()) {
        *input = LineEditor::from_text(draft);
    }
    model.dialog = Some(dialog);
}

/// Opens the answers to what is under the cursor.
pub fn open_answer(model: &mut TopModel) {
    let subject = model.current().subject();
    let name = subject.answer_name().unwrap_or_default().to_owned();
    let answers = subject.answers.unwrap_or_default();
    if answers.is_empty() {
        let hint = if subject.can_merge { ": m merges its change, d shows it" } else { "" };
        model.show_message(TextTone::Warning, format!("{name} needs no answer{hint}"));
        return;
    }
    let (text, input) = (AnswerText::new(subject.question, subject.message), LineEditor::default());
    open_dialog(model, DialogState::Answer { subject: name, text, answers, chosen: 0, input });
}

pub fn open_filter(model: &mut TopModel) {
    let before = model.current().filter.clone();
    model.dialog = Some(DialogState::Filter { input: LineEditor::from_text(&before), before });
}

/// Inserts pasted text into the dialog.
pub fn insert_text(model: &mut TopModel, text: &str) {
    if let Some(input) = model.dialog.as_mut().and_then(DialogState::input_mut) {
        input.insert(text);
        keep_draft(model);
    }
}

pub fn apply_key(model: &mut TopModel, key: KeyEvent) -> Vec<TopRequest> {
    let size = model.size;
    match (key.code, &mut model.dialog) {
        (_, None) => Vec::new(),
        (KeyCode::Esc, Some(DialogState::Filter { before, .. })) => {
            let before = std::mem::take(before);
            model.dialog = None;
            set_filter(model, before)
        }
        (KeyCode::Esc, Some(_)) => close_dialog(model),
        (KeyCode::Enter, Some(DialogState::Filter { .. })) => finish_filter(model),
        (KeyCode::Char('y' | 'Y'), Some(DialogState::Quit { .. })) => vec![TopRequest::Quit],
        (_, Some(DialogState::Quit { .. })) => close_dialog(model),
        (KeyCode::Char('y' | 'Y'), Some(DialogState::Confirm { .. })) => send_command(model),
        (KeyCode::Char('n' | 'N' | 'q'), Some(DialogState::Confirm { .. })) => close_dialog(model),
        (_, Some(DialogState::Confirm { .. })) => Vec::new(),
        (KeyCode::Enter, Some(_)) => send_command(model),
        (KeyCode::Down | KeyCode::Tab, Some(DialogState::Answer { answers, chosen, .. })) => {
            *chosen = (*chosen + 1) % answers.len().max(1);
            Vec::new()
        }
        (KeyCode::Up | KeyCode::BackTab, Some(DialogState::Answer { answers, chosen, .. })) => {
            *chosen = (*chosen + answers.len().max(1) - 1) % answers.len().max(1);
            Vec::new()
        }
        (KeyCode::PageUp | KeyCode::PageDown, Some(dialog @ DialogState::Answer { .. })) => {
            dialog.scroll_text(key.code == KeyCode::PageDown, size);
            Vec::new()
        }
        (_, Some(dialog)) => {
            dialog.input_mut().map(|input| input.apply_key(key));
            keep_draft(model);
            apply_filter(model)
        }
    }
}

/// Keeps the text of the dialog for the next time it is opened.
fn keep_draft(model: &mut TopModel) {
    let Some(dialog) = &model.dialog else { return };
    if let (Some(key), Some(input)) = (dialog.draft_key(), dialog.input()) {
        match input.is_blank() {
            true => drop(model.drafts.remove(&key)),
            false => drop(model.drafts.insert(key, input.text())),
        }
    }
}

fn close_dialog(model: &mut TopModel) -> Vec<TopRequest> {
    let key = model.dialog.take().and_then(|dialog| dialog.draft_key());
    if key.is_some_and(|key| model.drafts.contains_key(&key)) {
        model.show_message(TextTone::Faint, "the text is kept: the same key opens it again");
    }
    Vec::new()
}

/// Sends the command of the dialog, once.
fn send_command(model: &mut TopModel) -> Vec<TopRequest> {
    let Some(dialog) = &model.dialog else { return Vec::new() };
    let Some(command) = dialog.command() else {
        model.show_message(TextTone::Warning, "type a text first; Esc closes");
        return Vec::new();
    };
    if model.running.contains(&command) {
        return Vec::new();
    }
    // A confirmation has nothing to correct.
    if matches!(dialog, DialogState::Confirm { .. }) {
        model.dialog = None;
    }
    model.show_message(TextTone::Faint, command.describe_running());
    model.running.push(command.clone());
    vec![TopRequest::Execute(command)]
}

/// Applies the filter while it is typed.
pub fn apply_filter(model: &mut TopModel) -> Vec<TopRequest> {
    match &model.dialog {
        Some(DialogState::Filter { input, .. }) if model.current().page != ScreenPage::Why(None) => {
            let filter = input.text();
            set_filter(model, filter)
        }
        _ => Vec::new(),
    }
}

fn finish_filter(model: &mut TopModel) -> Vec<TopRequest> {
    let Some(DialogState::Filter { input, .. }) = model.dialog.take() else { return Vec::new() };
    let text = input.text();
    // On an empty page, the text is the name to explain.
    match model.current().page {
        ScreenPage::Why(None) if !input.is_blank() => open_page(model, ScreenPage::Why(Some(text.trim().to_owned()))),
        _ => set_filter(model, text),
    }
}

pub fn set_filter(model: &mut TopModel, filter: String) -> Vec<TopRequest> {
    let state = model.current_mut();
    if state.filter == filter {
        return Vec::new();
    }
    state.set_filter(filter);
    let in_store = state.page.filters_in_store();
    model.rebuild_rows();
    if in_store { reload_page(model) } else { Vec::new() }
}
