//! Opening and loading pages.

use crate::event::TopRequest;
use crate::model::{PageState, TopModel};
use crate::page::ScreenPage;

/// Opens a page, and loads it.
pub fn open_page(model: &mut TopModel, page: ScreenPage) -> Vec<TopRequest> {
    model.open_page(page);
    model.pending_dialog = None;
    model.rebuild_rows();
    reload_page(model)
}

/// Loads the page that is shown, and the task beside it.
pub fn reload_page(model: &mut TopModel) -> Vec<TopRequest> {
    let query = model.current_mut().begin_load();
    let side = model.side.as_mut().and_then(PageState::begin_load);
    query.into_iter().chain(side).map(TopRequest::Load).collect()
}
