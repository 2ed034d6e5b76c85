//! Keys that begin a command of the person.

use windlass_app::tone::TextTone;

use super::dialogs;
use super::pages::open_page;
use crate::dialog::DialogState;
use crate::event::{StoreCommand, TopRequest};
use crate::model::{PendingDialog, TopModel};
use crate::page::ScreenPage;

/// Says in the footer why a key does nothing here.
pub fn refuse(model: &mut TopModel, reason: &str) -> Vec<TopRequest> {
    model.show_message(TextTone::Warning, reason);
    Vec::new()
}

/// Opens the answers to what is under the cursor. A page that does not know them is left for the one of the task.
pub fn answer(model: &mut TopModel) -> Vec<TopRequest> {
    let subject = model.current().subject();
    match (subject.answers, subject.task, subject.session) {
        (Some(_), ..) => {
            dialogs::open_answer(model);
            Vec::new()
        }
        (None, Some(task), _) => open_with_dialog(model, ScreenPage::Task(task), PendingDialog::Answer),
        (None, None, Some(session)) => open_with_dialog(model, ScreenPage::Session(session), PendingDialog::Answer),
        (None, None, None) => refuse(model, "no task or session is selected: a answers one that waits"),
    }
}

/// Opens a page, and a dialog when the page has loaded.
fn open_with_dialog(model: &mut TopModel, page: ScreenPage, dialog: PendingDialog) -> Vec<TopRequest> {
    let requests = open_page(model, page);
    model.pending_dialog = Some(dialog);
    requests
}

pub fn say(model: &mut TopModel) {
    let Some(session) = model.current().subject().session else {
        refuse(model, "no session is selected: s says something to its agent");
        return;
    };
    dialogs::open_dialog(model, DialogState::Say { session, input: Default::default() });
}

pub fn cancel_session(model: &mut TopModel) {
    let Some(session) = model.current().subject().session else {
        refuse(model, "no session is selected: c ends one");
        return;
    };
    dialogs::open_dialog(model, DialogState::Cancel { session, input: Default::default() });
}

/// Asks before a merge, on the page of the change: only it knows what a merge does.
pub fn merge_change(model: &mut TopModel) -> Vec<TopRequest> {
    let subject = model.current().subject();
    let Some(task) = subject.task.filter(|_| subject.can_merge) else {
        return refuse(model, "no change that can be merged is selected: m merges one");
    };
    if !matches!(model.current().page, ScreenPage::Change(_)) {
        return open_with_dialog(model, ScreenPage::Change(task), PendingDialog::Merge);
    }
    let push = subject.merge_push.map(|push| format!(" {push}")).unwrap_or_default();
    let checks = "The checks before a merge run first, which can take a while.";
    let question = match subject.landed_base {
        Some(base) => format!("The change of {task} is already in {base}: record it?"),
        None => format!("Merge the change of {task} into its base? {checks}{push}"),
    };
    let command = StoreCommand::MergeChange { task };
    dialogs::open_dialog(model, DialogState::Confirm { question, command });
    Vec::new()
}

/// Quits. While a command runs, it takes a second key.
pub fn quit(model: &mut TopModel) -> Vec<TopRequest> {
    let Some(running) = model.running.first() else { return vec![TopRequest::Quit] };
    let question = format!("{} Quit anyway?", running.describe_running());
    model.dialog = Some(DialogState::Quit { question });
    Vec::new()
}
