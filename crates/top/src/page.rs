//! The pages of the program, and what each shows.

use windlass_app::answer_choice::AnswerChoice;
use windlass_app::views::{
    ChangeDetails, ChangeSummary, LogPage, NowView, OpenQuestion, SessionPage, SessionTimeline, TaskDetails,
    TaskGraphView, TaskPage, WhyView,
};

/// A screen of the tab bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScreenTab {
    Now,
    Tasks,
    Session,
    Why,
    Change,
    Log,
}

impl ScreenTab {
    pub const ALL: [Self; 6] = [Self::Now, Self::Tasks, Self::Session, Self::Why, Self::Change, Self::Log];

    pub fn title(self) -> &'static str {
        match self {
            Self::Now => "Now",
            Self::Tasks => "Tasks",
            Self::Session => "Session",
            Self::Why => "Why",
            Self::Change => "Change",
            Self::Log => "Log",
        }
    }

    /// Returns the screen that is this many screens further.
    pub fn step(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|tab| *tab == self).unwrap_or_default();
        Self::ALL[(at + by) % Self::ALL.len()]
    }
}

/// A page: a screen and its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScreenPage {
    Now,
    Tasks,
    Task(String),
    Sessions,
    Session(String),
    /// The explanation of a task, session, hook or conversation; without a name, a page that asks for one.
    Why(Option<String>),
    Changes,
    Change(String),
    Log,
}

impl ScreenPage {
    pub fn tab(&self) -> ScreenTab {
        match self {
            Self::Now => ScreenTab::Now,
            Self::Tasks | Self::Task(_) => ScreenTab::Tasks,
            Self::Sessions | Self::Session(_) => ScreenTab::Session,
            Self::Why(_) => ScreenTab::Why,
            Self::Changes | Self::Change(_) => ScreenTab::Change,
            Self::Log => ScreenTab::Log,
        }
    }

    /// Returns whether the filter is part of the query, so that it also finds what was not loaded.
    pub fn filters_in_store(&self) -> bool {
        matches!(self, Self::Tasks | Self::Log)
    }
}

/// What a page needs from the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewQuery {
    pub page: ScreenPage,
    pub filter: String,
    /// How many pages of rows are loaded, in lists that are loaded in parts.
    pub pages: usize,
}

/// The contents of a page.
#[derive(Debug, Clone, PartialEq)]
pub enum ViewData {
    Now(NowView),
    Tasks(TaskPage),
    Task {
        details: Box<TaskDetails>,
        graph: TaskGraphView,
    },
    Sessions(SessionPage),
    Session(Box<SessionTimeline>),
    Why(WhyView),
    /// Nothing to load.
    Empty,
    Changes(Vec<ChangeSummary>),
    Change(Box<ChangeDetails>),
    Log {
        page: LogPage,
        /// Whether the log has older events that match.
        has_older: bool,
    },
}

/// The task and the session that a row is about, for commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowSubject {
    pub task: Option<String>,
    pub session: Option<String>,
    /// The answers that a person can give now; absent where a view does not tell.
    pub answers: Option<Vec<AnswerChoice>>,
    /// The question, in one line.
    pub question: String,
    /// The last message of the agent before the question.
    pub message: Option<String>,
    pub can_merge: bool,
    /// The base that has the change already, so that a merge only records it.
    pub landed_base: Option<String>,
    /// What a merge pushes, in a sentence; absent where a view does not tell.
    pub merge_push: Option<String>,
    /// The session has ended.
    pub is_over: bool,
}

impl RowSubject {
    /// Takes the words of a question, if there is one.
    #[must_use]
    pub fn with_question(mut self, question: Option<&OpenQuestion>) -> Self {
        let Some(OpenQuestion { reason, message, .. }) = question else { return self };
        if !reason.is_empty() {
            self.question.clone_from(reason);
        }
        self.message.clone_from(message);
        self
    }

    /// Returns the subject's name for an answer: the session that asks, or the task.
    pub fn answer_name(&self) -> Option<&str> {
        self.task.as_deref().or(self.session.as_deref())
    }

    /// Returns the name for an explanation, with the narrowest meaning.
    pub fn why_name(&self) -> Option<&str> {
        self.task.as_deref().or(self.session.as_deref())
    }
}
