//! One store for many threads of a process: whoever comes while a commit is being written shares the next one.
//!
//! A single thread owns the connection. It takes every command that is waiting, decides them one after the other in one
//! transaction, and answers all of them when that is durable. A refused command refuses only itself.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use windlass_engine::{Command, Origin, Record, Rules};

use crate::{ExecuteError, Sqlite, StoreError};

/// Commands that may wait for the writer. More than any sensible number of threads: beyond it senders block.
const QUEUE: usize = 1024;
/// Commands that share one transaction, so that nobody waits for long behind a flood.
const SHARE: usize = 256;

type Answer = Result<Vec<Record>, ExecuteError>;

struct Job {
    rules: Arc<Rules>,
    origin: Origin,
    command: Command,
    nonce: u128,
    answer: SyncSender<Answer>,
}

/// A handle to the writer thread. Clones write to the same store; the thread ends with the last of them.
#[derive(Clone)]
pub struct Shared {
    jobs: SyncSender<Job>,
    _writer: Arc<Writer>,
}

struct Writer {
    thread: Option<JoinHandle<()>>,
}

impl Drop for Writer {
    /// The last handle is gone, and with it the last sender: the thread is about to end.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    pub fn new(store: Sqlite) -> Self {
        let (jobs, waiting) = sync_channel(QUEUE);
        let thread = thread::spawn(move || write(store, &waiting));
        Self { jobs, _writer: Arc::new(Writer { thread: Some(thread) }) }
    }

    /// As [`crate::Store::execute`], from any thread.
    pub fn execute(&self, rules: &Arc<Rules>, origin: Origin, command: Command, nonce: u128) -> Answer {
        let (answer, answered) = sync_channel(1);
        let job = Job { rules: Arc::clone(rules), origin, command, nonce, answer };
        self.jobs.send(job).expect("the writer lives as long as its handles");
        answered.recv().expect("the writer answers every job")
    }
}

fn write(mut store: Sqlite, waiting: &Receiver<Job>) {
    while let Ok(first) = waiting.recv() {
        let jobs: Vec<Job> = [first].into_iter().chain(waiting.try_iter().take(SHARE - 1)).collect();
        let answers = store.transact_until_known(|transaction| {
            jobs.iter()
                .map(|job| match transaction.execute(&job.rules, &job.origin, &job.command, job.nonce) {
                    // Without the store nobody in this transaction gets anywhere.
                    Err(ExecuteError::Store(error)) => Err(error),
                    answer => Ok(answer),
                })
                .collect::<Result<Vec<Answer>, StoreError>>()
        });
        // A job whose sender went away has nobody to answer to.
        match answers {
            Ok(answers) => jobs.into_iter().zip(answers).for_each(|(job, answer)| drop(job.answer.send(answer))),
            Err(error) => {
                let error = Arc::new(error);
                jobs.iter().for_each(|job| drop(job.answer.send(Err(StoreError::Shared(Arc::clone(&error)).into()))));
            }
        }
    }
}
