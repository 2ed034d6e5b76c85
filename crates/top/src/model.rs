//! The state of the program: the pages that are open, the dialog, and what the footer says.
//!
//! Invariants:
//! - The last page of `pages` is shown. There is always one.
//! - A page has at most one query under way. A commit meanwhile makes it load again.

use std::collections::{BTreeMap, BTreeSet};

use windlass_app::tone::TextTone;

use crate::dialog::DialogState;
use crate::event::{ErrorLine, StoreCommand};
use crate::message::FooterMessage;
use crate::page::{RowSubject, ScreenPage, ViewData, ViewQuery};
use crate::row::{RowTarget, ScreenRow};
use crate::screens::{self, RowContext};

/// The most pages that Esc goes back through.
const MAX_PAGES: usize = 50;
/// The most pages of a list that is loaded in parts.
pub const MAX_LOADED_PAGES: usize = 10;
/// The most lines of a turn that are kept.
const MAX_LIVE_LINES: usize = 2000;
/// The size below which there is nothing useful to draw.
pub const MIN_SIZE: (u16, u16) = (40, 10);
/// The width from which a second pane stands beside the rows.
const TWO_PANE_WIDTH: u16 = 110;
/// The columns between the rows and the second pane.
const PANE_GAP: u16 = 1;
/// The rows around the page: the tab bar, a line, and the footer.
const FRAME_ROWS: u16 = 3;

/// A page in the history, with its rows and its cursor.
#[derive(Debug)]
pub struct PageState {
    pub page: ScreenPage,
    pub data: Option<ViewData>,
    pub error: Option<ErrorLine>,
    pub filter: String,
    pub rows: Vec<ScreenRow>,
    /// The row under the cursor.
    pub cursor: usize,
    /// The first row on the screen.
    pub top: usize,
    pub toggled: BTreeSet<RowTarget>,
    /// How many pages of a list that is loaded in parts are wanted.
    pages: usize,
    /// The query under way.
    loading: Option<ViewQuery>,
    /// The log has grown since the query under way began.
    is_stale: bool,
}

impl PageState {
    pub fn new(page: ScreenPage) -> Self {
        Self {
            page,
            data: None,
            error: None,
            filter: String::new(),
            rows: Vec::new(),
            cursor: 0,
            top: 0,
            toggled: BTreeSet::new(),
            pages: 1,
            loading: None,
            is_stale: false,
        }
    }

    /// Begins a query for the present filter, unless one is under way.
    pub fn begin_load(&mut self) -> Option<ViewQuery> {
        if self.loading.is_some() {
            self.is_stale = true;
            return None;
        }
        let filter = if self.page.filters_in_store() { self.filter.clone() } else { String::new() };
        let query = ViewQuery { page: self.page.clone(), filter, pages: self.pages };
        self.loading = Some(query.clone());
        Some(query)
    }

    /// Begins a query for one page more if the cursor has reached the end of what was loaded, unless there are enough pages.
    pub fn begin_load_of_more(&mut self) -> Option<ViewQuery> {
        if self.is_loading() || self.pages >= MAX_LOADED_PAGES || !self.is_at_loaded_end() {
            return None;
        }
        self.pages += 1;
        self.begin_load()
    }

    /// Returns whether the list goes on past the cursor, below in a list of tasks, above in the log.
    fn is_at_loaded_end(&self) -> bool {
        let has_target = |row: &ScreenRow| row.target.is_some();
        match &self.data {
            Some(ViewData::Tasks(page)) => page.has_more && !self.rows.iter().skip(self.cursor + 1).any(has_target),
            Some(ViewData::Log { has_older, .. }) => *has_older && !self.rows.iter().take(self.cursor).any(has_target),
            _ => false,
        }
    }

    /// Sets the filter. Its rows are loaded from the first page on.
    pub fn set_filter(&mut self, filter: String) {
        self.filter = filter;
        self.pages = 1;
    }

    pub fn is_loading(&self) -> bool {
        self.loading.is_some()
    }

    /// Takes the answer of the query under way. Returns whether another query is needed.
    pub fn finish_load(&mut self, query: &ViewQuery, loaded: Result<ViewData, ErrorLine>) -> bool {
        if self.loading.as_ref() != Some(query) {
            return false;
        }
        self.loading = None;
        match loaded {
            Ok(data) => (self.data, self.error) = (Some(data), None),
            Err(error) => self.error = Some(error),
        }
        std::mem::take(&mut self.is_stale)
    }

    pub fn target(&self) -> Option<&RowTarget> {
        self.rows.get(self.cursor)?.target.as_ref()
    }

    /// Returns what commands at the cursor are about.
    pub fn subject(&self) -> RowSubject {
        let subject = self.data.as_ref().map(|data| screens::find_subject(data, self.target()));
        subject.unwrap_or_default()
    }

