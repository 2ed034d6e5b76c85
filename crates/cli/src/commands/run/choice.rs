//! Which session a run means: one that was left unfinished, or a new one.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use windlass_app::caller::Inside;
use windlass_app::context::Opened;
use windlass_app::gatekeepers::Unjudged;
use windlass_app::{Code, Failure, environment, hints};
use windlass_engine::{
    Digest, Grounds, Hold, Refusal, Seq, Session, SessionName, State, Task, TaskId, Types, View, Work,
};
use windlass_store::{Filter, Sqlite, Store};

use super::again::Again;
use super::tally::Tally;
use super::wish::{Wish, check_task};
use super::{Args, resolution};
use crate::output::Messages;

/// Letters of the goal that a session's name begins with.
const SLUG: usize = 32;
/// How long whoever was killed may seem to be alive.
const LAST_BREATH: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub enum Choice {
    New(SessionName),
    Resume(Box<Session>),
}

impl Choice {
    pub fn name(&self) -> &SessionName {
        match self {
            Self::New(name) => name,
            Self::Resume(session) => &session.name,
        }
    }

    /// The session that was left.
    pub fn resumed(&self) -> Option<&Session> {
        match self {
            Self::New(_) => None,
            Self::Resume(session) => Some(session),
        }
    }

    /// Whether somebody else has begun or taken up the session since it was chosen.
    pub fn is_stale(&self, store: &Sqlite) -> Result<bool, Failure> {
        let session = store.snapshot().map_err(hints::store)?.session(self.name()).map_err(hints::view)?;
        Ok(match (self, session) {
            (Self::New(_), session) => session.is_some(),
            (Self::Resume(chosen), Some(session)) => session.owner != chosen.owner || session.is_over(),
            (Self::Resume(_), None) => false,
        })
    }

    /// Where the session has its work from.
    pub fn work(&self, wish: Wish<'_>) -> Work {
        match self {
            Self::New(_) => wish.work(),
            Self::Resume(session) => session.work,
        }
    }
}

/// The session that these words mean: the one of that name, else the last one that works on the same and was left
/// unfinished. One that somebody alive is running is refused; of the graph there may be several.
pub fn choose(opened: &Opened, args: &Args, wish: Wish<'_>) -> Result<Choice, Failure> {
    let owners = &opened.project.owners();
    let snapshot = opened.store.snapshot().map_err(hints::store)?;
    if let Some(name) = &args.session {
        return match snapshot.session(name).map_err(hints::view)? {
            None => fresh(opened, args, wish, name.clone()),
            Some(session) if session.is_over() || args.fresh => {
                Err(Failure::new(Code::Refused, format!("session `{name}` exists already"))
                    .hint("choose another name, or none"))
            }
            Some(session) => {
                // Who names a session alone means whatever that works on.
                let meant = wish == Wish::Graph || wish.is_of(&session);
                match meant {
                    true => resumable(opened, session, args, wish),
                    false => Err(Failure::new(Code::Refused, format!("session `{name}` has another goal"))
                        .hint("choose another name, or none")),
                }
            }
        };
    }
    let sessions = snapshot.sessions().map_err(hints::store)?;
    let left = sessions.iter().filter(|session| wish.is_of(session) && !session.is_over() && !args.fresh);
    // One that has lost its task, though it is alive, is in nobody's way.
    let beside =
        |session: &Session| wish == Wish::Graph || (matches!(wish, Wish::Task(_)) && session.hold == Hold::Left);
    let free = |session: &&Session| !beside(session) || !stays_alive(owners, session.owner.as_str());
    match left.filter(free).max_by_key(|session| session.version) {
        Some(session) => resumable(opened, session.clone(), args, wish),
        None => {
            let base = match wish {
                Wish::Goal(goal) => base(goal),
                Wish::Task(id) => named_after(&snapshot, id)?,
                Wish::Graph => "tasks".to_owned(),
            };
            fresh(opened, args, wish, unused(&base, &sessions))
        }
    }
}

/// A new session, if there is something for it to do.
fn fresh(opened: &Opened, args: &Args, wish: Wish<'_>, name: SessionName) -> Result<Choice, Failure> {
    match (args.resolve, wish) {
        (Some(id), _) => resolution::check(opened, id)?,
        (None, Wish::Task(id)) => check_task(opened, id)?,
        (None, Wish::Goal(_)) => check_last_task(opened, args, wish)?,
        (None, Wish::Graph) => {}
    }
    Ok(Choice::New(name))
}

