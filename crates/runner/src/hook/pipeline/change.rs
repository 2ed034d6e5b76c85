//! Opens a change: pushes the branch, and opens a change on the forge if the remote is on one.

use std::time::Duration;

use windlass_engine::{ChangeFact, ChangeRef, HookOutcome, HookReport, Session, Task, Workspace};
use windlass_vcs::forge::{Change, Forge, ForgeError, NewChange, Retry, Site, State, Token};
use windlass_vcs::git::{Branch, Commit, Error, Git, Pushed, Shared};

use super::Ended;
use crate::gate_checkout::commit_under_way;
use crate::hook::HookRun;
use crate::wording::report;
use crate::workspace_problem::with_causes;
use crate::{EffectRunner, RunError, RunnerEvent};

/// Maximum number of calls to a forge that cannot answer, and the longest wait between two.
const TRIES: u32 = 4;
const LONGEST: Duration = Duration::from_secs(60);

/// A branch that others can see from now on.
pub(super) struct Offer {
    pub branch: Branch,
    pub head: Commit,
    /// Branch that the change is meant for.
    pub base: Branch,
    pub pushed: Option<Pushed>,
    pub address: Option<String>,
}

impl EffectRunner<'_> {
    pub(super) fn create_pr(
        &mut self,
        run: &HookRun<'_>,
        session: &Session,
        workspace: &Workspace,
    ) -> Result<Ended, RunError> {
        let task = run.subject.task.as_ref();
        if !self.still_holds(session)? {
            return Ok(Ok(taken()));
        }
        let offer = match self.with_git(|git| self.offer(git, task, workspace, head_under_way(session)?.as_ref())) {
            Ok(offer) => offer,
            Err(error) => return Ok(Err(error)),
        };
        if !self.still_holds(session)? {
            return Ok(Ok(taken()));
        }
        let site = offer.address.as_deref().map(|address| Site::of(address, &self.settings.delivery.forge));
        let site = match site.transpose() {
            Ok(site) => site.flatten(),
            Err(error) => return Ok(Ok(failed(&error))),
        };
        let Some(site) = site else {
            let unmet = self.settings.delivery.forge.unmet(offer.address.as_deref());
            return Ok(Ok(local(&offer, unmet)));
        };
        let forge = match self.forge(site) {
            Ok(forge) => forge,
            Err(error) => return Ok(Ok(failed(&error))),
        };
        let new = NewChange {
            branch: offer.branch.to_string(),
            base: offer.base.to_string(),
            head: offer.head.to_string(),
            title: task.map_or("Work", Task::title).to_owned(),
            body: task.map(|task| body(task, workspace)).unwrap_or_default(),
        };
        // A known change goes on, whatever base a person has given it. If a person has closed it, it is not opened again.
        let known = task.and_then(|task| task.change.as_ref()).filter(|change| change.merged.is_none());
        let known = known.and_then(|change| change.at.number);
        let opened = self.asking_again(|| match known.map(|number| forge.look(number)).transpose()? {
            Some(change) if matches!(change.state, State::Open | State::Closed) => Ok(change),
            _ => forge.open(&new),
        });
        Ok(Ok(opened.map_or_else(|error| failed(&error), |change| shown(&offer, &change))))
    }

    /// Pushes a branch that is at the judged commit, if there is a remote.
    pub(super) fn offer(
        &self,
        git: &Git<'_>,
        task: Option<&Task>,
        workspace: &Workspace,
        judged: Option<&Commit>,
    ) -> Result<Offer, Error> {
        let base = self.known_base(git)?;
        let local = Branch::new(&workspace.branch)?;
        let head = git.tip(&local)?.ok_or_else(|| Error::UnknownCommit { commit: local.to_string() })?;
        if judged.is_some_and(|judged| *judged != head) {
            return Err(Error::Moved { branch: local });
        }
        let Some(remote) = base.remote else {
            return Ok(Offer { branch: local, head, base: base.branch, pushed: None, address: None });
        };
        let shared = Shared { branch: known_as(task, workspace)?, remote, local };
        let pushed = Some(git.share(&shared, &head)?);
        let address = Some(git.address(&shared.remote)?);
        Ok(Offer { branch: shared.branch, head, base: base.branch, pushed, address })
    }

    /// Returns whether the session still has its task: others may have taken it since the hook began.
    pub(super) fn still_holds(&self, session: &Session) -> Result<bool, RunError> {
        Ok(self.session(&session.name)?.epoch() == session.epoch())
    }

    pub(super) fn forge(&self, site: Site) -> Result<Forge, ForgeError> {
        let environment = &self.settings.environment;
        let token = Token::find(&site, environment, |spec| self.look_with(&spec))?;
        Ok(Forge::new(site, token, environment, Forge::TIMEOUT))
    }

    /// Calls a forge, and retries if that may help.
    pub(super) fn asking_again<T>(&mut self, ask: impl Fn() -> Result<T, ForgeError>) -> Result<T, ForgeError> {
        let mut tried = 0;
        loop {
            let error = match ask() {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            tried += 1;
            let Retry::After(after) = error.retry() else { return Err(error) };
            let wait = after.unwrap_or(Duration::from_millis(500) * 4_u32.pow(tried - 1));
            if tried >= TRIES || wait > LONGEST {
                return Err(error);
            }
            (self.outside.tell)(RunnerEvent::Note(&format!("{error}; asking again")));
            if !self.wait(wait) {
                return Err(error);
            }
        }
    }
}

