//! `windlass task graph`

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use clap::ValueEnum;
use serde_json::json;
use windlass_engine::{Edge, State, Task, TaskId};
use windlass_store::TaskFilter;

use crate::context::Context;
use crate::output::{Done, Output, Tone};
use crate::{remedy, show, text};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task graph
  windlass task graph --format dot | dot -Tsvg > graph.svg
  windlass task graph --format mermaid")]
pub struct Args {
    /// How it is drawn
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    /// Leave out what is completed
    #[arg(long)]
    open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Dot,
    Mermaid,
    Json,
}

pub fn run(context: &Context, args: &Args, out: &mut Output) -> Done {
    let opened = context.open()?;
    let snapshot = opened.store.snapshot().map_err(remedy::store)?;
    let hidden = |state: &State| *state == State::Deleted || (args.open && *state == State::Completed);
    let filter =
        TaskFilter { states: State::ALL.into_iter().filter(|state| !hidden(state)).collect(), ..TaskFilter::default() };
    let mut tasks = BTreeMap::new();
    snapshot.tasks(&filter, |task| tasks.insert(task.id, task).is_none()).map_err(remedy::store)?;
    let mut edges = snapshot.all_edges().map_err(remedy::store)?;
    edges.retain(|edge| tasks.contains_key(&edge.from_id) && tasks.contains_key(&edge.to_id));
    let graph = Graph { tasks, edges };
    match if out.is_json() { Format::Json } else { args.format } {
        Format::Text => graph.text(out),
        Format::Dot => out.line(graph.dot().trim_end()),
        Format::Mermaid => out.line(graph.mermaid().trim_end()),
        Format::Json => {
            let tasks: Vec<&Task> = graph.tasks.values().collect();
            out.object(&json!({"tasks": tasks, "edges": graph.edges}))
        }
    }
}

struct Graph {
    tasks: BTreeMap<TaskId, Task>,
    edges: Vec<Edge>,
}

/// Goals are cut here: a picture is no place for a page of text.
const GOAL: usize = 60;

impl Graph {
    /// What comes first stands on top; what waits for it hangs below.
    fn text(&self, out: &mut Output) -> Done {
        if self.tasks.is_empty() {
            return out.line(out.paint(Tone::Faint, "no tasks; `windlass task add GOAL` makes one"));
        }
        let mut below: BTreeMap<TaskId, BTreeSet<TaskId>> = BTreeMap::new();
        let mut waiting = BTreeSet::new();
        for (waiter, awaited) in self.edges.iter().filter_map(Edge::wait) {
            below.entry(awaited).or_default().insert(waiter);
            waiting.insert(waiter);
        }
        let roots = self.tasks.keys().filter(|id| !waiting.contains(id));
        // Each entry: the task, the lines to its left, and its own branch.
        let mut next: Vec<(TaskId, String, &str)> = roots.rev().map(|id| (*id, String::new(), "")).collect();
        let mut drawn = BTreeSet::new();
        while let Some((id, indent, branch)) = next.pop() {
            let first = drawn.insert(id);
            self.branch(id, &format!("{indent}{branch}"), first, out)?;
            let indent = match branch {
                "" => indent,
                "├─ " => indent + "│  ",
                _ => indent + "   ",
            };
            let children = below.get(&id).filter(|_| first);
            let branches = [("└─ ")].into_iter().chain(std::iter::repeat("├─ "));
            let children = children.into_iter().flatten().rev().zip(branches);
            next.extend(children.map(|(child, branch)| (*child, indent.clone(), branch)));
        }
        for edge in self.edges.iter().filter(|edge| edge.wait().is_none()) {
            out.line(out.paint(Tone::Faint, format_args!("{} {} {}", edge.from_id, edge.kind, edge.to_id)))?;
        }
        Ok(())
    }

    fn branch(&self, id: TaskId, lines: &str, first: bool, out: &mut Output) -> Done {
        let task = &self.tasks[&id];
        let used = text::width(lines) + id.to_string().len() + task.state.name().len() + 4;
        let room = out.columns().map_or(usize::MAX, |columns| columns.saturating_sub(used).max(10));
        let goal = if first { text::fit(&task.goal, room) } else { "(see above)".to_owned() };
        let goal = out.paint(if first { Tone::Plain } else { Tone::Faint }, goal);
        let lines = out.paint(Tone::Faint, lines);
        let (id, state) = (out.paint(Tone::Strong, id), out.paint(show::tone(task.state), task.state));
        out.line(format_args!("{lines}{id}  {state}  {goal}"))
    }

    fn dot(&self) -> String {
        let mut dot = String::from("digraph windlass {\n  node [shape=box];\n");
        for task in self.tasks.values() {
            let goal = text::fit(&task.goal, GOAL).replace('\\', "\\\\").replace('"', "\\\"");
            let label = format!("{} {}\\n{goal}", task.id, task.state);
            writeln!(dot, "  {} [label=\"{label}\"];", task.id).expect("a string takes all text");
        }
        for Edge { from_id, to_id, kind, .. } in &self.edges {
            writeln!(dot, "  {from_id} -> {to_id} [label=\"{kind}\"];").expect("a string takes all text");
        }
        dot + "}\n"
    }

    fn mermaid(&self) -> String {
        let mut mermaid = String::from("graph TD\n");
        for task in self.tasks.values() {
            // Everything that Markdown, HTML or mermaid itself could take for markup becomes a character code.
            let goal: String = text::fit(&task.goal, GOAL)
                .chars()
                .map(|c| match c {
                    c if c.is_alphanumeric() || " .,:-_/".contains(c) => c.to_string(),
                    c => format!("#{};", u32::from(c)),
                })
                .collect();
            writeln!(mermaid, "  {}[\"{} {}: {goal}\"]", task.id, task.id, task.state)
                .expect("a string takes all text");
        }
        for Edge { from_id, to_id, kind, .. } in &self.edges {
            writeln!(mermaid, "  {from_id} -- {kind} --> {to_id}").expect("a string takes all text");
        }
        mermaid
    }
}
