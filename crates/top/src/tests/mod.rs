//! Tests of the screens and of the reaction to events.

mod hostile_text;
mod reactions;
mod samples;
mod snapshots_of_screens;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use crate::event::{TopEvent, TopRequest};
use crate::model::TopModel;
use crate::page::{ScreenPage, ViewData, ViewQuery};
use crate::palette::ColorMode;
use crate::update::{start, update};
use crate::view::view;

/// A program without threads: a test gives it events, and answers its queries.
pub struct TestScreen {
    pub model: TopModel,
    /// The requests that are not queries.
    pub requests: Vec<TopRequest>,
    /// The queries that were answered.
    pub loaded: Vec<ViewQuery>,
    /// The answer to queries.
    pub data: fn(&ViewQuery) -> ViewData,
}

/// Returns the sample for a query.
pub fn sample_data(query: &ViewQuery) -> ViewData {
    match &query.page {
        ScreenPage::Now => ViewData::Now(samples::now_view()),
        ScreenPage::Tasks => ViewData::Tasks(samples::task_page()),
        ScreenPage::Task(_) => {
            ViewData::Task { details: Box::new(samples::task_details()), graph: samples::task_graph() }
        }
        ScreenPage::Sessions => ViewData::Sessions(samples::session_page()),
        ScreenPage::Session(_) => ViewData::Session(Box::new(samples::timeline())),
        ScreenPage::Why(Some(_)) => ViewData::Why(samples::why_view()),
        ScreenPage::Why(None) => ViewData::Empty,
        ScreenPage::Changes => ViewData::Changes(vec![samples::change_summary()]),
        ScreenPage::Change(_) => ViewData::Change(Box::new(samples::change_details())),
        ScreenPage::Log => ViewData::Log { page: samples::log_page(), has_older: false },
    }
}

impl TestScreen {
    pub fn start(size: (u16, u16)) -> Self {
        Self::start_with(size, sample_data)
    }

    pub fn start_with(size: (u16, u16), data: fn(&ViewQuery) -> ViewData) -> Self {
        let mut model = TopModel::new("shop".to_owned(), size, samples::NOW);
        let requests = start(&mut model);
        let mut screen = Self { model, requests: Vec::new(), loaded: Vec::new(), data };
        screen.answer(requests);
        screen
    }

    fn answer(&mut self, mut requests: Vec<TopRequest>) {
        while let Some(request) = requests.pop() {
            match request {
                TopRequest::Load(query) => {
                    self.loaded.push(query.clone());
                    let data = (self.data)(&query);
                    requests.extend(update(&mut self.model, TopEvent::Loaded(query, Box::new(Ok(data)))));
                }
                other => self.requests.push(other),
            }
        }
    }

    pub fn apply(&mut self, event: TopEvent) {
        let requests = update(&mut self.model, event);
        self.answer(requests);
    }

    pub fn press(&mut self, code: KeyCode) {
        self.apply(TopEvent::Key(KeyEvent::new(code, KeyModifiers::NONE)));
    }

    /// Types characters, one key each.
    pub fn type_text(&mut self, text: &str) {
        text.chars().for_each(|c| self.press(KeyCode::Char(c)));
    }

    /// Returns the screen without blanks at the ends of rows. Times of day depend on the time zone.
    pub fn draw(&self) -> String {
        let mut terminal = Terminal::new(TestBackend::new(self.model.size.0, self.model.size.1)).unwrap();
        terminal.draw(|frame| view(&self.model, ColorMode::Colors, frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let rows = buffer.content().chunks(usize::from(self.model.size.0).max(1)).map(|cells| {
            let row: String = cells.iter().map(|cell| cell.symbol()).collect();
            hide_clock(row.trim_end())
        });
        rows.collect::<Vec<_>>().join("\n")
    }

    /// Takes the requests that are not queries.
    pub fn take_requests(&mut self) -> Vec<TopRequest> {
        std::mem::take(&mut self.requests)
    }
}

/// Replaces a time of day by letters.
fn hide_clock(row: &str) -> String {
    let mut characters: Vec<char> = row.chars().collect();
    for at in 0..characters.len().saturating_sub(7) {
        let is_clock = characters[at..at + 8].iter().enumerate().all(|(place, c)| match place {
            2 | 5 => *c == ':',
            _ => c.is_ascii_digit(),
        });
        if is_clock {
            characters[at..at + 8].copy_from_slice(&['h', 'h', ':', 'm', 'm', ':', 's', 's']);
        }
    }
    characters.into_iter().collect()
}