    /// Builds the rows again. The cursor stays at its target, at the end of a log, or at its place.
    fn rebuild_rows(&mut self, width: u16, now: i64) {
        let is_full = self.pages >= MAX_LOADED_PAGES;
        let context = RowContext { width, now, toggled: &self.toggled, is_full };
        let rows = self.data.as_ref().map(|data| screens::build_rows(data, context)).unwrap_or_default();
        let target = self.target().cloned();
        let part = self.rows[..self.cursor.min(self.rows.len())].iter().rev();
        let part = part.take_while(|row| row.target == target).count();
        let was_at_end = self.cursor + 1 >= self.rows.len();
        self.rows = if self.filters_rows() { self.keep_matching_rows(rows) } else { rows };
        let first = target.and_then(|target| self.rows.iter().position(|row| row.target.as_ref() == Some(&target)));
        self.cursor = match first {
            _ if was_at_end && self.follows_end() => self.rows.len().saturating_sub(1),
            Some(first) => {
                let same = self.rows[first..].iter().take_while(|row| row.target == self.rows[first].target).count();
                first + part.min(same.saturating_sub(1))
            }
            None => self.cursor,
        };
        self.settle_cursor();
    }

    /// Returns whether the cursor stays at the end, where new rows appear.
    fn follows_end(&self) -> bool {
        match &self.data {
            Some(ViewData::Session(timeline)) => timeline.session.ended_at.is_none(),
            Some(ViewData::Log { .. }) => true,
            _ => false,
        }
    }

    fn filters_rows(&self) -> bool {
        !self.filter.is_empty() && !self.page.filters_in_store()
    }

    /// Keeps the rows with the filter's text.
    fn keep_matching_rows(&self, rows: Vec<ScreenRow>) -> Vec<ScreenRow> {
        let filter = self.filter.to_lowercase();
        let is_match = |row: &ScreenRow| row.plain_text().to_lowercase().contains(&filter);
        rows.into_iter().filter(is_match).collect()
    }

    /// Moves the cursor to the nearest row that it may stand on.
    fn settle_cursor(&mut self) {
        self.cursor = self.cursor.min(self.rows.len().saturating_sub(1));
        let stands = |at: &usize| self.rows[*at].target.is_some();
        let below = (self.cursor..self.rows.len()).find(stands);
        if let Some(at) = below.or_else(|| (0..self.cursor).rev().find(stands)) {
            self.cursor = at;
        }
    }

    /// Moves the cursor by rows that it may stand on.
    pub fn move_cursor(&mut self, by: isize) {
        let step = |at: usize| if by < 0 { at.checked_sub(1) } else { Some(at + 1).filter(|at| *at < self.rows.len()) };
        let mut left = by.unsigned_abs();
        let mut at = self.cursor;
        while let Some(next) = step(at).filter(|_| left > 0) {
            at = next;
            if self.rows[at].target.is_some() {
                self.cursor = at;
                left -= 1;
            }
        }
    }

    pub fn move_to_edge(&mut self, is_end: bool) {
        self.cursor = if is_end { self.rows.len().saturating_sub(1) } else { 0 };
        self.settle_cursor();
    }

    pub fn move_to_target(&mut self, target: &RowTarget) -> bool {
        let found = self.rows.iter().position(|row| row.target.as_ref() == Some(target));
        self.cursor = found.unwrap_or(self.cursor);
        found.is_some()
    }

    /// Scrolls so that the cursor and the rows that belong to it are on the screen.
    fn scroll_to_cursor(&mut self, height: usize) {
        let after = self.rows.iter().skip(self.cursor + 1);
        let belonging = after.take_while(|row| row.target.is_none() && !row.pieces.is_empty()).count();
        let last = self.cursor + belonging.min(height.saturating_sub(1));
        self.top = self.top.max((last + 1).saturating_sub(height)).min(self.cursor);
        // Headings above the first row that the cursor can reach are shown, too.
        if !self.rows[..self.cursor.min(self.rows.len())].iter().any(|row| row.target.is_some()) && last < height {
            self.top = 0;
        }
        self.top = self.top.min(self.rows.len().saturating_sub(height));
    }
}

/// The text that an agent is writing.
#[derive(Debug, Default)]
pub struct LiveText {
    pub session: String,
    pub lines: Vec<String>,
    pub is_writing: bool,
}

impl LiveText {
    pub fn add_lines(&mut self, lines: Vec<String>) {
        self.lines.extend(lines);
        let surplus = self.lines.len().saturating_sub(MAX_LIVE_LINES);
        self.lines.drain(..surplus);
    }
}