/// Refuses a goal whose last task waits for a person: a second task would leave what that one has.
fn check_last_task(opened: &Opened, args: &Args, wish: Wish<'_>) -> Result<(), Failure> {
    let Some(task) = last_task(&opened.store, args, wish)?.filter(|task| task.state == State::Blocked) else {
        return Ok(());
    };
    check_task(opened, task.id).map_err(|mut failure| {
        let other = "`--fresh` starts another task with this goal";
        let hint = failure.hint.take().map_or_else(|| other.to_owned(), |hint| format!("{hint}; {other}"));
        failure.hint(hint)
    })
}

/// The task that the last session with this goal has left to be taken up again, or that somebody has answered since.
pub fn left_task(store: &Sqlite, args: &Args, wish: Wish<'_>) -> Result<Option<TaskId>, Failure> {
    let waits = |task: &Task| matches!(task.state, State::Ready | State::NeedsContinuation) && task.lease.is_none();
    Ok(last_task(store, args, wish)?.filter(waits).map(|task| task.id))
}

/// The task of the last session with this goal.
fn last_task(store: &Sqlite, args: &Args, wish: Wish<'_>) -> Result<Option<Task>, Failure> {
    let (Wish::Goal(_), false) = (wish, args.fresh) else { return Ok(None) };
    let snapshot = store.snapshot().map_err(hints::store)?;
    let sessions = snapshot.sessions().map_err(hints::store)?;
    let last = sessions.iter().filter(|session| wish.is_of(session)).max_by_key(|session| session.version);
    let Some(id) = last.and_then(|session| session.task) else { return Ok(None) };
    snapshot.task(id).map_err(hints::view)
}

/// Whether a session that takes what there is would find something.
pub fn is_anything_ready(store: &Sqlite) -> Result<bool, Failure> {
    let snapshot = store.snapshot().map_err(hints::store)?;
    let claimable = snapshot.claimable(None).map_err(hints::view)?.is_some();
    Ok(claimable || snapshot.expired(environment::now(), None).map_err(hints::view)?.is_some())
}

/// Why a session with this agent would find nothing, though something is ready: others alone may work on it, or it is left
/// alone.
pub fn nothing_for(store: &Sqlite, types: &Types, agent: &str, grounds: Grounds) -> Result<Option<String>, Failure> {
    let snapshot = store.snapshot().map_err(hints::store)?;
    if snapshot.expired(environment::now(), None).map_err(hints::view)?.is_some() {
        return Ok(None);
    }
    match types.next_for(&snapshot, Some(agent), &[], grounds) {
        Ok(Some(_)) => Ok(None),
        Ok(None) => {
            let any = snapshot.claimable(None).map_err(hints::view)?.is_some();
            Ok(Some(if any { "what is ready is left alone" } else { "nothing is ready" }.to_owned()))
        }
        Err(refusal @ Refusal::NothingForAgent { .. }) => Ok(Some(refusal.to_string())),
        Err(refusal) => Err(hints::refusal(&refusal)),
    }
}

/// Refuses to begin where nobody can judge what would be worked on. Other tasks are not held up by that: which ones are left
/// alone is told.
pub fn check_judges(
    store: &Sqlite,
    wish: Wish<'_>,
    (types, mut unjudged): (&Types, Unjudged),
    agent: &str,
) -> Result<(), Failure> {
    // What this agent may not take is for others to have judged.
    let closed = types.closed_to(Some(agent));
    unjudged.retain(|kind, _| !closed.contains(kind));
    if unjudged.is_empty() {
        return Ok(());
    }
    let snapshot = store.snapshot().map_err(hints::store)?;
    let kind_of = |id: TaskId| Ok::<_, Failure>(snapshot.task(id).map_err(hints::view)?.and_then(|task| task.kind));
    let first = match wish {
        Wish::Goal(_) => None,
        Wish::Task(id) => Some(id),
        // One that it would take, if nothing else is there.
        Wish::Graph => match types.next_for(&snapshot, Some(agent), &[], Grounds::InPlace) {
            Ok(None) => types
                .clone()
                .without(BTreeSet::new())
                .next_for(&snapshot, Some(agent), &[], Grounds::InPlace)
                .ok()
                .flatten(),
            Ok(Some(_)) | Err(_) => None,
        },
    };
    let kind = first.map(kind_of).transpose()?.flatten();
    if let Some(failure) = kind.and_then(|kind| unjudged.remove(&kind)) {
        return Err(failure);
    }
    for (kind, failure) in unjudged.into_iter().filter(|_| wish == Wish::Graph) {
        Messages::new().warning(&format!("{}: tasks of the type `{kind}` are left alone", failure.message));
    }
    Ok(())
}

