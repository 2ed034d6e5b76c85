//! A parser of the event log, the output of `windlass events --json`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// An event of the log.
#[derive(Debug, Clone)]
pub struct LogEvent(Value);

impl LogEvent {
    pub fn event_type(&self) -> &str {
        self.0["type"].as_str().unwrap_or_default()
    }

    pub fn seq(&self) -> u64 {
        self.0["seq"].as_u64().unwrap_or_default()
    }

    pub fn iteration(&self) -> u64 {
        self.0["iteration"].as_u64().unwrap_or_default()
    }

    /// Returns the ID of the event's task, or `system`.
    pub fn task_or_system(&self) -> &str {
        self.0["nodeId"].as_str().unwrap_or_default()
    }

    /// Returns a text field of the payload.
    pub fn text_field(&self, field: &str) -> &str {
        self.0["data"][field].as_str().unwrap_or_default()
    }

    pub fn field(&self, field: &str) -> &Value {
        &self.0["data"][field]
    }

    /// Returns the name of an enum variant in the payload, without its content.
    pub fn variant_name(&self, field: &str) -> String {
        match self.field(field) {
            Value::Object(map) => map.keys().next().cloned().unwrap_or_default(),
            Value::String(name) => name.clone(),
            other => other.to_string(),
        }
    }

    /// Returns the sequence numbers of the delivered feedback.
    pub fn delivered_feedback(&self) -> Vec<u64> {
        self.field("feedback")
            .as_array()
            .map(|list| list.iter().filter_map(Value::as_u64).collect())
            .unwrap_or_default()
    }

    pub fn ends_turn(&self) -> bool {
        self.is_turn_finished()
            || ["iteration_interrupted", "iteration_failed", "delivery_interrupted", "delivery_failed"]
                .contains(&self.event_type())
    }

    pub fn is_turn_finished(&self) -> bool {
        ["turn_finished", "delivery_finished"].contains(&self.event_type())
    }
}

pub fn parse_events(text: &str) -> Vec<LogEvent> {
    text.lines().map(|line| LogEvent(serde_json::from_str(line).unwrap_or(Value::Null))).collect()
}

/// A started hook or agent turn in the log, with its end.
#[derive(Debug, Clone)]
pub struct LoggedProgram {
    pub owner: String,
    /// A hook's name, or `agent`.
    pub name: String,
    pub iteration: u64,
    pub debt: String,
    pub attempt: u64,
    /// The outcome of a hook; `finished` or `interrupted` for a turn; `taken over` for a hook that another run started again.
    pub end: Option<String>,
    /// The events that queued the feedback in a turn's prompt.
    pub feedback: Vec<u64>,
    /// The part of `feedback` that an interrupted turn had in its prompt before.
    pub possibly_seen: BTreeSet<u64>,
}

impl LoggedProgram {
    /// Returns the markers in a turn's prompt, each with a `+` if the prompt says that the agent may have seen it.
    pub fn prompt_markers(&self, markers: &BTreeMap<u64, String>) -> Vec<String> {
        let marker_text = |seq: &u64| {
            let marker = markers.get(seq).map_or("?", String::as_str);
            format!("{marker}{}", if self.possibly_seen.contains(seq) { "+" } else { "" })
        };
        self.feedback.iter().map(marker_text).collect()
    }
}

