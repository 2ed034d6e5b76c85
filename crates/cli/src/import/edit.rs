//! Lines put into a configuration that somebody has written, without touching what is there.
//!
//! Where a line belongs is found by the places of keys and by indentation. That is right for YAML as people write it;
//! where it is not, the result says something else than was meant, which is seen before anybody gets it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;

use super::additions::is_same;
use super::field::key;
use super::yaml::{by_point, hook_lines, limit_line, setting_lines};
use super::{Additions, Setting, Wanted, tuning, yaml};
use crate::config::{self, Config, Hook, Node, Point, Value};

/// Why nothing can be added to a text by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// How the text is written.
    Layout(String),
    /// What is written there stands for something else too.
    Shared,
    /// What the configuration would say then: it cannot be used.
    Wrong(String),
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layout(why) => f.write_str(why),
            Self::Shared => {
                f.write_str("something else would change with it, as where an anchor is used in several places")
            }
            Self::Wrong(why) => write!(f, "the configuration would be wrong then: {why}"),
        }
    }
}

impl Obstacle {
    /// Says of which hook.
    pub fn of(self, hook: &str) -> Self {
        let hook = config::quoted(hook);
        match self {
            Self::Layout(why) => Self::Layout(format!("{hook}: {why}")),
            Self::Shared => Self::Layout(format!("{hook}: {}", Self::Shared)),
            Self::Wrong(why) => Self::Wrong(format!("{hook}: {why}")),
        }
    }
}

/// What is to be added, alone.
pub fn fragment(additions: &Additions) -> String {
    yaml::fragment(additions)
}

/// The text of a configuration with everything that is to be added or changed, which is known to say just that.
pub fn edit(config: &Config, additions: &Additions) -> Result<String, Obstacle> {
    let tuned = tuning::applied(config, &additions.changes)?;
    let config = tuned.as_ref().unwrap_or(config);
    if additions.is_no_more() {
        return Ok(config.text().to_string());
    }
    let text = with_retries(config.text(), additions);
    let edited = match config.exists() {
        false => format!("version: 1\n\n{}", fragment(additions)),
        true => changed(&text, additions)?,
    };
    check(config, &text, additions, &edited)?;
    Ok(edited)
}

/// Where a text has its `max_hook_retries`, if it is written as a number beside its name.
pub fn retries(text: &str) -> Option<Range<usize>> {
    let tree = config::tree(text).ok()?;
    let Value::Map(top) = &tree.value else { return None };
    let Value::Map(limits) = &find(top, |name| name == "limits")?.1.value else { return None };
    let (name, value) = find(limits, is_retries)?;
    let beside = text.get(name.at.start..value.at.start)?;
    let between = beside.split_once(':')?.1;
    let is_number = text[value.at.clone()].bytes().all(|digit| digit.is_ascii_digit());
    (is_number && !value.at.is_empty() && between.trim_matches(' ').is_empty()).then(|| value.at.clone())
}

fn is_retries(name: &str) -> bool {
    matches!(name, "max_hook_retries" | "maxHookRetries")
}

/// The text with the number of retries that is to be taken over, where it has one: all else only adds to it.
fn with_retries(text: &str, additions: &Additions) -> String {
    let mut changed = text.to_owned();
    for setting in &additions.settings {
        if let (Setting::MaxHookRetries(most), Some(place)) = (setting, retries(&changed)) {
            changed.replace_range(place, &most.to_string());
        }
    }
    changed
}

pub fn obstacle<T>(why: impl Into<String>) -> Result<T, Obstacle> {
    Err(Obstacle::Layout(why.into()))
}