fn resumable(opened: &Opened, session: Session, args: &Args, wish: Wish<'_>) -> Result<Choice, Failure> {
    let name = &session.name;
    // A task has one holder, and a name one session.
    let fresh = match (&args.session, wish) {
        (None, Wish::Goal(_) | Wish::Graph) => "; --fresh starts another session",
        _ => "",
    };
    if stays_alive(&opened.project.owners(), session.owner.as_str()) {
        return Err(Failure::new(Code::Refused, format!("session `{name}` is running"))
            .caused_by(format!("{} is alive", session.owner))
            .hint(match Inside::look(opened)?.run {
                // An agent may not end sessions.
                Some(_) => format!("end the turn: the session goes on by itself{fresh}"),
                None => format!("wait for it; `windlass session cancel {name}` ends it{fresh}"),
            }));
    }
    if args.agent.as_ref().is_some_and(|agent| *agent != session.agent) {
        let again = Again::with_session(opened, &session).said("goes on with it");
        return Err(Failure::new(Code::Refused, format!("session `{name}` was started with another agent"))
            .caused_by(format!("it works with `{}`", session.agent))
            .hint(format!("{again}{fresh}")));
    }
    Ok(Choice::Resume(Box::new(session)))
}

/// Whether an owner is alive, and not just killed: it takes a moment to be dead.
pub fn stays_alive(owners: &Path, name: &str) -> bool {
    let give_up = Instant::now() + LAST_BREATH;
    while windlass_process::is_alive(owners, name) {
        if Instant::now() > give_up {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

/// A name that begins so and that no session has yet.
fn unused(base: &str, sessions: &[Session]) -> SessionName {
    let taken: BTreeSet<&SessionName> = sessions.iter().map(|session| &session.name).collect();
    let name = |number: usize| {
        let name = if number == 1 { base.to_owned() } else { format!("{base}-{number}") };
        name.parse::<SessionName>().expect("letters, digits and dashes, few enough")
    };
    (1..=taken.len() + 1).map(name).find(|name| !taken.contains(name)).expect("there is one more than are taken")
}

/// Readable, and different for different goals.
fn base(goal: &str) -> String {
    let digest = Digest::of(goal.as_bytes()).to_string();
    format!("{}{}", slug(goal), &digest[..8])
}

/// The task's id and what it is about.
pub fn named_after(view: &dyn View, id: TaskId) -> Result<String, Failure> {
    let task = view.task(id).map_err(hints::view)?;
    let words = task.map(|task| slug(&task.goal)).unwrap_or_default();
    Ok(format!("{id}-{words}").to_ascii_lowercase().trim_end_matches('-').to_owned())
}

/// The first words of a goal, with a dash after each.
fn slug(goal: &str) -> String {
    let words = goal.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = String::new();
    for word in words {
        if slug.len() + word.len() >= SLUG {
            break;
        }
        slug.push_str(&word.to_ascii_lowercase());
        slug.push('-');
    }
    slug
}

/// What a session has come to so far.
pub fn earlier(store: &Sqlite, session: &Session) -> Result<Tally, Failure> {
    let filter = Filter { session: Some(session.name.clone()), ..Filter::default() };
    let mut tally = Tally::default();
    store.read(&filter, Seq::START, usize::MAX).map_err(hints::store)?.iter().for_each(|record| tally.count(record));
    Ok(tally)
}

/// The configuration that a session was started with.
pub fn recorded(store: &Sqlite, session: &Session) -> Result<String, Failure> {
    let snapshot = store.snapshot().map_err(hints::store)?;
    let text = snapshot.config(session.config).map_err(hints::view)?;
    text.ok_or_else(|| {
        Failure::new(Code::Store, format!("the configuration of session `{}` is not in the store", session.name))
            .hint("`windlass doctor` looks the whole store over")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_goals() {
        assert!(base("Fix the login!").starts_with("fix-the-login-"));
        assert_ne!(base("Fix the login!"), base("Fix the login?"));
        assert!(base("直す").len() == 8);
        let long = base(&"verylongword ".repeat(9));
        assert!(long.len() <= 48 && long.parse::<SessionName>().is_ok(), "{long}");
    }
}
