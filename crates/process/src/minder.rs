//! Somebody who sees to it that a program that stays hears the control while nobody attends to it.
//!
//! Invariants:
//! - Whoever takes the program back has it running, or waits until everything may go on.
//! - A minder that is dropped takes the program with it.
//! - Nothing polls: the thread sleeps until there is a word, or until it is to give the program back.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::PollFlags;

use crate::Control;
use crate::control::Listener;
use crate::os::Waker;
use crate::ready::ready;
use crate::supervised::{Link, Supervised};
use crate::watch::Tree;

/// What a thread that does nothing but wait needs.
const STACK: usize = 128 * 1024;

pub(crate) struct Minder {
    done: Arc<Waker>,
    /// Until the program is given back.
    thread: Option<JoinHandle<Supervised<Link>>>,
}

impl Minder {
    /// Minds a program. It comes back if that cannot be done.
    pub fn new(tree: Supervised<Link>, control: &Control) -> Result<Self, Supervised<Link>> {
        let prepared = control.listen().and_then(|listener| Ok((listener, Arc::new(Waker::new()?))));
        let Ok((listener, done)) = prepared else { return Err(tree) };
        // Given over once there is a thread: one that cannot be started would take the program with it.
        let (give, take) = std::sync::mpsc::sync_channel(1);
        let stopped = done.clone();
        let mind = move || mind(take.recv().expect("it is given at once"), listener, &stopped);
        let thread: io::Result<_> = std::thread::Builder::new().name("minder".to_owned()).stack_size(STACK).spawn(mind);
        match thread {
            Err(_) => Err(tree),
            Ok(thread) => match give.send(tree) {
                Ok(()) => Ok(Self { done, thread: Some(thread) }),
                Err(std::sync::mpsc::SendError(tree)) => Err(tree),
            },
        }
    }

    /// Gives the program back, when it may go on.
    pub fn take_back(mut self) -> Supervised<Link> {
        self.release().expect("it is given back once")
    }

    fn release(&mut self) -> Option<Supervised<Link>> {
        let thread = self.thread.take()?;
        self.done.wake();
        Some(thread.join().expect("nothing panics while it minds"))
    }
}

impl Drop for Minder {
    fn drop(&mut self) {
        drop(self.release());
    }
}

fn mind(mut tree: Supervised<Link>, mut listener: Listener, done: &Waker) -> Supervised<Link> {
    loop {
        if listener.word().1 {
            tree.stop();
            listener.set_still(true);
            wait_for_more(&listener);
            tree.resume();
            listener.set_still(false);
        }
        let [word, done] = ready(&[Some((listener.as_fd(), PollFlags::IN)), Some((done.as_fd(), PollFlags::IN))], None);
        if word {
            listener.clear();
        } else if done {
            return tree;
        }
    }
}

/// Waits as long as the control says that everything stands still.
pub(crate) fn wait_for_more(listener: &Listener) {
    while listener.word().1 {
        ready(&[Some((listener.as_fd(), PollFlags::IN))], None);
        listener.clear();
    }
}