/// Returns the public name of a task's branch. Work on an open change of others continues that change.
fn known_as(task: Option<&Task>, workspace: &Workspace) -> Result<Branch, Error> {
    let change = task.and_then(|task| task.change.as_ref()).filter(|change| change.merged.is_none());
    Branch::new(change.and_then(|change| change.at.branch.as_deref()).unwrap_or(&workspace.branch))
}

/// Returns the commit of a session in delivery.
pub(super) fn head_under_way(session: &Session) -> Result<Option<Commit>, Error> {
    commit_under_way(session).map(|(_, head)| Commit::new(head)).transpose()
}

pub(super) fn taken() -> HookReport {
    report(HookOutcome::Failure, "this session no longer holds the task")
}

pub(super) fn failed(error: &ForgeError) -> HookReport {
    report(HookOutcome::Failure, format!("{}; {}", with_causes(error), error.hint()))
}

/// Reports a change that only the log and the branch know.
fn local(offer: &Offer, unmet: Option<String>) -> HookReport {
    let change = ChangeRef {
        branch: Some(offer.branch.to_string()),
        base: Some(offer.base.to_string()),
        url: None,
        number: None,
    };
    let said = match (&offer.pushed, unmet) {
        (None, Some(unmet)) => format!("the change is the branch {}; {unmet}", offer.branch),
        (None, None) => format!("the change is the branch {}; there is no remote", offer.branch),
        (Some(_), Some(unmet)) => format!("pushed {}; {unmet}", offer.branch),
        (Some(_), None) => format!("pushed {}; the remote is on no forge that is known", offer.branch),
    };
    HookReport { change: Some(ChangeFact::Opened(change)), ..report(HookOutcome::Success, said) }
}

fn shown(offer: &Offer, change: &Change) -> HookReport {
    let url = change.url.clone();
    if change.state == State::Closed {
        return report(
            HookOutcome::Escalate,
            format!("{url} was closed without having been merged; reopen it there to go on"),
        );
    }
    let fact = ChangeRef {
        branch: Some(offer.branch.to_string()),
        base: Some(offer.base.to_string()),
        url: Some(url.clone()),
        number: Some(change.number),
    };
    let context = [("pr_url".to_owned(), url.clone().into())].into_iter().collect();
    HookReport { change: Some(ChangeFact::Opened(fact)), context, ..report(HookOutcome::Success, url) }
}

fn body(task: &Task, workspace: &Workspace) -> String {
    let rest = task.goal.lines().skip_while(|line| line.trim().is_empty()).skip(1).collect::<Vec<_>>().join("\n");
    let parts = [rest.trim(), task.body.as_deref().unwrap_or_default().trim()];
    let mut text: Vec<String> = parts.iter().filter(|part| !part.is_empty()).map(|part| (*part).to_owned()).collect();
    if !task.deliverables.is_empty() {
        text.push(task.deliverables.iter().map(|item| format!("- {item}")).collect::<Vec<_>>().join("\n"));
    }
    if !workspace.stacked_on.is_empty() {
        let below: Vec<String> = workspace.stacked_on.iter().map(ToString::to_string).collect();
        text.push(format!("Stands on {}: merge that first.", below.join(" and ")));
    }
    text.push(format!("Task: {}", task.id));
    text.join("\n\n")
}
