//! The log as the harness reads it: the output of `windlass events --json`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// An event.
#[derive(Debug, Clone)]
pub struct Entry(Value);

impl Entry {
    pub fn kind(&self) -> &str {
        self.0["type"].as_str().unwrap_or_default()
    }

    pub fn seq(&self) -> u64 {
        self.0["seq"].as_u64().unwrap_or_default()
    }

    pub fn iteration(&self) -> u64 {
        self.0["iteration"].as_u64().unwrap_or_default()
    }

    /// Returns the task that it is about, or `system`.
    pub fn node(&self) -> &str {
        self.0["nodeId"].as_str().unwrap_or_default()
    }

    /// A field of its payload, as text.
    pub fn text(&self, field: &str) -> &str {
        self.0["data"][field].as_str().unwrap_or_default()
    }

    pub fn field(&self, field: &str) -> &Value {
        &self.0["data"][field]
    }

    /// Returns the name of an enum's variant without its content.
    pub fn variant(&self, field: &str) -> String {
        match self.field(field) {
            Value::Object(map) => map.keys().next().cloned().unwrap_or_default(),
            Value::String(name) => name.clone(),
            other => other.to_string(),
        }
    }

    /// The pieces that were delivered.
    pub fn delivered(&self) -> Vec<u64> {
        self.field("feedback")
            .as_array()
            .map(|list| list.iter().filter_map(Value::as_u64).collect())
            .unwrap_or_default()
    }

    pub fn is_turn_over(&self) -> bool {
        self.is_turn_finished()
            || ["iteration_interrupted", "iteration_failed", "delivery_interrupted", "delivery_failed"]
                .contains(&self.kind())
    }

    pub fn is_turn_finished(&self) -> bool {
        ["turn_finished", "delivery_finished"].contains(&self.kind())
    }
}

pub fn read(text: &str) -> Vec<Entry> {
    text.lines().map(|line| Entry(serde_json::from_str(line).unwrap_or(Value::Null))).collect()
}

/// An effect in the log, from its start to its end.
#[derive(Debug, Clone)]
pub struct Begun {
    pub owner: String,
    /// A hook's name, or `agent`.
    pub who: String,
    pub iteration: u64,
    pub debt: String,
    pub attempt: u64,
    /// Its end: a hook's outcome, `finished` or `interrupted` for a turn, `taken over` for a hook that was started again.
    pub end: Option<String>,
    /// The events that queued what a turn's prompt holds.
    pub feedback: Vec<u64>,
    /// Those that an interrupted turn held before.
    pub seen: BTreeSet<u64>,
}

impl Begun {
    /// The markers in a turn's prompt, with a `+` where the agent is told that it may have seen them.
    pub fn prompt(&self, pieces: &BTreeMap<u64, String>) -> Vec<String> {
        let mark = |seq: &u64| {
            let marker = pieces.get(seq).map_or("?", String::as_str);
            format!("{marker}{}", if self.seen.contains(seq) { "+" } else { "" })
        };
        self.feedback.iter().map(mark).collect()
    }
}

/// Returns every effect that the log says was started, in order.  A turn takes the number of pieces that it says, first in first
/// out. An interrupted one puts them back, where the next iteration finds those that were not for this one alone.
pub fn begun(log: &[Entry]) -> Vec<Begun> {
    let mut all: Vec<Begun> = Vec::new();
    let mut pending: Vec<u64> = Vec::new();
    let passing = passing(log);
    let mut seen: BTreeSet<u64> = BTreeSet::new();
    let mut waiting: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for entry in log {
        match entry.kind() {
            "hook_started" => {
                let debt = entry.text("debt").to_owned();
                if let Some(before) = all.iter_mut().rfind(|before| before.debt == debt) {
                    before.end = Some("taken over".to_owned());
                }
                all.push(start(entry, entry.text("hook"), debt, entry.field("attempt").as_u64().unwrap_or_default()));
            }
            "turn_started" => {
                let mut turn = start(entry, "agent", format!("{}.0", entry.seq()), 1);
                let count = entry.field("feedback").as_u64().and_then(|count| usize::try_from(count).ok());
                turn.feedback = pending.drain(..count.unwrap_or_default().min(pending.len())).collect();
                turn.seen = turn.feedback.iter().copied().filter(|seq| seen.contains(seq)).collect();
                all.push(turn);
            }
            "feedback_queued" => pending.push(entry.seq()),
            // Feedback of a task opens the task's next session; feedback of a session without a task ends with it.
            "session_ended" => {
                waiting.entry(entry.node().to_owned()).or_default().append(&mut pending);
                waiting.remove("system");
            }
            "task_claimed" => {
                pending.splice(0..0, waiting.remove(entry.node()).unwrap_or_default());
            }
            // Feedback for one iteration alone is queued anew for the next.
            "iteration_started" => pending.retain(|seq| !passing.contains(seq)),
            "hook_finished" => {
                let debt = entry.text("debt");
                if let Some(open) = all.iter_mut().rfind(|begun| begun.debt == debt && begun.end.is_none()) {
                    open.end = Some(entry.text("outcome").to_owned());
                }
            }
            _ if entry.is_turn_over() => {
                if let Some(open) = all.iter_mut().rfind(|begun| begun.who == "agent" && begun.end.is_none()) {
                    let end = if entry.is_turn_finished() { "finished" } else { "interrupted" };
                    open.end = Some(end.to_owned());
                    if end == "interrupted" {
                        seen.extend(&open.feedback);
                        pending.splice(0..0, open.feedback.iter().copied());
                    }
                }
            }
            _ => {}
        }
    }
    all
}

/// The markers of what was queued, by the event that queued it.
pub fn pieces(log: &[Entry]) -> BTreeMap<u64, String> {
    let queued = log.iter().filter(|entry| entry.kind() == "feedback_queued");
    let marker = |text: &str| text.lines().find_map(|line| line.strip_prefix("marker ")).unwrap_or("?").to_owned();
    queued.map(|entry| (entry.seq(), marker(entry.text("text")))).collect()
}

/// Returns in how many finished turns each piece was, and how often it was delivered.
pub fn delivered(log: &[Entry], begun: &[Begun]) -> BTreeMap<u64, (usize, usize)> {
    let mut times: BTreeMap<u64, (usize, usize)> = pieces(log).into_keys().map(|seq| (seq, (0, 0))).collect();
    let finished = begun.iter().filter(|turn| turn.who == "agent" && turn.end.as_deref() == Some("finished"));
    for seq in finished.flat_map(|turn| &turn.feedback) {
        times.entry(*seq).or_default().0 += 1;
    }
    for seq in log.iter().filter(|entry| entry.kind() == "feedback_delivered").flat_map(Entry::delivered) {
        times.entry(seq).or_default().1 += 1;
    }
    times
}

/// Returns the pieces for one iteration alone.
pub fn passing(log: &[Entry]) -> BTreeSet<u64> {
    log.iter().filter(|entry| entry.field("passing").as_bool() == Some(true)).map(Entry::seq).collect()
}

fn start(entry: &Entry, who: &str, debt: String, attempt: u64) -> Begun {
    Begun {
        owner: entry.text("owner").to_owned(),
        who: who.to_owned(),
        iteration: entry.iteration(),
        debt,
        attempt,
        end: None,
        feedback: Vec::new(),
        seen: BTreeSet::new(),
    }
}
