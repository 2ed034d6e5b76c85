//! The graph around a task, drawn with box characters: above it what it waits for, below it what waits for it.
//!
//! ```text
//!       ┌─ T1
//!    ┌─ T2
//!    ├─ T7
//!  ■ T3
//!    ├─ T4
//!    │  └─ T6
//!    └─ T5
//! ```

use std::collections::{BTreeMap, BTreeSet};

use windlass_app::tone::TextTone;
use windlass_app::views::{TaskGraphView, TaskSummary};
use windlass_text as text;

use super::{first_line, state_mark};
use crate::row::{RowList, RowTarget, ScreenRow};

/// How deep the graph is drawn. Narrow terminals have no room for more.
const MAX_DEPTH: usize = 8;

/// The direction in which the graph is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GraphDirection {
    /// Tasks that have to be completed first, above.
    Awaited,
    /// Tasks that wait, below.
    Waiting,
}

/// The edges of a graph, by task.
struct GraphDrawing<'v> {
    tasks: BTreeMap<&'v str, &'v TaskSummary>,
    awaited: BTreeMap<&'v str, BTreeSet<&'v str>>,
    waiting: BTreeMap<&'v str, BTreeSet<&'v str>>,
    /// Tasks that are drawn. A task with several neighbours is drawn whole once.
    drawn: BTreeSet<&'v str>,
}

/// Adds the graph around its focus.
pub fn add_graph_rows(list: &mut RowList, graph: &TaskGraphView, focus: &RowTarget) {
    let RowTarget::Task(id) = focus else { return };
    let mut drawing = GraphDrawing {
        tasks: graph.tasks.iter().map(|task| (task.id.as_str(), task)).collect(),
        awaited: BTreeMap::new(),
        waiting: BTreeMap::new(),
        drawn: [id.as_str()].into(),
    };
    for edge in graph.edges.iter().filter(|edge| edge.is_dependency) {
        drawing.awaited.entry(&edge.from).or_default().insert(&edge.to);
        drawing.waiting.entry(&edge.to).or_default().insert(&edge.from);
    }
    drawing.add_neighbours(list, id, "   ", GraphDirection::Awaited);
    if let Some(task) = drawing.tasks.get(id.as_str()).copied() {
        list.push(node_row(" ■ ", task, TextTone::Strong));
    }
    drawing.add_neighbours(list, id, "   ", GraphDirection::Waiting);
    for edge in graph.edges.iter().filter(|edge| !edge.is_dependency) {
        let other = if edge.from == *id { &edge.to } else { &edge.from };
        if let Some(task) = drawing.tasks.get(other.as_str()).copied().filter(|_| edge.from == *id || edge.to == *id) {
            let what = if edge.from == *id { edge.kind.clone() } else { format!("{} of it", edge.kind) };
            list.push(node_row(&format!("   ╌ {what} "), task, TextTone::Plain));
        }
    }
    if graph.has_more {
        list.push_note(TextTone::Faint, "   … the graph has more tasks");
    }
}

impl<'v> GraphDrawing<'v> {
    /// Adds the tasks beside one, with those behind them.
    fn add_neighbours(&mut self, list: &mut RowList, id: &str, before: &str, direction: GraphDirection) {
        let edges = match direction {
            GraphDirection::Awaited => &self.awaited,
            GraphDirection::Waiting => &self.waiting,
        };
        let tasks: Vec<&'v TaskSummary> =
            edges.get(id).into_iter().flatten().filter_map(|other| self.tasks.get(other).copied()).collect();
        let depth = before.chars().count() / 3;
        for (number, task) in tasks.iter().enumerate() {
            let is_outer = match direction {
                GraphDirection::Awaited => number == 0,
                GraphDirection::Waiting => number + 1 == tasks.len(),
            };
            let corner = match (is_outer, direction) {
                (true, GraphDirection::Awaited) => "┌─ ",
                (true, GraphDirection::Waiting) => "└─ ",
                (false, _) => "├─ ",
            };
            let is_new = self.drawn.insert(&task.id);
            let inner = format!("{before}{}", if is_outer { "   " } else { "│  " });
            let row = node_row(&format!("{before}{corner}"), task, TextTone::Plain);
            let row = if is_new { row } else { row.with_right(TextTone::Faint, "drawn above") };
            let leads_on = is_new && depth < MAX_DEPTH;
            if leads_on && direction == GraphDirection::Awaited {
                self.add_neighbours(list, &task.id, &inner, direction);
            }
            list.push(row);
            if leads_on && direction == GraphDirection::Waiting {
                self.add_neighbours(list, &task.id, &inner, direction);
            }
        }
    }
}

fn node_row(before: &str, task: &TaskSummary, tone: TextTone) -> ScreenRow {
    let state = text::pad_to_width(task.state.name(), 9);
    ScreenRow::new(Some(RowTarget::Task(task.id.clone())))
        .with(TextTone::Faint, before)
        .with(task.tone, format!("{} ", state_mark(task.state)))
        .with(TextTone::Name, format!("{} ", task.id))
        .with(task.tone, format!("{state} "))
        .with(tone, first_line(&task.goal))
}
