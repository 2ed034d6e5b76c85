//! `windlass run --workers N`: runs several agents side by side and shows their work.
//!
//! ```text
//!   WorkerPool, a thread for each worker ─ lines ─► this thread ─► standard output
//!                                        ─ rows ──► the live view
//! ```

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Instant;

use windlass_app::context::CommandContext;
use windlass_app::run::SessionObserver;
use windlass_app::run::workers::{
    AgentAssignment, PoolPlan, PoolProgress, RunTotals, WorkerObserver, WorkerPool, WorkerSession, WorkerSettings,
    open_project_for_workers, watch_cancelled_sessions,
};
use windlass_process::RunControl;

use super::live::{LiveView, ViewHandle};
use super::progress::ProgressPrinter;
use super::signals::SignalListener;
use super::worker_output::{LineBatch, WorkerOutput};
use super::worker_summary::WorkerSummary;
use super::{Args, show_nothing_ready, start_live_view};
use crate::output::{EarlyExit, Output, Palette};

/// The number of batches that may wait for the output before the workers wait, too.
const MAX_WAITING_BATCHES: usize = 256;

pub fn run_worker_pool(context: &CommandContext, args: &Args, count: u8, out: &mut Output) -> Result<u8, EarlyExit> {
    let mut opened = open_project_for_workers(context)?;
    let settings = WorkerSettings::load_settings(&opened, args.max_iterations)?;
    let assignment = AgentAssignment::new(&settings.config, args.agent.as_deref(), settings.workspace_mode);
    let control = RunControl::new();
    let pool = match WorkerPool::plan_workers(&mut opened, &settings, &assignment, (count.into(), &control))? {
        PoolPlan::Pool(pool) => pool,
        PoolPlan::NothingReady(nothing) => {
            show_nothing_ready(&nothing, out)?;
            return Ok(nothing.remaining.exit_code());
        }
    };
    let live = start_live_view(out, count.into())?;
    let view = live.as_ref().map(LiveView::view);
    let woken = pool.scheduler().clone();
    let mut signals = SignalListener::start(&control, view, move || woken.wake_workers())?;
    signals.follow_log(watch_cancelled_sessions(&opened.project, pool.scheduler()))?;
    let began = Instant::now();
    let (to, batches) = mpsc::sync_channel(MAX_WAITING_BATCHES);
    let observer = WorkerDisplay {
        view: view.cloned(),
        json: out.is_json(),
        palette: out.palette(),
        columns: out.columns(),
        is_verbose: args.verbose,
        to,
    };
    let (project, front_end) = (&opened.project, &opened.front_end);
    let pool = &pool;
    let worked = thread::scope(|scope| {
        // The channel closes with the observer, when the last worker has ended.
        let working = scope.spawn(move || pool.run_workers((project, front_end), &observer));
        write_batches(&batches, out);
        working.join().expect("a worker thread does not panic")
    });
    drop(live);
    let totals = pool.scheduler().copy_totals();
    let took = began.elapsed();
    let summary = WorkerSummary { opened: &opened, totals: &totals, took, args, assignment: &assignment };
    let shown = if out.is_json() { out.print_json(&summary.to_json()) } else { summary.show_summary(out) };
    if shown.and_then(|()| out.flush()).is_err() {
        out.ignore_closed_output();
    }
    worked?;
    Ok(pool_exit_code(&totals, signals.first_signal(), control.is_cancelled()))
}

/// An observer of all workers: it sends their lines to standard output and their rows to the live view.
struct WorkerDisplay {
    view: Option<ViewHandle>,
    json: bool,
    palette: Palette,
    columns: Option<usize>,
    is_verbose: bool,
    to: SyncSender<LineBatch>,
}

impl WorkerObserver for WorkerDisplay {
    fn observe_session<'a>(&'a self, worker: usize, session: &WorkerSession<'_>) -> Box<dyn SessionObserver + 'a> {
        let Self { json, palette, columns, .. } = *self;
        let view = self.view.as_ref().map(|view| view.for_worker(worker));
        if let (Some(view), Some(resumed)) = (&view, session.resumed) {
            view.update_areas(|area| {
                area.set_earlier_time(resumed.watch.lasted);
                session.task.iter().for_each(|task| area.set_task(task));
                area.iteration = resumed.iteration;
                area.begin_activity(Instant::now(), "session", "resumes");
            });
        }
        let output = WorkerOutput { json, palette, columns, to: self.to.clone(), batch: LineBatch::new() };
        let mut progress = ProgressPrinter::new(output, view, session.work).with_program_output(self.is_verbose);
        progress.task_label = Some(session.task.map(|task| task.id.to_string()).unwrap_or_default());
        Box::new(progress)
    }

    fn clear_session(&self, worker: usize) {
        self.view.iter().for_each(|view| view.for_worker(worker).clear_worker());
    }

    fn shows_progress(&self) -> bool {
        self.view.is_some()
    }

    fn show_progress(&self, progress: PoolProgress) {
        self.view.iter().for_each(|view| view.set_totals(progress));
    }
}

/// Writes the lines of the workers until the last of them has ended. After the reader has gone, the lines are dropped.
fn write_batches(batches: &Receiver<LineBatch>, out: &mut Output) {
    let mut closed = false;
    for batch in batches {
        if closed {
            continue;
        }
        let written = batch.iter().try_for_each(|line| out.print_line(line)).and_then(|()| out.flush());
        if written.is_err() {
            closed = true;
            out.ignore_closed_output();
        }
    }
}

/// Returns the exit code of a run with several workers.
fn pool_exit_code(totals: &RunTotals, signal: Option<i32>, cancelled: bool) -> u8 {
    match signal {
        Some(signal) if cancelled => 128 + u8::try_from(signal).unwrap_or(2),
        _ if totals.paused.is_some() => 1,
        _ if !totals.people.is_empty() || !totals.objections.is_empty() => 4,
        _ if !totals.left.is_empty() || !totals.lost.is_empty() => 3,
        _ => 0,
    }
}