/// A dialog that opens when its page has loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingDialog {
    Answer,
    Merge,
}

/// The state of the program.
#[derive(Debug)]
pub struct TopModel {
    pub project: String,
    pub size: (u16, u16),
    pub now: i64,
    pub pages: Vec<PageState>,
    /// The task beside the list of tasks, on a wide terminal.
    pub side: Option<PageState>,
    pub dialog: Option<DialogState>,
    /// Texts of dialogs that were closed before they were sent.
    pub drafts: BTreeMap<String, String>,
    pub message: Option<FooterMessage>,
    pub running: Vec<StoreCommand>,
    /// What the running command has reported.
    pub notices: Vec<String>,
    pub live: LiveText,
    pub has_help: bool,
    /// The dialog that opens when the page has loaded.
    pub pending_dialog: Option<PendingDialog>,
    /// The session whose output is followed.
    pub followed: Option<String>,
}

impl TopModel {
    pub fn new(project: String, size: (u16, u16), now: i64) -> Self {
        Self {
            project,
            size,
            now,
            pages: vec![PageState::new(ScreenPage::Now)],
            side: None,
            dialog: None,
            drafts: BTreeMap::new(),
            message: None,
            running: Vec::new(),
            notices: Vec::new(),
            live: LiveText::default(),
            has_help: false,
            pending_dialog: None,
            followed: None,
        }
    }

    pub fn current(&self) -> &PageState {
        self.pages.last().expect("there is always a page")
    }

    pub fn current_mut(&mut self) -> &mut PageState {
        self.pages.last_mut().expect("there is always a page")
    }

    /// Opens a page. One that is open already comes to the top, with its cursor and its filter.
    pub fn open_page(&mut self, page: ScreenPage) {
        let known = self.pages.iter().position(|state| state.page == page);
        let state = known.map_or_else(|| PageState::new(page), |at| self.pages.remove(at));
        self.pages.push(state);
        if self.pages.len() > MAX_PAGES {
            self.pages.remove(0);
        }
    }

    /// Goes back to the page before. Returns false at the first one.
    pub fn close_page(&mut self) -> bool {
        let can_close = self.pages.len() > 1;
        if can_close {
            self.pages.pop();
            self.pending_dialog = None;
        }
        can_close
    }

    pub fn is_too_small(&self) -> bool {
        self.size.0 < MIN_SIZE.0 || self.size.1 < MIN_SIZE.1
    }

    /// Returns whether a second pane stands beside the rows.
    pub fn has_side_pane(&self) -> bool {
        let has_contents = match self.current().page {
            ScreenPage::Tasks => true,
            ScreenPage::Session(_) => self.has_live_text(),
            _ => false,
        };
        has_contents && self.size.0 >= TWO_PANE_WIDTH
    }

    /// Returns whether the session of the page writes now, or has written while it was watched.
    pub fn has_live_text(&self) -> bool {
        matches!(&self.current().page, ScreenPage::Session(name) if *name == self.live.session)
            && (self.live.is_writing || !self.live.lines.is_empty())
    }

    /// Returns the columns of the rows, and of the second pane with its line.
    pub fn pane_widths(&self) -> (u16, u16) {
        match self.has_side_pane() {
            true => {
                let side = self.size.0 / 2;
                (self.size.0 - side - PANE_GAP, side)
            }
            false => (self.size.0, 0),
        }
    }

    /// Returns the rows of the terminal that the page and the text below it have.
    pub fn pane_heights(&self) -> (u16, u16) {
        let height = self.size.1.saturating_sub(FRAME_ROWS);
        match self.has_live_text() && !self.has_side_pane() {
            true => {
                let live = (height / 3).max(4);
                (height.saturating_sub(live), live)
            }
            false => (height, 0),
        }
    }

    /// Builds the rows of the page anew.
    pub fn rebuild_rows(&mut self) {
        let ((width, side_width), now) = (self.pane_widths(), self.now);
        self.current_mut().rebuild_rows(width, now);
        if let Some(side) = &mut self.side {
            side.rebuild_rows(side_width.saturating_sub(2), now);
        }
        self.scroll_to_cursor();
    }

    pub fn scroll_to_cursor(&mut self) {
        let height = usize::from(self.pane_heights().0);
        self.current_mut().scroll_to_cursor(height);
    }

    pub fn show_message(&mut self, tone: TextTone, text: impl Into<String>) {
        self.message = Some(FooterMessage::new(tone, text));
    }

    pub fn show_error(&mut self, error: &ErrorLine) {
        self.message = Some(FooterMessage::from_error(error));
    }

    /// Returns whether a box shows the message.
    pub fn has_message_box(&self) -> bool {
        self.message.as_ref().is_some_and(|message| message.needs_box(self.size))
    }
}
