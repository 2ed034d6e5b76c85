//! The running program: threads that wait for keys, commits and the agent's output, and the loop that draws.
//!
//! ```text
//! keys, signals, log, agent's output ─► TopEvent ─► update ─► TopRequest ─► views, commands ─► TopEvent
//!                                                      └────► draw
//! ```
//!
//! Invariants:
//! - The loop waits for events only. The store, git and hooks run in other threads.
//! - Each thread has a store of its own.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use crossterm::event::Event;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use windlass_app::context::{CommandContext, OpenedProject};
use windlass_app::{Failure, FailureCode, FrontEnd, Notice, SilentFrontEnd, environment, hints, runner_settings};
use windlass_config::Config;
use windlass_engine::Seq;
use windlass_process::{RunControl, signals};
use windlass_store::{Lifetime, Store};

use crate::command_runner::run_store_command;
use crate::event::{ErrorLine, StoreCommand, TopEvent, TopRequest};
use crate::live_follower::LiveFollower;
use crate::model::TopModel;
use crate::page::ViewQuery;
use crate::palette::ColorMode;
use crate::terminal::ScreenTerminal;
use crate::update::{start, update};
use crate::view_loader::load_view;

/// The interval at which the clock moves on, and for which the log is waited.
const CLOCK_INTERVAL: Duration = Duration::from_secs(1);
/// The shortest time between two loads because of commits. A busy project does not pay for being watched.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_millis(80);

/// Shows the project until the person quits. Returns the exit code.
pub fn run_top(context: &CommandContext, colors: ColorMode) -> Result<u8, Failure> {
    let (events, received) = mpsc::channel();
    let mut context = context.clone();
    let project = context.find_project()?;
    context.project = Some(project.root.clone());
    // A store that cannot be opened is an error before the screen changes.
    let watched = context.open_project_for(Lifetime::Service)?;
    let head = watched.store.head().map_err(hints::store_failure)?;
    let mask = runner_settings::build_secret_mask(&Config::load(&project.root)?);
    let failed = |error: io::Error| Failure::new(FailureCode::System, "cannot use the terminal").with_cause(error);
    let workers = TopWorkers::start(&context, &events, mask).map_err(failed)?;
    spawn_log_watch(watched, head, &events).map_err(failed)?;
    let name = project.root.file_name().map_or_else(|| "/".to_owned(), |name| name.to_string_lossy().into_owned());
    let terminal = Arc::new(ScreenTerminal::enter(colors).map_err(failed)?);
    let size = terminal.size().map_err(failed)?;
    let mut model = TopModel::new(name, size, environment::current_timestamp().millis());
    let handlers = install_signal_handlers(&terminal, &events).map_err(failed)?;
    spawn_key_reader(&events).map_err(failed)?;
    let ran = run_event_loop(&mut model, &terminal, &received, &workers);
    let had_defect = !terminal.is_entered();
    terminal.leave();
    ran.map_err(failed)?;
    if had_defect && handlers.first_signal().is_none() {
        return Err(Failure::new(FailureCode::System, "a defect has ended the program"));
    }
    Ok(handlers.first_signal().map_or(0, |signal| 128 + u8::try_from(signal).unwrap_or(2)))
}

fn run_event_loop(
    model: &mut TopModel,
    terminal: &ScreenTerminal,
    received: &Receiver<TopEvent>,
    workers: &TopWorkers,
) -> io::Result<()> {
    let mut requests = start(model);
    loop {
        // A process that was in the background has heard nothing of another size.
        let size = terminal.size()?;
        if size != model.size {
            requests.extend(update(model, TopEvent::Resized(size.0, size.1)));
        }
        for request in requests {
            match request {
                TopRequest::Quit => return Ok(()),
                TopRequest::Redraw => terminal.clear()?,
                TopRequest::Suspend => suspend_process()?,
                TopRequest::Load(query) => workers.load(query),
                TopRequest::Execute(command) => workers.execute(command),
                TopRequest::Follow(session) => workers.follow(session),
            }
        }
        terminal.draw_frame(model)?;
        let Ok(event) = received.recv() else { return Ok(()) };
        requests = update(model, event);
        // What has arrived meanwhile needs no frame of its own.
        while let Ok(event) = received.try_recv() {
            requests.extend(update(model, event));
        }
    }
}

