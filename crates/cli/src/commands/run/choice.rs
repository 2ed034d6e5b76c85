//! Which session a goal means: one that was left unfinished, or a new one.

use std::path::Path;
use std::time::{Duration, Instant};

use windlass_engine::{Digest, Session, SessionName, View};
use windlass_store::Sqlite;

use super::Args;
use crate::failure::{Code, Failure};
use crate::remedy;

/// Letters of the goal that a session's name begins with.
const SLUG: usize = 32;
/// How long whoever was killed may seem to be alive.
const LAST_BREATH: Duration = Duration::from_millis(250);
/// Sessions with the same goal, tried one after another.
const MOST: u32 = 100_000;

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
}

/// The session that these words mean. One that somebody alive is running is refused.
pub fn choose(store: &Sqlite, args: &Args, owners: &Path) -> Result<Choice, Failure> {
    let snapshot = store.snapshot().map_err(remedy::store)?;
    let look = |name: &SessionName| snapshot.session(name).map_err(remedy::view);
    let (name, found) = match &args.session {
        Some(name) => (name.clone(), look(name)?),
        None => newest(&base(&args.goal), look)?,
    };
    let Some(session) = found else { return Ok(Choice::New(name)) };
    match (session.is_over() || args.fresh, &args.session) {
        (true, None) => Ok(Choice::New(following(&args.goal, &session.name)?)),
        (true, Some(_)) => Err(Failure::new(Code::Refused, format!("session `{name}` exists already"))
            .hint("choose another name, or none")),
        (false, _) => resumable(session, args, owners),
    }
}

fn resumable(session: Session, args: &Args, owners: &Path) -> Result<Choice, Failure> {
    let name = &session.name;
    if session.goal.as_deref() != Some(args.goal.as_str()) {
        return Err(Failure::new(Code::Refused, format!("session `{name}` has another goal"))
            .hint("choose another name, or none"));
    }
    if stays_alive(owners, session.owner.as_str()) {
        return Err(Failure::new(Code::Refused, format!("session `{name}` is running"))
            .caused_by(format!("{} is alive", session.owner))
            .hint("wait for it, or end it; --fresh starts another one beside it"));
    }
    if args.agent.as_ref().is_some_and(|agent| *agent != session.agent) {
        return Err(Failure::new(Code::Refused, format!("session `{name}` was started with another agent"))
            .caused_by(format!("it works with `{}`", session.agent))
            .hint("leave --agent out to go on with it, or start a new session with --fresh"));
    }
    Ok(Choice::Resume(Box::new(session)))
}

/// Whether an owner is alive, and not just killed: a program that it was about to start holds its lock for another moment.
fn stays_alive(owners: &Path, name: &str) -> bool {
    let give_up = Instant::now() + LAST_BREATH;
    while windlass_process::is_alive(owners, name) {
        if Instant::now() > give_up {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

/// The last session whose name was made from a goal.
fn newest(
    base: &str,
    look: impl Fn(&SessionName) -> Result<Option<Session>, Failure>,
) -> Result<(SessionName, Option<Session>), Failure> {
    let first = numbered(base, 1);
    let mut newest = (first.clone(), look(&first)?);
    for number in 2..MOST {
        if newest.1.is_none() {
            break;
        }
        match look(&numbered(base, number))? {
            Some(session) => newest = (session.name.clone(), Some(session)),
            None => break,
        }
    }
    Ok(newest)
}

/// The name after one of a goal's sessions.
fn following(goal: &str, name: &SessionName) -> Result<SessionName, Failure> {
    let base = base(goal);
    let number = name.as_str().strip_prefix(&base).and_then(|rest| rest.strip_prefix('-'));
    let number: u32 = number.map_or(Ok(1), str::parse).map_err(|error| {
        Failure::new(Code::Usage, format!("session `{name}` was not named after this goal")).caused_by(error)
    })?;
    Ok(numbered(&base, number + 1))
}

/// Readable, and different for different goals.
fn base(goal: &str) -> String {
    let words = goal.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = String::new();
    for word in words {
        if slug.len() + word.len() >= SLUG {
            break;
        }
        slug.push_str(&word.to_ascii_lowercase());
        slug.push('-');
    }
    let digest = Digest::of(goal.as_bytes()).to_string();
    format!("{slug}{}", &digest[..8])
}

fn numbered(base: &str, number: u32) -> SessionName {
    let name = if number == 1 { base.to_owned() } else { format!("{base}-{number}") };
    name.parse().expect("letters, digits and dashes, few enough")
}

/// The configuration that a session was started with.
pub fn recorded(store: &Sqlite, session: &Session) -> Result<String, Failure> {
    let snapshot = store.snapshot().map_err(remedy::store)?;
    let text = snapshot.config(session.config).map_err(remedy::view)?;
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
        let name = numbered(&base("x"), 1);
        assert_eq!(following("x", &name).unwrap(), numbered(&base("x"), 2));
        assert_eq!(following("x", &numbered(&base("x"), 9)).unwrap(), numbered(&base("x"), 10));
    }
}
