//! Keys that begin a command of the person.

use windlass_app::tone::TextTone;

use super::dialogs;
use super::pages::open_page;
use crate::dialog::DialogState;
use crate::event::{StoreCommand, TopRequest};
use crate::model::TopModel;
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
        (None, Some(task), _) => open_to_answer(model, ScreenPage::Task(task)),
        (None, None, Some(session)) => open_to_answer(model, ScreenPage::Session(session)),
        (None, None, None) => refuse(model, "no task or session is selected: a answers one that waits"),
    }
}

fn open_to_answer(model: &mut TopModel, page: ScreenPage) -> Vec<TopRequest> {
    let requests = open_page(model, page);
    model.opens_answer = true;
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

pub fn merge_change(model: &mut TopModel) {
    let subject = model.current().subject();
    match subject.task.filter(|_| subject.can_merge) {
        Some(task) => {
            let question = format!("Merge the change of {task} into its base?");
            let command = StoreCommand::MergeChange { task };
            dialogs::open_dialog(model, DialogState::Confirm { question, command });
        }
        None => drop(refuse(model, "no change that can be merged is selected: m merges one")),
    }
}

/// Quits. While a command runs, it takes a second key.
pub fn quit(model: &mut TopModel) -> Vec<TopRequest> {
    let Some(running) = model.running.first() else { return vec![TopRequest::Quit] };
    let question = format!("{} Quit anyway?", running.describe_running());
    model.dialog = Some(DialogState::Quit { question });
    Vec::new()
}
