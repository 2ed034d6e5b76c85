//! `windlass task graph`: draws the graph as text, for Graphviz or for Mermaid, or prints it as JSON.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use std::iter;

use clap::ValueEnum;
use serde_json::json;
use windlass_app::context::CommandContext;
use windlass_app::hints;
use windlass_engine::{Seq, Task, TaskEdge, TaskId, TaskState};
use windlass_store::TaskFilter;
use windlass_text as text;

use crate::output::{CommandResult, Output, TextTone};
use crate::show;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass task graph
  windlass task graph --format dot | dot -Tsvg > graph.svg
  windlass task graph --format mermaid")]
pub struct Args {
    /// The format of the drawing
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: GraphFormat,
    /// Leave out completed tasks
    #[arg(long)]
    open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GraphFormat {
    Text,
    Dot,
    Mermaid,
    Json,
}

pub fn run_task_graph(context: &CommandContext, args: &Args, out: &mut Output) -> CommandResult {
    let opened = context.open_project_to_read()?;
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let hidden = |state: &TaskState| *state == TaskState::Deleted || (args.open && *state == TaskState::Completed);
    let filter = TaskFilter {
        states: TaskState::ALL.into_iter().filter(|state| !hidden(state)).collect(),
        ..TaskFilter::default()
    };
    let mut tasks = BTreeMap::new();
    snapshot.visit_tasks(&filter, |task| tasks.insert(task.id, task).is_none()).map_err(hints::store_failure)?;
    let mut edges = snapshot.all_edges().map_err(hints::store_failure)?;
    edges.retain(|edge| tasks.contains_key(&edge.from_id) && tasks.contains_key(&edge.to_id));
    let graph = TaskGraph { tasks, edges };
    match if out.is_json() { GraphFormat::Json } else { args.format } {
        GraphFormat::Text if graph.tasks.is_empty() => {
            let nothing = match opened.store.head().map_err(hints::store_failure)? {
                Seq::START => "no tasks; `windlass task add GOAL` makes one",
                _ => "nothing is left to draw",
            };
            out.print_line(out.paint(TextTone::Faint, nothing))
        }
        GraphFormat::Text => graph.print_tree(out),
        GraphFormat::Dot => out.print_line(graph.render_dot().trim_end()),
        GraphFormat::Mermaid => out.print_line(graph.render_mermaid().trim_end()),
        GraphFormat::Json => {
            let tasks: Vec<&Task> = graph.tasks.values().collect();
            out.print_json(&json!({"tasks": tasks, "edges": graph.edges}))
        }
    }
}

struct TaskGraph {
    tasks: BTreeMap<TaskId, Task>,
    edges: Vec<TaskEdge>,
}

/// The width at which goals are cut.
const MAX_GOAL_COLUMNS: usize = 60;

/// The greatest depth of the tree.
const MAX_TREE_DEPTH: usize = 12;

/// A task in the tree, with the lines to its left.
struct TreeBranch {
    id: TaskId,
    indent: String,
    mark: &'static str,
    depth: usize,
}

/// The part of a task's tree that is drawn in one place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TreeBranchPart {
    Whole,
    /// The tasks below are drawn elsewhere.
    Continued,
    /// The task has been drawn further up.
    Repeated,
}

impl TreeBranch {
    fn root(id: TaskId) -> Self {
        Self { id, indent: String::new(), mark: "", depth: 0 }
    }

