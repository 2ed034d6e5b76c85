//! Every `console` example in the documents does what it shows, and every link leads somewhere.
//!
//! Each page has an empty directory of its own; its examples run in it one after the other. A line that begins with `$ ` is
//! run by a shell, `> ` continues it, and the lines below are its output, on either stream. A line `...` stands for
//! any lines, and at the end of a line for its rest. Times and durations may be any, and the directory is called `/home/ann/shop`.
//!
//! With `UPDATE=1` the output of an example that shows no `...` is written into its page as it was printed.

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZero;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;

use crate::support::server::TestHttpServer;
use crate::support::{TestWorld, WINDLASS, normalize_durations, normalize_times_and_paths};

const SHOWN_DIRECTORY: &str = "/home/ann/shop";

/// A command and what it prints.
struct ConsoleExample {
    /// The number of its line, from 1.
    line: usize,
    command: String,
    output: Vec<String>,
    /// The lines of the page that show its output, from 0.
    shown: Range<usize>,
}

fn examples(text: &str) -> Vec<ConsoleExample> {
    let mut examples: Vec<ConsoleExample> = Vec::new();
    let mut within = false;
    for (number, line) in (1..).zip(text.lines()) {
        match line {
            "```console" => within = true,
            "```" => within = false,
            _ if !within => {}
            line if line.starts_with("$ ") => {
                let command = line[2..].to_owned();
                examples.push(ConsoleExample { line: number, command, output: Vec::new(), shown: number..number });
            }
            line if line.starts_with("> ") => {
                let last = examples.last_mut().expect("a continuation has a beginning");
                last.command = format!("{}\n{}", last.command, &line[2..]);
                last.shown = number..number;
            }
            line => {
                let last = examples.last_mut().expect("output comes from a command");
                last.output.push(normalize_durations(&normalize_times_and_paths(line, Path::new("\0"))));
                last.shown.end = number;
            }
        }
    }
    for example in &mut examples {
        while example.output.last().is_some_and(|line| line.is_empty()) {
            example.output.pop();
        }
    }
    examples
}

/// Whether the lines are as written, where `...` stands for any number of them.
pub fn matches_output(written: &[String], printed: &[&str]) -> bool {
    match written.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first == "..." => (0..=printed.len()).any(|skip| matches_output(rest, &printed[skip..])),
        Some((first, rest)) => printed.split_first().is_some_and(|(line, below)| {
            let same = match first.strip_suffix("...") {
                Some(beginning) => line.starts_with(beginning),
                None => line == first,
            };
            same && matches_output(rest, below)
        }),
    }
}

/// The output of an example that differs from what its page shows.
struct OutputDifference {
    file: PathBuf,
    line: usize,
    command: String,
    shown: Range<usize>,
    has_gaps: bool,
    printed: Vec<String>,
}

impl OutputDifference {
    /// Returns whether the page can show the output as it was printed.
    fn can_be_shown(&self, world: &TestWorld) -> bool {
        let elsewhere = world.directory.parent().unwrap().to_string_lossy().into_owned();
        let is_shown = |line: &String| {
            !["$ ", "> ", "```"].iter().any(|sign| line.starts_with(sign))
                && line != "..."
                && !line.contains(&elsewhere)
        };
        !self.has_gaps && self.printed.iter().all(is_shown)
    }

    fn describe(&self) -> String {
        let Self { file, line, command, printed, .. } = self;
        format!("{}, line {line}: `{command}` prints\n{}\n", file.display(), printed.join("\n"))
    }
}

/// Runs the examples of a page and describes those that print something else than the page shows. With `UPDATE=1` the page shows
/// it afterwards. `$CHAT` is a server that keeps what it is told in `chat.jsonl`.
fn check_page(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    let world = TestWorld::empty();
    let chat = TestHttpServer::recording_to(world.path("chat.jsonl"));
    std::os::unix::fs::symlink(WINDLASS, world.program_directory().join("windlass")).unwrap();
    let mut differences = Vec::new();
    for ConsoleExample { line, command, output, shown } in examples(&text) {
        let mut shell = world.program("sh");
        shell.args(["-c", &format!("exec 2>&1\n{command}")]).env("CHAT", chat.host());
        let ran = world.run_command(&mut shell);
        let filtered = normalize_durations(&normalize_times_and_paths(&ran.stdout, &world.directory))
            .replace("$WORK", SHOWN_DIRECTORY);
        let filtered: Vec<_> = filtered.trim_end().lines().map(str::trim_end).collect();
        if matches_output(&output, &filtered) {
            continue;
        }
        let printed = ran.stdout.replace(&*world.directory.to_string_lossy(), SHOWN_DIRECTORY);
        let printed = printed.trim_end().lines().map(|line| line.trim_end().to_owned()).collect();
        let has_gaps = output.iter().any(|line| line.ends_with("..."));
        differences.push(OutputDifference { file: page.to_owned(), line, command, shown, has_gaps, printed });
    }
    if std::env::var_os("UPDATE").is_some() {
        let (updates, rest): (Vec<_>, Vec<_>) = differences.into_iter().partition(|each| each.can_be_shown(&world));
        update_page(page, &text, &updates);
        differences = rest;
    }
    differences.iter().map(OutputDifference::describe).collect()
}