/// Stops this process and what it belongs to, as the terminal does for Ctrl-Z outside of raw mode.
fn suspend_process() -> io::Result<()> {
    rustix::process::kill_current_process_group(rustix::process::Signal::TSTP).map_err(io::Error::from)
}

fn install_signal_handlers(
    terminal: &Arc<ScreenTerminal>,
    events: &Sender<TopEvent>,
) -> io::Result<signals::SignalHandlers> {
    let (terminal, events) = (terminal.clone(), events.clone());
    signals::install_handlers(&RunControl::new(), move |signal| {
        // Without a receiver, the program ends anyway.
        let event = match signal {
            signals::SignalEvent::End(1) => TopEvent::Ended,
            signals::SignalEvent::End(_) => return end_process(&terminal),
            signals::SignalEvent::Stopping | signals::SignalEvent::Quitting => return terminal.leave(),
            signals::SignalEvent::Continued => match terminal.enter_again() {
                Ok(()) => TopEvent::Continued,
                Err(_) => TopEvent::Ended,
            },
            signals::SignalEvent::Resized => match terminal.size() {
                Ok((columns, rows)) => TopEvent::Resized(columns, rows),
                Err(_) => return,
            },
        };
        let _ = events.send(event);
    })
}

/// Ends the process that has not ended at the first signal: its terminal takes nothing.
fn end_process(terminal: &ScreenTerminal) {
    terminal.abandon();
    // What waits is recovered from the log, as after any kill.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
}

/// Sends keys and pasted text until the terminal is gone.
fn spawn_key_reader(events: &Sender<TopEvent>) -> io::Result<()> {
    let sender = events.clone();
    let read = move || {
        while await_input() && forward_keys(&sender).is_ok() {}
        // Without a receiver, the program ends anyway.
        let _ = sender.send(TopEvent::Ended);
    };
    spawn_thread("keys", events, read)
}