    /// Returns the branches below, last one first.
    fn child_branches(&self, children: &BTreeSet<TaskId>) -> impl Iterator<Item = Self> {
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

impl TaskGraph {
    /// Prints the tree: a task above those that wait for it. A subtree that would be too deep to read begins again at the left,
    /// further down.
    fn print_tree(&self, out: &mut Output) -> CommandResult {
        let mut below: BTreeMap<TaskId, BTreeSet<TaskId>> = BTreeMap::new();
        let mut waiting = BTreeSet::new();
        for (waiter, awaited) in self.edges.iter().filter_map(TaskEdge::waiting_pair) {
            below.entry(awaited).or_default().insert(waiter);
            waiting.insert(waiter);
        }
        let mut roots: VecDeque<TaskId> = self.tasks.keys().filter(|id| !waiting.contains(id)).copied().collect();
        let mut drawn = BTreeSet::new();
        while let Some(root) = roots.pop_front() {
            let mut next = vec![TreeBranch::root(root)];
            while let Some(branch) = next.pop() {
                let children = below.get(&branch.id);
                let part = match (drawn.contains(&branch.id), children) {
                    (false, Some(_)) if branch.depth == MAX_TREE_DEPTH => TreeBranchPart::Continued,
                    (false, _) => TreeBranchPart::Whole,
                    (true, _) => TreeBranchPart::Repeated,
                };
                self.print_branch(&branch, part, out)?;
                match part {
                    TreeBranchPart::Whole => drop(drawn.insert(branch.id)),
                    TreeBranchPart::Continued if !roots.contains(&branch.id) => roots.push_back(branch.id),
                    TreeBranchPart::Continued | TreeBranchPart::Repeated => {}
                }
                if part == TreeBranchPart::Whole {
                    next.extend(children.into_iter().flat_map(|children| branch.child_branches(children)));
                }
            }
        }
        for edge in self.edges.iter().filter(|edge| edge.waiting_pair().is_none()) {
            out.print_line(out.paint(TextTone::Faint, format_args!("{} {} {}", edge.from_id, edge.kind, edge.to_id)))?;
        }
        Ok(())
    }

    fn print_branch(&self, branch: &TreeBranch, part: TreeBranchPart, out: &mut Output) -> CommandResult {
        let task = &self.tasks[&branch.id];
        let lines = format!("{}{}", branch.indent, branch.mark);
        let id = task.id.to_string();
        let note = if part == TreeBranchPart::Continued { "  (see below)" } else { "" };
        let used = text::display_width(&lines) + id.len() + task.state.name().len() + note.len() + 4;
        let room = out.columns().map_or(usize::MAX, |columns| columns.saturating_sub(used).max(10));
        let (tone, goal) = match part {
            TreeBranchPart::Whole | TreeBranchPart::Continued => {
                (TextTone::Plain, text::fit_to_width(&task.goal, room))
            }
            TreeBranchPart::Repeated => (TextTone::Faint, "(see above)".to_owned()),
        };
        let (lines, goal, note) =
            (out.paint(TextTone::Faint, lines), out.paint(tone, goal), out.paint(TextTone::Faint, note));
        let (id, state) = (out.paint(TextTone::Strong, id), out.paint(show::state_tone(task.state), task.state));
        out.print_line(format_args!("{lines}{id}  {state}  {goal}{note}"))
    }

    fn render_dot(&self) -> String {
        let mut dot = String::from("digraph windlass {\n  node [shape=box];\n");
        for task in self.tasks.values() {
            let goal = text::fit_to_width(&task.goal, MAX_GOAL_COLUMNS).replace('\\', "\\\\").replace('"', "\\\"");
            let label = format!("{} {}\\n{goal}", task.id, task.state);
            writeln!(dot, "  {} [label=\"{label}\"];", task.id).expect("a string takes all text");
        }
        for TaskEdge { from_id, to_id, kind, .. } in &self.edges {
            writeln!(dot, "  {from_id} -> {to_id} [label=\"{kind}\"];").expect("a string takes all text");
        }
        dot + "}\n"
    }

    fn render_mermaid(&self) -> String {
        let mut mermaid = String::from("graph TD\n");
        for task in self.tasks.values() {
            // Each character that Markdown, HTML or Mermaid could take for markup becomes a character code.
            let goal: String = text::fit_to_width(&task.goal, MAX_GOAL_COLUMNS)
                .chars()
                .map(|c| match c {
                    c if c.is_alphanumeric() || " .,:-_/".contains(c) => c.to_string(),
                    c => format!("#{};", u32::from(c)),
                })
                .collect();
            writeln!(mermaid, "  {}[\"{} {}: {goal}\"]", task.id, task.id, task.state)
                .expect("a string takes all text");
        }
        for TaskEdge { from_id, to_id, kind, .. } in &self.edges {
            writeln!(mermaid, "  {from_id} -- {kind} --> {to_id}").expect("a string takes all text");
        }
        mermaid
    }
}
