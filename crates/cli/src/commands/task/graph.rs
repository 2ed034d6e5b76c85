//! `windlass task graph`: draws the graph as text, for Graphviz or for Mermaid, or prints it as JSON.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use std::iter;

use clap::ValueEnum;
use serde_json::json;
use windlass_app::context::Context;
use windlass_app::hints;
use windlass_engine::{Edge, Seq, State, Task, TaskId};
use windlass_store::TaskFilter;
use windlass_text as text;

use crate::output::{Done, Output, Tone};
use crate::show;

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
    let opened = context.open_to_read()?;
    let snapshot = opened.store.snapshot().map_err(hints::store)?;
    let hidden = |state: &State| *state == State::Deleted || (args.open && *state == State::Completed);
    let filter =
        TaskFilter { states: State::ALL.into_iter().filter(|state| !hidden(state)).collect(), ..TaskFilter::default() };
    let mut tasks = BTreeMap::new();
    snapshot.tasks(&filter, |task| tasks.insert(task.id, task).is_none()).map_err(hints::store)?;
    let mut edges = snapshot.all_edges().map_err(hints::store)?;
    edges.retain(|edge| tasks.contains_key(&edge.from_id) && tasks.contains_key(&edge.to_id));
    let graph = Graph { tasks, edges };
    match if out.is_json() { Format::Json } else { args.format } {
        Format::Text if graph.tasks.is_empty() => {
            let nothing = match opened.store.head().map_err(hints::store)? {
                Seq::START => "no tasks; `windlass task add GOAL` makes one",
                _ => "nothing is left to draw",
            };
            out.line(out.paint(Tone::Faint, nothing))
        }
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

/// The width at which goals are cut.
const GOAL: usize = 60;

/// The greatest depth of the tree.
const DEEP: usize = 12;

/// A task in the tree, with the lines to its left.
struct Branch {
    id: TaskId,
    indent: String,
    mark: &'static str,
    depth: usize,
}

/// The part of a task's tree that is drawn in one place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    /// The tasks below are drawn elsewhere.
    Continued,
    /// The task has been drawn further up.
    Repeated,
}

impl Branch {
    fn root(id: TaskId) -> Self {
        Self { id, indent: String::new(), mark: "", depth: 0 }
    }

    /// Returns the branches below, last one first.
    fn children(&self, children: &BTreeSet<TaskId>) -> impl Iterator<Item = Self> {
        let indent = match self.mark {
            "" => String::new(),
            "├─ " => format!("{}│  ", self.indent),
            _ => format!("{}   ", self.indent),
        };
        let marks = iter::once("└─ ").chain(iter::repeat("├─ "));
        let depth = self.depth + 1;
        children.iter().rev().zip(marks).map(move |(id, mark)| Self { id: *id, indent: indent.clone(), mark, depth })
    }
}

impl Graph {
    /// Prints the tree: a task above those that wait for it. A subtree that would be too deep to read begins again at the left,
    /// further down.
    fn text(&self, out: &mut Output) -> Done {
        let mut below: BTreeMap<TaskId, BTreeSet<TaskId>> = BTreeMap::new();
        let mut waiting = BTreeSet::new();
        for (waiter, awaited) in self.edges.iter().filter_map(Edge::wait) {
            below.entry(awaited).or_default().insert(waiter);
            waiting.insert(waiter);
        }
        let mut roots: VecDeque<TaskId> = self.tasks.keys().filter(|id| !waiting.contains(id)).copied().collect();
        let mut drawn = BTreeSet::new();
        while let Some(root) = roots.pop_front() {
            let mut next = vec![Branch::root(root)];
            while let Some(branch) = next.pop() {
                let children = below.get(&branch.id);
                let part = match (drawn.contains(&branch.id), children) {
                    (false, Some(_)) if branch.depth == DEEP => Part::Continued,
                    (false, _) => Part::Whole,
                    (true, _) => Part::Repeated,
                };
                self.branch(&branch, part, out)?;
                match part {
                    Part::Whole => drop(drawn.insert(branch.id)),
                    Part::Continued if !roots.contains(&branch.id) => roots.push_back(branch.id),
                    Part::Continued | Part::Repeated => {}
                }
                if part == Part::Whole {
                    next.extend(children.into_iter().flat_map(|children| branch.children(children)));
                }
            }
        }
        for edge in self.edges.iter().filter(|edge| edge.wait().is_none()) {
            out.line(out.paint(Tone::Faint, format_args!("{} {} {}", edge.from_id, edge.kind, edge.to_id)))?;
        }
        Ok(())
    }

    fn branch(&self, branch: &Branch, part: Part, out: &mut Output) -> Done {
        let task = &self.tasks[&branch.id];
        let lines = format!("{}{}", branch.indent, branch.mark);
        let id = task.id.to_string();
        let note = if part == Part::Continued { "  (goes on below)" } else { "" };
        let used = text::width(&lines) + id.len() + task.state.name().len() + note.len() + 4;
        let room = out.columns().map_or(usize::MAX, |columns| columns.saturating_sub(used).max(10));
        let (tone, goal) = match part {
            Part::Whole | Part::Continued => (Tone::Plain, text::fit(&task.goal, room)),
            Part::Repeated => (Tone::Faint, "(see above)".to_owned()),
        };
        let (lines, goal, note) = (out.paint(Tone::Faint, lines), out.paint(tone, goal), out.paint(Tone::Faint, note));
        let (id, state) = (out.paint(Tone::Strong, id), out.paint(show::tone(task.state), task.state));
        out.line(format_args!("{lines}{id}  {state}  {goal}{note}"))
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
            // Each character that Markdown, HTML or Mermaid could take for markup becomes a character code.
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