/// Writes what was printed into a page.
fn update_page(page: &Path, text: &str, updates: &[OutputDifference]) {
    if updates.is_empty() {
        return;
    }
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for OutputDifference { shown, printed, .. } in updates.iter().rev() {
        lines.splice(shown.clone(), printed.iter().cloned());
    }
    fs::write(page, lines.join("\n") + "\n").unwrap();
}

fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every page below a directory.
fn pages_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let pages = entries.flat_map(|path| if path.is_dir() { pages_below(&path) } else { vec![path] });
    pages.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// Checks the examples of these pages, a few pages at a time.
fn check_examples(pages: &[PathBuf]) {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let share = pages.len().div_ceil(cores).max(1);
    let wrong: Vec<String> = thread::scope(|scope| {
        let check_all = |pages: &[PathBuf]| pages.iter().flat_map(|page| check_page(page)).collect::<Vec<_>>();
        let threads: Vec<_> = pages.chunks(share).map(|pages| scope.spawn(move || check_all(pages))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn check_examples_below(part: &str) {
    let pages = pages_below(&repository_root().join("docs").join(part));
    assert!(!pages.is_empty(), "there are no pages in docs/{part}");
    check_examples(&pages);
}

#[test]
fn examples_of_tutorial_do_what_they_show() {
    check_examples_below("tutorial");
}

#[test]
fn examples_of_recipes_do_what_they_show() {
    check_examples_below("how-to");
}

#[test]
fn examples_of_reference_do_what_they_show() {
    check_examples_below("reference");
}

#[test]
fn examples_of_explanation_do_what_they_show() {
    check_examples_below("explanation");
}

/// Every other page, but those for people who change Windlass.
#[test]
fn examples_of_other_pages_do_what_they_show() {
    let parts = ["tutorial", "how-to", "reference", "explanation", "internals"]
        .map(|part| repository_root().join("docs").join(part));
    let mut pages = pages_below(&repository_root().join("docs"));
    pages.retain(|page| !parts.iter().any(|part| page.starts_with(part)));
    pages.push(repository_root().join("README.md"));
    check_examples(&pages);
}

#[test]
fn every_recipe_shows_something() {
    for page in pages_below(&repository_root().join("docs/how-to")) {
        let shows = |example: &ConsoleExample| example.command.contains("windlass ") && !example.output.is_empty();
        let text = fs::read_to_string(&page).unwrap();
        assert!(examples(&text).iter().any(shows), "{} shows nothing that can be looked at", page.display());
    }
}

/// The lines of a page outside of code blocks.
fn prose_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut within = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        within ^= is_fence;
        !within && !is_fence
    })
}

/// The anchors of a page's headings, as forges and mdbook make them.
fn heading_anchors(text: &str) -> BTreeSet<String> {
    let mut anchors: BTreeSet<String> = BTreeSet::new();
    for line in prose_lines(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let slug = heading.trim().to_lowercase().replace(' ', "-");
        let slug: String = slug.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect();
        let further = (1..).map(|number| format!("{slug}-{number}"));
        let free = std::iter::once(slug.clone()).chain(further).find(|anchor| !anchors.contains(anchor));
        anchors.extend(free);
    }
    anchors
}

/// Links between the documents lead to a file, and to a heading of it where they name one.
#[test]
fn links_lead_somewhere() {
    let mut pages = pages_below(&repository_root().join("docs"));
    pages.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| repository_root().join(name)),
    );
    let mut wrong = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for line in prose_lines(&text) {
            for target in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
                if file.contains("://") {
                    continue;
                }
                let led_to = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
                let is_heading =
                    || fs::read_to_string(&led_to).is_ok_and(|text| heading_anchors(&text).contains(anchor));
                if !led_to.exists() || !(anchor.is_empty() || is_heading()) {
                    wrong.push(format!("{}: {target} leads nowhere", page.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