/// Waits for input. Returns false if the terminal is gone, which `crossterm` would not notice.
fn await_input() -> bool {
    let stdin = rustix::stdio::stdin();
    loop {
        let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut watched, None) {
            Ok(_) => return !watched[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL),
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Sends the keys that have arrived.
fn forward_keys(events: &Sender<TopEvent>) -> io::Result<()> {
    while crossterm::event::poll(Duration::ZERO)? {
        let event = match crossterm::event::read()? {
            Event::Key(key) => TopEvent::Key(key),
            Event::Paste(text) => TopEvent::Paste(text),
            // Signals report the size.
            Event::Resize(..) | Event::Mouse(_) | Event::FocusGained | Event::FocusLost => continue,
        };
        events.send(event).map_err(|_| io::ErrorKind::BrokenPipe)?;
    }
    Ok(())
}

/// Sends an event for each commit, and the time.
fn spawn_log_watch(watched: OpenedProject, head: Seq, events: &Sender<TopEvent>) -> io::Result<()> {
    let sender = events.clone();
    let watch = move || {
        let mut position = head;
        loop {
            let waited = watched.store.wait_for_events(position, CLOCK_INTERVAL);
            let event = match waited.and_then(|()| watched.store.head()) {
                Ok(newest) if newest != position => {
                    position = newest;
                    TopEvent::Committed
                }
                Ok(_) => TopEvent::Ticked(environment::current_timestamp().millis()),
                Err(_) => {
                    // The store is being replaced or repaired.
                    thread::sleep(CLOCK_INTERVAL);
                    continue;
                }
            };
            let is_commit = matches!(event, TopEvent::Committed);
            if sender.send(event).is_err() {
                return;
            }
            if is_commit {
                thread::sleep(MIN_REFRESH_INTERVAL);
            }
        }
    };
    spawn_thread("log", events, watch)
}

/// Starts a thread. A defect in it ends the program.
fn spawn_thread(name: &str, events: &Sender<TopEvent>, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let guard = DefectGuard(events.clone());
    let run = move || {
        let _guard = guard;
        work();
    };
    thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

/// Ends the program when its thread panics.
struct DefectGuard(Sender<TopEvent>);

impl Drop for DefectGuard {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = self.0.send(TopEvent::Ended);
        }
    }
}

/// A front end that shows the notices of commands in the footer.
#[derive(Debug)]
struct FooterFrontEnd {
    events: Sender<TopEvent>,
}

impl FrontEnd for FooterFrontEnd {
    fn show_notice(&self, notice: Notice<'_>) {
        let line =
            ErrorLine { message: notice.to_string(), hint: None, is_error: matches!(notice, Notice::Failure(_)) };
        let _ = self.events.send(TopEvent::Notice(line));
    }
}

/// A thread with a store of its own, which does one piece of work after another.
struct StoreWorker<T> {
    context: CommandContext,
    events: Sender<TopEvent>,
    wanted: Receiver<T>,
}

impl<T> StoreWorker<T> {
    fn work_until_closed<R>(
        self,
        work: impl Fn(&mut OpenedProject, &T) -> Result<R, Failure>,
        report: impl Fn(T, Result<R, ErrorLine>) -> TopEvent,
    ) {
        let mut store: Option<OpenedProject> = None;
        for wanted in self.wanted {
            let opened = match store.take() {
                Some(opened) => Ok(opened),
                None => self.context.open_project_for(Lifetime::Service),
            };
            let done = opened.and_then(|mut opened| {
                let done = work(&mut opened, &wanted)?;
                // A store with an error is opened again: it may have been replaced or repaired.
                store = Some(opened);
                Ok(done)
            });
            let done = done.map_err(|failure| ErrorLine::from_failure(&failure));
            if self.events.send(report(wanted, done)).is_err() {
                return;
            }
        }
    }
}

/// The threads that use the store.
struct TopWorkers {
    queries: Sender<ViewQuery>,
    commands: Sender<StoreCommand>,
    followed: Sender<Option<String>>,
}

impl TopWorkers {
    fn start(
        context: &CommandContext,
        events: &Sender<TopEvent>,
        mask: windlass_hooks::SecretMask,
    ) -> io::Result<Self> {
        let (queries, wanted_views) = mpsc::channel::<ViewQuery>();
        let (commands, wanted_commands) = mpsc::channel::<StoreCommand>();
        let (followed, wanted) = mpsc::channel();
        let silent = CommandContext { front_end: Arc::new(SilentFrontEnd), ..context.clone() };
        let views = StoreWorker { context: silent.clone(), events: events.clone(), wanted: wanted_views };
        spawn_thread("views", events, move || {
            let report = |query, loaded| TopEvent::Loaded(query, Box::new(loaded));
            views.work_until_closed(|opened, query| load_view(opened, query), report);
        })?;
        let context =
            CommandContext { front_end: Arc::new(FooterFrontEnd { events: events.clone() }), ..context.clone() };
        let runs = StoreWorker { context, events: events.clone(), wanted: wanted_commands };
        spawn_thread("commands", events, move || runs.work_until_closed(run_store_command, TopEvent::CommandEnded))?;
        let follower = LiveFollower { wanted, events: events.clone(), mask };
        spawn_thread("output", events, move || {
            follower.follow_sessions(&|| silent.open_project_for(Lifetime::Service));
        })?;
        Ok(Self { queries, commands, followed })
    }

    // A thread that has ended with a defect takes no more work; the panic hook has said so.
    fn load(&self, query: ViewQuery) {
        let _ = self.queries.send(query);
    }

    fn execute(&self, command: StoreCommand) {
        let _ = self.commands.send(command);
    }

    fn follow(&self, session: Option<String>) {
        let _ = self.followed.send(session);
    }
}