/// Returns every started hook and turn in the log, in order. A turn takes the recorded number of pieces of feedback from the queue.
/// An interrupted turn puts them back; the next iteration drops those that were for the interrupted iteration only.
pub fn logged_programs(log: &[LogEvent]) -> Vec<LoggedProgram> {
    let mut programs: Vec<LoggedProgram> = Vec::new();
    let mut pending: Vec<u64> = Vec::new();
    let single_iteration = single_iteration_feedback(log);
    let mut interrupted_feedback: BTreeSet<u64> = BTreeSet::new();
    let mut task_feedback: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for event in log {
        match event.event_type() {
            "hook_started" => {
                let debt = event.text_field("debt").to_owned();
                if let Some(previous) = programs.iter_mut().rfind(|previous| previous.debt == debt) {
                    previous.end = Some("taken over".to_owned());
                }
                programs.push(new_program(
                    event,
                    event.text_field("hook"),
                    debt,
                    event.field("attempt").as_u64().unwrap_or_default(),
                ));
            }
            "turn_started" => {
                let mut turn = new_program(event, "agent", format!("{}.0", event.seq()), 1);
                let count = event.field("feedback").as_u64().and_then(|count| usize::try_from(count).ok());
                turn.feedback = pending.drain(..count.unwrap_or_default().min(pending.len())).collect();
                turn.possibly_seen =
                    turn.feedback.iter().copied().filter(|seq| interrupted_feedback.contains(seq)).collect();
                programs.push(turn);
            }
            "feedback_queued" => pending.push(event.seq()),
            // Feedback of a task moves to the task's next session. Feedback of a session without a task is dropped.
            "session_ended" => {
                task_feedback.entry(event.task_or_system().to_owned()).or_default().append(&mut pending);
                task_feedback.remove("system");
            }
            "task_claimed" => {
                pending.splice(0..0, task_feedback.remove(event.task_or_system()).unwrap_or_default());
            }
            // Feedback for a single iteration is queued again in the next iteration.
            "iteration_started" => pending.retain(|seq| !single_iteration.contains(seq)),
            "hook_finished" => {
                let debt = event.text_field("debt");
                if let Some(running) =
                    programs.iter_mut().rfind(|program| program.debt == debt && program.end.is_none())
                {
                    running.end = Some(event.text_field("outcome").to_owned());
                }
            }
            _ if event.ends_turn() => {
                if let Some(running) =
                    programs.iter_mut().rfind(|program| program.name == "agent" && program.end.is_none())
                {
                    let end = if event.is_turn_finished() { "finished" } else { "interrupted" };
                    running.end = Some(end.to_owned());
                    if end == "interrupted" {
                        interrupted_feedback.extend(&running.feedback);
                        pending.splice(0..0, running.feedback.iter().copied());
                    }
                }
            }
            _ => {}
        }
    }
    programs
}

/// Returns the markers of queued feedback, by the sequence number of the event.
pub fn queued_markers(log: &[LogEvent]) -> BTreeMap<u64, String> {
    let queued = log.iter().filter(|event| event.event_type() == "feedback_queued");
    let marker = |text: &str| text.lines().find_map(|line| line.strip_prefix("marker ")).unwrap_or("?").to_owned();
    queued.map(|event| (event.seq(), marker(event.text_field("text")))).collect()
}

/// Returns for each piece of feedback the number of finished turns with it, and the number of its deliveries.
pub fn count_deliveries(log: &[LogEvent], programs: &[LoggedProgram]) -> BTreeMap<u64, (usize, usize)> {
    let mut counts: BTreeMap<u64, (usize, usize)> = queued_markers(log).into_keys().map(|seq| (seq, (0, 0))).collect();
    let finished = programs.iter().filter(|turn| turn.name == "agent" && turn.end.as_deref() == Some("finished"));
    for seq in finished.flat_map(|turn| &turn.feedback) {
        counts.entry(*seq).or_default().0 += 1;
    }
    for seq in
        log.iter().filter(|event| event.event_type() == "feedback_delivered").flat_map(LogEvent::delivered_feedback)
    {
        counts.entry(seq).or_default().1 += 1;
    }
    counts
}

/// Returns the feedback that is for a single iteration.
pub fn single_iteration_feedback(log: &[LogEvent]) -> BTreeSet<u64> {
    log.iter().filter(|event| event.field("passing").as_bool() == Some(true)).map(LogEvent::seq).collect()
}

fn new_program(event: &LogEvent, name: &str, debt: String, attempt: u64) -> LoggedProgram {
    LoggedProgram {
        owner: event.text_field("owner").to_owned(),
        name: name.to_owned(),
        iteration: event.iteration(),
        debt,
        attempt,
        end: None,
        feedback: Vec::new(),
        possibly_seen: BTreeSet::new(),
    }
}