fn changed(text: &str, additions: &Additions) -> Result<String, Obstacle> {
    let tree = config::tree(text).map_err(|problem| Obstacle::Layout(problem.to_string()))?;
    let top = match &tree.value {
        Value::Null => &[][..],
        Value::Map(entries) => entries,
        _ => return obstacle("it is no map"),
    };
    if text[tree.at.start.min(text.len())..].starts_with('{') {
        return obstacle("it is written in braces");
    }
    let mut editing = Editing::of(text, top);
    let points = by_point(additions);
    let lines = |hooks: &[&Wanted], indent| hooks.iter().map(|hook| hook_lines(hook, indent)).collect();
    let points: Vec<(Point, Lines<'_>)> = points
        .iter()
        .map(|(point, hooks)| (*point, Box::new(move |indent| lines(hooks, indent)) as Lines<'_>))
        .collect();
    editing.put(top, &points)?;
    for setting in &additions.settings {
        editing.setting(top, *setting)?;
    }
    Ok(editing.done())
}

/// The lines of hooks, so far to the right.
pub type Lines<'a> = Box<dyn Fn(usize) -> String + 'a>;

/// A text that is being changed.
pub struct Editing<'a> {
    text: &'a str,
    /// What stands in the place of what, in any order.
    edits: Vec<(Range<usize>, String)>,
    /// What comes after everything else.
    end: String,
    /// How far the keys at the top stand to the right.
    indent: usize,
}

/// What follows the colon of a key on its line.
enum Rest {
    Nothing,
    /// An empty list, with its place.
    EmptyList(Range<usize>),
    Something,
}

impl<'a> Editing<'a> {
    /// A text with these keys at its top.
    pub fn of(text: &'a str, top: &[(Node, Node)]) -> Self {
        let mut editing = Self { text, edits: Vec::new(), end: String::new(), indent: 0 };
        editing.indent = top.first().map_or(0, |(first, _)| editing.column(first.at.start));
        editing
    }

    pub fn replace(&mut self, place: Range<usize>, new: &str) {
        self.edits.push((place, new.to_owned()));
    }

    /// Puts hooks at the end of what there is of their points.
    pub fn put(&mut self, top: &[(Node, Node)], points: &[(Point, Lines<'_>)]) -> Result<(), Obstacle> {
        if points.is_empty() {
            return Ok(());
        }
        let whole =
            |point: Point, lines: &Lines<'_>, indent: usize| format!("{:indent$}{point}:\n{}", "", lines(indent + 2));
        let Some((name, hooks)) = find(top, |name| name == "hooks") else {
            let lines: String = points.iter().map(|(point, lines)| whole(*point, lines, 2)).collect();
            self.append(&format!("hooks:\n{lines}"));
            return Ok(());
        };
        let entries = match (&hooks.value, self.rest(name)) {
            (Value::Null, Rest::Nothing) => &[][..],
            (Value::Map(entries), Rest::Nothing) => entries,
            _ => return obstacle("its `hooks` are written on one line, or with an anchor"),
        };
        let own = self.column(name.at.start);
        let indent = entries.first().map_or(own + 2, |(first, _)| self.column(first.at.start));
        let is_there = |point: Point| find(entries, |name| Point::parse(name) == Some(point));
        // What belongs to the last point comes before what comes after it.
        for (point, lines) in points {
            if let Some((name, list)) = is_there(*point) {
                self.extend_list(*point, name, list, lines)?;
            }
        }
        let place = match entries.last() {
            Some((last, _)) => self.block_end(self.line(last.at.start), indent, true),
            None => self.line_end(self.line(name.at.start)),
        };
        for (point, lines) in points.iter().filter(|(point, _)| is_there(*point).is_none()) {
            self.insert(place, &whole(*point, lines, indent));
        }
        Ok(())
    }

    fn extend_list(
        &mut self,
        point: Point,
        name: &Node,
        list: &Node,
        lines: impl Fn(usize) -> String,
    ) -> Result<(), Obstacle> {
        let here = self.line(name.at.start);
        match (self.rest(name), &list.value) {
            (Rest::EmptyList(place), _) => {
                let indent = self.column(name.at.start) + 2;
                self.edits.push((place, String::new()));
                self.insert(self.line_end(here), &lines(indent));
            }
            (Rest::Nothing, Value::List(entries)) => {
                let Some(last) = entries.last() else { return obstacle(format!("its `{point}` cannot be found")) };
                let line = self.line(last.at.start);
                let before = &self.text[self.line_start(line)..last.at.start];
                let dash = before.trim_start_matches(' ');
                let Some(blanks) =
                    dash.strip_prefix('-').filter(|blanks| !blanks.is_empty() && blanks.trim_matches(' ').is_empty())
                else {
                    return obstacle(format!("the last hook of `{point}` is not written after a `- `"));
                };
                let indent = before.len() - blanks.len() - 1;
                self.insert(self.block_end(line, indent, false), &lines(indent));
            }
            _ => return obstacle(format!("its list of `{point}` is written on one line, or with an anchor")),
        }
        Ok(())
    }

    fn setting(&mut self, top: &[(Node, Node)], setting: Setting) -> Result<(), Obstacle> {
        let limits = find(top, |name| name == "limits");
        let (Setting::MaxHookRetries(_), Some((name, limits))) = (setting, limits) else {
            self.append(&setting_lines(setting));
            return Ok(());
        };
        if matches!(&limits.value, Value::Map(entries) if find(entries, is_retries).is_some()) {
            // It is there already.
            return Ok(());
        }
        let line = limit_line(setting);
        let (indent, place) = match (&limits.value, self.rest(name)) {
            (Value::Null, Rest::Nothing) => (self.column(name.at.start) + 2, self.line_end(self.line(name.at.start))),
            (Value::Map(entries), Rest::Nothing) if !entries.is_empty() => {
                let (last, _) = &entries[entries.len() - 1];
                let indent = self.column(last.at.start);
                (indent, self.block_end(self.line(last.at.start), indent, true))
            }
            _ => return obstacle("its `limits` are written on one line, or with an anchor"),
        };
        self.insert(place, &format!("{:indent$}{line}", ""));
        Ok(())
    }

    fn insert(&mut self, place: usize, lines: &str) {
        self.edits.push((place..place, lines.to_owned()));
    }

    /// Puts lines after everything else.
    fn append(&mut self, lines: &str) {
        if self.end.is_empty() && !self.text.trim().is_empty() {
            self.end.push('\n');
        }
        for line in lines.split_inclusive('\n') {
            let indent = if line.trim().is_empty() { 0 } else { self.indent };
            self.end.push_str(&format!("{:indent$}{line}", ""));
        }
    }

    pub fn done(mut self) -> String {
        if !self.end.is_empty() {
            let end = std::mem::take(&mut self.end);
            self.insert(self.text.len(), &end);
        }
        // Those of one place stay in the order in which they came.
        self.edits.sort_by_key(|(place, _)| (place.start, place.end));
        let newline = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
        let mut edited = String::with_capacity(self.text.len() + 1024);
        let mut from = 0;
        for (place, lines) in &self.edits {
            edited.push_str(&self.text[from..place.start]);
            // The last line of a file may have no end.
            if !lines.is_empty() && !edited.is_empty() && !edited.ends_with('\n') {
                edited.push_str(newline);
            }
            edited.push_str(&lines.replace('\n', newline));
            from = place.end;
        }
        edited + &self.text[from..]
    }

    /// The number of the line that a place is on, from 0.
    pub fn line(&self, offset: usize) -> usize {
        self.text[..offset].matches('\n').count()
    }

    pub fn line_start(&self, line: usize) -> usize {
        if line == 0 {
            return 0;
        }
        self.text.match_indices('\n').nth(line - 1).map_or(self.text.len(), |(offset, _)| offset + 1)
    }

    /// Where the next line begins.
    fn line_end(&self, line: usize) -> usize {
        self.line_start(line + 1)
    }

    fn column(&self, offset: usize) -> usize {
        offset - self.line_start(self.line(offset))
    }

    fn rest(&self, name: &Node) -> Rest {
        let end = self.line_end(self.line(name.at.start));
        let after = &self.text[name.at.start..end];
        // A key that is written as it is called; others are not looked at closely.
        let Some(colon) = after.find(':') else { return Rest::Something };
        let start = name.at.start + colon + 1;
        let value = self.text[start..end].trim_start();
        let is_over = |text: &str| text.trim().is_empty() || text.trim_start().starts_with('#');
        match value {
            value if is_over(value) => Rest::Nothing,
            value if value.strip_prefix("[]").is_some_and(is_over) => {
                let list = end - value.len();
                Rest::EmptyList(start..list + "[]".len())
            }
            _ => Rest::Something,
        }
    }

    /// Where the block ends that begins on a line, with everything that is indented further. Comments that are not, and
    /// empty lines at its end, belong to what follows.
    pub fn block_end(&self, line: usize, indent: usize, with_dashes: bool) -> usize {
        let mut offset = self.line_end(line);
        let mut end = offset;
        for row in self.text[offset..].split_inclusive('\n') {
            offset += row.len();
            let content = row.trim_start_matches(' ');
            let depth = row.len() - content.len();
            let content = content.trim_end();
            let dash = with_dashes && depth == indent && (content == "-" || content.starts_with("- "));
            if content.is_empty() {
                continue;
            }
            if depth > indent || dash {
                end = offset;
            } else if !content.starts_with('#') {
                break;
            }
        }
        end
    }
}

pub fn find(entries: &[(Node, Node)], is: impl Fn(&str) -> bool) -> Option<(&Node, &Node)> {
    entries.iter().find(|(name, _)| key(name).is_some_and(&is)).map(|(name, value)| (name, value))
}

/// Whether a text says what was before, and what was to be added, and nothing else.
fn check(config: &Config, before: &str, additions: &Additions, edited: &str) -> Result<(), Obstacle> {
    let lost = || Obstacle::Layout("it is written in a way that leaves no safe place to add to".to_owned());
    let old = config::tree(before).map_err(|_| lost())?;
    let new = config::tree(edited)
        .map_err(|problem| Obstacle::Layout(format!("with them it could not be read: {problem}")))?;
    if !is_kept(&old, &new) {
        return Err(lost());
    }
    let result = Config::of(Path::new("config.yaml"), edited).map_err(|error| Obstacle::Wrong(error.into_problem()))?;
    let by_name: BTreeMap<&str, &Hook> = result.hooks.iter().map(|hook| (hook.name.as_str(), hook)).collect();
    let is_there = |wanted: &Wanted| by_name.get(wanted.name.as_str()).is_some_and(|hook| is_same(hook, wanted));
    let all_there = additions.hooks.iter().all(is_there);
    let settings = additions.settings.iter().all(|setting| match setting {
        Setting::MaxHookRetries(most) => result.settings.limits.max_hook_retries == *most,
        Setting::NotStrict => result.settings.strict == Some(false),
        Setting::CompleteAtLimit => result.settings.on_retry_limit == config::OnRetryLimit::Complete,
    });
    match all_there && settings && result.hooks.len() == config.hooks.len() + additions.hooks.len() {
        true => Ok(()),
        false => Err(lost()),
    }
}

/// Whether everything of the one is in the other, in its place.
fn is_kept(old: &Node, new: &Node) -> bool {
    match (&old.value, &new.value) {
        (Value::Null, Value::Null | Value::Map(_) | Value::List(_)) => true,
        (Value::Bool(old), Value::Bool(new)) => old == new,
        (Value::Integer(old), Value::Integer(new)) => old == new,
        (Value::Unsigned(old), Value::Unsigned(new)) => old == new,
        (Value::Float(old), Value::Float(new)) => old.to_bits() == new.to_bits(),
        (Value::Text(old), Value::Text(new)) => old == new,
        (Value::List(old), Value::List(new)) => {
            old.len() <= new.len() && old.iter().zip(new).all(|(old, new)| is_kept(old, new))
        }
        (Value::Map(old), Value::Map(new)) => old
            .iter()
            .all(|(name, value)| new.iter().any(|(other, found)| is_kept(name, other) && is_kept(value, found))),
        _ => false,
    }
}
