//! Text that tries to act on the terminal, in every place that shows text.

use crossterm::event::KeyCode;
use windlass_app::tone::TextTone;
use windlass_app::views::OpenQuestion;

use super::{TestScreen, sample_data, samples};
use crate::event::{ErrorLine, LiveUpdate, TopEvent};
use crate::page::{ViewData, ViewQuery};

/// Escape sequences, line ends, invisible and direction-changing characters, wide and combining ones.
const HOSTILE: &str =
    "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\r\n\t\u{202e}evil\u{2066}\u{200b}\u{feff}漢字e\u{301}☺\u{fe0f}\u{0}\u{7f}";

/// Returns the samples with hostile text in each field.
fn hostile_data(query: &ViewQuery) -> ViewData {
    let bad = || HOSTILE.repeat(3);
    let mut data = sample_data(query);
    match &mut data {
        ViewData::Now(view) => {
            view.warnings.push(bad());
            view.waiting.iter_mut().for_each(|item| {
                (item.title, item.reason) = (bad(), bad());
                item.evidence = vec![bad(); 5];
                item.message = Some(bad());
                item.task = Some(bad());
            });
            view.working.iter_mut().for_each(|session| (session.goal, session.agent) = (bad(), bad()));
            view.next.iter_mut().for_each(|task| (task.goal, task.priority) = (bad(), bad()));
        }
        ViewData::Tasks(page) => page.tasks.iter_mut().for_each(|task| task.goal = bad()),
        ViewData::Task { details, graph } => {
            details.question = Some(OpenQuestion { reason: bad(), ..samples::question(&bad()) });
            details.description = Some(bad());
            details.facts.iter_mut().for_each(|fact| (fact.label, fact.text) = (bad(), bad()));
            details.notes.iter_mut().for_each(|note| (note.author, note.text) = (bad(), bad()));
            details.task.labels = vec![bad()];
            graph.tasks.iter_mut().for_each(|task| task.goal = bad());
            graph.edges.iter_mut().for_each(|edge| edge.kind = bad());
        }
        ViewData::Sessions(page) => {
            page.sessions.iter_mut().for_each(|session| (session.name, session.goal) = (bad(), bad()));
        }
        ViewData::Session(timeline) => {
            timeline.pending_feedback = vec![bad()];
            timeline.answers = vec![samples::answer("continue")];
            timeline.question = Some(OpenQuestion { reason: bad(), ..samples::question(&bad()) });
            for item in timeline.groups.iter_mut().flat_map(|group| &mut group.items) {
                (item.title, item.text, item.tone) = (bad(), Some(bad()), TextTone::Bad);
                item.needs_attention = true;
                (item.evidence, item.details) = (vec![bad()], vec![bad()]);
            }
        }
        ViewData::Why(view) => {
            (view.name, view.state, view.next_command) = (bad(), bad(), Some(bad()));
            view.causes.iter_mut().for_each(|cause| cause.text = bad());
            view.has_more_causes = true;
            for fact in &mut view.facts {
                (fact.sentence, fact.kind) = (bad(), bad());
                (fact.evidence, fact.details) = (vec![bad(); 4], vec![bad()]);
            }
        }
        ViewData::Changes(changes) => {
            changes.iter_mut().for_each(|change| (change.goal, change.url) = (bad(), Some(bad())))
        }
        ViewData::Change(details) => {
            (details.merge_remote, details.change.base) = (Some(bad()), bad());
            details.diff_problem = Some(bad());
            details.has_landed = true;
            details.findings.iter_mut().for_each(|finding| (finding.label, finding.text) = (bad(), bad()));
            details.facts = details.findings.clone();
            details.checks.iter_mut().for_each(|check| (check.hook, check.output) = (bad(), vec![bad()]));
            for file in &mut details.file_diffs {
                file.path = bad();
                file.hunks.iter_mut().for_each(|hunk| {
                    hunk.header = bad();
                    hunk.lines.iter_mut().for_each(|line| line.text = bad());
                });
            }
        }
        ViewData::Log { page, .. } => {
            page.entries.iter_mut().for_each(|entry| (entry.summary, entry.kind) = (bad(), bad()));
        }
        ViewData::Empty => {}
    }
    data
}

#[track_caller]
fn check_harmless(screen: &TestScreen) {
    let drawn = screen.draw();
    let found = drawn.chars().find(|c| *c != '\n' && windlass_text::is_unsafe_character(*c));
    assert_eq!(found, None, "{drawn}");
    assert_eq!(drawn.lines().count(), usize::from(screen.model.size.1), "{drawn}");
}

#[test]
fn hostile_text_is_harmless_on_every_screen() {
    for size in [(40, 10), (60, 20), (100, 30), (160, 40)] {
        for keys in ["", "2", "2l", "l", "jjl", "jjla", "w", "wjjj ", "55", "5l", "5lm", "6", "333", "a"] {
            let mut screen = TestScreen::start_with(size, hostile_data);
            for key in keys.chars() {
                screen.press(KeyCode::Char(key));
                check_harmless(&screen);
            }
        }
    }
}

#[test]
fn hostile_messages_and_typed_text_are_harmless() {
    let mut screen = TestScreen::start_with((60, 20), hostile_data);
    let line = ErrorLine { message: HOSTILE.to_owned(), hint: Some(HOSTILE.to_owned()), is_error: true };
    screen.apply(TopEvent::Notice(line));
    check_harmless(&screen);
    for opening in ['/', 'a', 's'] {
        screen.press(KeyCode::Char(opening));
        screen.apply(TopEvent::Paste(HOSTILE.repeat(40)));
        check_harmless(&screen);
        screen.press(KeyCode::Esc);
    }
    screen.model.project = HOSTILE.to_owned();
    check_harmless(&screen);
}

#[test]
fn hostile_live_text_is_harmless() {
    let mut screen = TestScreen::start((60, 20));
    screen.type_text("jjl");
    let name = samples::session().name;
    screen.apply(TopEvent::Live(LiveUpdate::TurnStarted(name.clone())));
    screen.apply(TopEvent::Live(LiveUpdate::Lines(name, vec![HOSTILE.to_owned(); 30])));
    check_harmless(&screen);
}
