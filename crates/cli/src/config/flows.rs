//! Whether work can get through: types of tasks that nobody may take or judge, and pipelines that can never pass.
//!
//! Invariants:
//! - An error is only what can never work, whatever agents and hooks do. A hook with a condition may never run, so that it
//!   is warned about at most.
//! - What is pointed out is where somebody would have to change something, and once.
//!
//! Not here: what a hook may be at all (`hooks`); what the tasks of a project say about it (`commands/config`).

use std::collections::BTreeSet;
use std::ops::Range;

use super::builtin::Builtin;
use super::check::{agent_names, is_agent};
use super::entry::{Brief, Entry, Points};
use super::error::{Problem, position, quoted, suggestion};
use super::file::{Completion, Names, Settings, TaskType};
use super::hooks::{Hook, Kind, Scope};
use super::point::Point;
use super::reader::Located;
use crate::{gatekeepers, plan};

/// Something that can be used as it is, and is probably not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub line: usize,
    pub column: usize,
    pub message: String,
    pub suggestion: Option<String>,
}

/// Refuses what can never work.
pub fn check(settings: &Settings, hooks: &[Hook]) -> Result<(), Problem> {
    look(settings, hooks).errors.into_iter().next().map_or(Ok(()), Err)
}

/// The rest of what is odd, in the order of the file.
pub fn warnings(settings: &Settings, hooks: &[Hook], source: &str) -> Vec<Warning> {
    let warning = |problem: Problem| {
        let (line, column) = position(source, problem.at.unwrap_or_default());
        Warning { line, column, message: problem.message, suggestion: problem.suggestion }
    };
    look(settings, hooks).warnings.into_iter().map(warning).collect()
}

/// A gate whose only checks run the project's tests.
#[derive(Debug, PartialEq, Eq)]
pub struct TestGate<'a> {
    pub point: Point,
    /// The type of tasks that has the gate for itself.
    pub task_type: Option<&'a str>,
}

/// Returns the gates whose only checks run the project's tests, as the usual agent meets them.
pub fn find_test_gates<'a>(settings: &'a Settings, hooks: &'a [Hook]) -> Vec<TestGate<'a>> {
    let flows = Flows { settings, hooks: placed(settings, hooks) };
    let agent = settings.agent.as_ref().map(|agent| agent.as_str());
    let mut gates = Vec::new();
    for point in Point::all().into_iter().filter_map(Point::parse).filter(|point| plan::is_gate(*point)) {
        for kind in flows.kinds_with_own(point.name()) {
            let hooks = flows.at(point.name(), Who { kind, agent });
            let mut checks = hooks.iter().filter(|placed| !placed.is_step_of_git()).peekable();
            let has_rules = point.name() == "stop" && flows.has_rules(kind);
            if !has_rules && checks.peek().is_some() && checks.all(|placed| placed.is(Builtin::RunTests)) {
                gates.push(TestGate { point, task_type: kind.map(|(name, _)| name) });
            }
        }
    }
    gates
}

#[derive(Default)]
struct Findings {
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Findings {
    fn add(&mut self, weight: Weight, problem: Problem) {
        let found = match weight {
            Weight::Error => &mut self.errors,
            Weight::Warning => &mut self.warnings,
        };
        if !found.contains(&problem) {
            found.push(problem);
        }
    }

    fn warn(&mut self, at: &Range<usize>, message: String, suggestion: impl Into<Option<String>>) {
        self.add(Weight::Warning, Problem::new(message).suggest(suggestion).at(at.clone()));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Weight {
    Error,
    Warning,
}

/// A hook and where it is written.
#[derive(Clone, Copy)]
struct Placed<'a> {
    hook: &'a Hook,
    at: &'a Range<usize>,
}

impl Placed<'_> {
    fn is(self, builtin: Builtin) -> bool {
        match &self.hook.kind {
            Kind::Builtin(own) => *own == builtin,
            Kind::Gatekeeper(_) => builtin == Builtin::Gatekeeper,
            _ => false,
        }
    }

    fn is_step_of_git(self) -> bool {
        [Builtin::RebaseOnMain, Builtin::CreatePr, Builtin::MergePr].iter().any(|step| self.is(*step))
    }

    /// Whether it ever runs, as far as that is written down.
    fn is_on(self) -> bool {
        let never = self.hook.when.as_ref().is_some_and(|when| when.text().trim().eq_ignore_ascii_case("false"));
        self.hook.enabled() && !never
    }

    /// How sure it is that something goes wrong at this hook.
    fn weight(self) -> Weight {
        if self.hook.when.is_some() { Weight::Warning } else { Weight::Error }
    }
}

fn look(settings: &Settings, hooks: &[Hook]) -> Findings {
    let mut findings = Findings::default();
    let flows = Flows { settings, hooks: placed(settings, hooks) };
    let kinds = settings.task_types.iter().map(|(name, task_type)| Some((name.as_str(), &task_type.value)));
    for kind in std::iter::once(None).chain(kinds) {
        for agent in std::iter::once(None).chain(flows.agents_with_hooks(kind).map(Some)) {
            let who = Who { kind, agent };
            findings.pipeline(&flows, who);
        }
        if let Some((name, task_type)) = kind {
            findings.roles(name, task_type, &flows);
        }
    }
    findings.empty_gates(settings, &flows);
    findings.open_completion(settings, &flows);
    for placed in flows.hooks.iter().filter(|placed| placed.is_on()) {
        if let Some((message, hint)) = placed.hook.exit_hint() {
            findings.warn(placed.at, message, hint);
        }
    }
    findings.without_worktrees(settings, &flows);
    if let Some(command) = settings.test_command.as_ref().filter(|command| command.trim().is_empty()) {
        let message = "`test_command` is empty: `run_tests` has nothing to run".to_owned();
        findings.warn(&command.at, message, "leave it out, and what the project shows is run".to_owned());
    }
    findings.strangers(settings);
    findings.idle_agents(settings);
    findings.unread_briefs(settings, &flows);
    for found in [&mut findings.errors, &mut findings.warnings] {
        found.sort_by_key(|problem| problem.at.as_ref().map(|at| at.start));
    }
    findings
}

/// The workflows that hooks name, where they do.
pub fn named_workflows<'a>(settings: &'a Settings, hooks: &'a [Hook]) -> Vec<(&'a Hook, &'a Located<String>)> {
    let named = |(hook, entry): (&'a Hook, &'a Located<Brief<Entry>>)| match &entry.value {
        Brief::Full(entry) => Some((hook, entry.workflow.as_ref()?)),
        Brief::Word(_) => None,
    };
    hooks.iter().zip(all_entries(settings)).filter_map(named).collect()
}

/// Hooks with their places: they were made of the entries in this order, and notices come after them all.
fn placed<'a>(settings: &'a Settings, hooks: &'a [Hook]) -> Vec<Placed<'a>> {
    hooks.iter().zip(all_entries(settings)).map(|(hook, entry)| Placed { hook, at: &entry.at }).collect()
}

/// Every entry, in the order in which hooks are made of them.
fn all_entries(settings: &Settings) -> impl Iterator<Item = &Located<Brief<Entry>>> {
    let types = settings.task_types.values().map(|task_type| &task_type.hooks);
    let agents = settings.agents.values().map(|agent| &agent.hooks);
    std::iter::once(&settings.hooks).chain(types).chain(agents).flat_map(entries)
}

fn entries(points: &Points) -> impl Iterator<Item = &Located<Brief<Entry>>> {
    points.0.iter().flat_map(|(_, entries)| entries.iter().flatten())
}

/// Whose work is looked at.
#[derive(Clone, Copy)]
struct Who<'a> {
    kind: Option<(&'a str, &'a TaskType)>,
    agent: Option<&'a str>,
}

struct Flows<'a> {
    settings: &'a Settings,
    hooks: Vec<Placed<'a>>,
}

impl<'a> Flows<'a> {
    /// The hooks that run there, in their order.
    fn at(&self, point: &str, who: Who<'_>) -> Vec<Placed<'a>> {
        let own = who.kind.is_some_and(|(_, task_type)| is_written(&task_type.hooks, point));
        let is_meant = |hook: &Hook| match &hook.scope {
            Scope::Project => !own,
            Scope::TaskType(name) => who.kind.is_some_and(|(kind, _)| kind == name),
            Scope::Agent(name) => who.agent == Some(name),
        };
        let here = |placed: &&Placed<'_>| placed.hook.points().any(|other| other.name() == point);
        let meant = self.hooks.iter().filter(here).filter(|placed| placed.is_on() && is_meant(placed.hook));
        let mut meant: Vec<Placed<'a>> = meant.copied().collect();
        meant.sort_by_key(|placed| plan::priority(placed.hook));
        meant
    }

    /// Returns the types of tasks that say for themselves what is checked at a gate, after the project without a type.
    fn kinds_with_own(&self, point: &str) -> impl Iterator<Item = Option<(&'a str, &'a TaskType)>> {
        let has_own = move |task_type: &TaskType| {
            is_written(&task_type.hooks, point) || point == "stop" && task_type.validation.is_some()
        };
        let kinds = self.settings.task_types.iter().filter(move |(_, task_type)| has_own(&task_type.value));
        std::iter::once(None).chain(kinds.map(|(name, task_type)| Some((name.as_str(), &task_type.value))))
    }

    /// Whether validation rules judge the turns of such work.
    fn has_rules(&self, kind: Option<(&'a str, &'a TaskType)>) -> bool {
        let own = kind.and_then(|(_, task_type)| task_type.validation.as_ref());
        own.or(self.settings.validation.as_ref()).is_some_and(|rules| !rules.is_empty())
    }

    /// Agents that bring hooks of their own along to such work.
    fn agents_with_hooks(&self, kind: Option<(&'a str, &'a TaskType)>) -> impl Iterator<Item = &'a str> {
        let allowed = kind.and_then(|(_, task_type)| task_type.agents.implementer.as_ref());
        let may = move |name: &str| allowed.is_none_or(|names| names.iter().any(|allowed| allowed.value == name));
        let bring = |points: &Points| ["before_submit", "before_merge"].iter().any(|point| is_written(points, point));
        let agents = self.settings.agents.iter().filter(move |(name, agent)| may(name) && bring(&agent.hooks));
        agents.map(|(name, _)| name.as_str())
    }

    /// Whether such work can have a change when it is submitted. Without any list one is opened.
    fn opens_changes(&self, who: Who<'_>) -> bool {
        let written = who.kind.is_some_and(|(_, task_type)| is_written(&task_type.hooks, "before_submit"))
            || is_written(&self.settings.hooks, "before_submit");
        let agents = self.agents_with_hooks(who.kind).map(Some).chain([who.agent]);
        let opens = |agent| self.at("before_submit", Who { agent, ..who }).iter().any(|it| it.is(Builtin::CreatePr));
        !written || agents.into_iter().any(opens)
    }
}

fn is_written(points: &Points, point: &str) -> bool {
    points.0.iter().any(|(written, _)| Point::parse(written).is_some_and(|other| other.name() == point))
}

impl Findings {
    /// What stands in the wrong order, or is missing.
    fn pipeline(&mut self, flows: &Flows<'_>, who: Who<'_>) {
        let (submit, merge) = (&flows.at("before_submit", who)[..], &flows.at("before_merge", who)[..]);
        for list in [submit, merge] {
            self.tests_before_rebasing(list);
            self.twice(list);
        }
        if let Some((_, rebase)) = in_order(submit, Builtin::CreatePr, Builtin::RebaseOnMain) {
            let message = "`rebase_on_main` comes after `create_pr`: the change is opened without it".to_owned();
            self.warn(rebase.at, message, "write it before `create_pr`".to_owned());
        }
        let Some(index) = merge.iter().position(|placed| placed.is(Builtin::MergePr)) else { return };
        let merges = merge[index];
        if let Some((merges, _)) = in_order(merge, Builtin::MergePr, Builtin::Gatekeeper) {
            let problem =
                Problem::new("`merge_pr` comes before `gatekeeper`: the change would be judged after it is merged");
            let problem = problem.suggest("let `gatekeeper` run first".to_owned()).at(merges.at.clone());
            self.add(merges.weight(), problem);
        }
        if let Some((_, creates)) = in_order(merge, Builtin::MergePr, Builtin::CreatePr) {
            let problem = Problem::new("`create_pr` comes after `merge_pr`: there would be nothing to merge");
            let problem = problem.suggest("write `create_pr` under `before_submit`".to_owned()).at(creates.at.clone());
            self.add(creates.weight(), problem);
        } else if !merge[..index].iter().any(|placed| placed.is(Builtin::CreatePr)) && !flows.opens_changes(who) {
            let of_type = who.kind.map(|(name, _)| format!(" of the type `{name}`")).unwrap_or_default();
            let message = format!("`merge_pr` has nothing to merge: no `create_pr` is at `before_submit`{of_type}");
            let problem = Problem::new(message);
            let problem = problem.suggest("add `create_pr` to `before_submit`".to_owned()).at(merges.at.clone());
            self.add(merges.weight(), problem);
        }
        let judges = |placed: &&Placed<'_>| !placed.is(Builtin::CreatePr) && !placed.is(Builtin::Gatekeeper);
        for late in merge[index + 1..].iter().filter(judges) {
            let name = quoted(&late.hook.name);
            let message = format!("{name} runs after `merge_pr`, and can no longer keep the change from being merged");
            self.warn(late.at, message, "write it before `merge_pr`, or under `after_merge`".to_owned());
        }
    }

    /// A step of git does the same each time.
    fn twice(&mut self, list: &[Placed<'_>]) {
        for (index, placed) in list.iter().enumerate() {
            let Kind::Builtin(builtin) = placed.hook.kind else { continue };
            let is_same = |other: &Placed<'_>| other.is(builtin) && other.hook.when.is_none();
            if placed.hook.when.is_none() && list[..index].iter().any(is_same) {
                let message = format!("`{builtin}` is there twice");
                self.warn(placed.at, message, "once is enough".to_owned());
            }
        }
    }

    /// Steps that have nothing to work with where nobody gets a branch.
    fn without_worktrees(&mut self, settings: &Settings, flows: &Flows<'_>) {
        if settings.worktrees != Some(false) {
            return;
        }
        let of_git = [Builtin::CreatePr, Builtin::MergePr, Builtin::RebaseOnMain];
        for placed in flows.hooks.iter().filter(|placed| placed.is_on()) {
            if let Some(builtin) = of_git.into_iter().find(|builtin| placed.is(*builtin)) {
                let message = format!("`{builtin}` is always skipped: `worktrees` is false, and there is no branch");
                self.warn(placed.at, message, "leave it out, or let tasks have worktrees".to_owned());
            }
        }
    }

    fn tests_before_rebasing(&mut self, list: &[Placed<'_>]) {
        if let Some((tests, _)) = in_order(list, Builtin::RunTests, Builtin::RebaseOnMain) {
            let message =
                "`run_tests` comes before `rebase_on_main`: what is submitted was not tested on top of the base";
            self.warn(tests.at, message.to_owned(), "let `rebase_on_main` run first".to_owned());
        }
    }

    /// Lists of agents with which a type of task cannot get through.
    fn roles(&mut self, name: &str, task_type: &TaskType, flows: &Flows<'_>) {
        let who = Who { kind: Some((name, task_type)), agent: None };
        let judged: Vec<Placed<'_>> =
            flows.at("before_merge", who).into_iter().filter(|placed| placed.is(Builtin::Gatekeeper)).collect();
        let roles = &task_type.agents;
        if let Some(nobody) = roles.implementer.as_ref().filter(|names| names.is_empty()) {
            let message =
                format!("no agent may work on tasks of the type `{name}`: only people take them, by their ids");
            self.warn(&nobody.at, message, "without the list it is open to all".to_owned());
        }
        match (&roles.gatekeeper, judged.first()) {
            (Some(nobody), Some(placed)) if nobody.is_empty() => {
                let problem = Problem::new(format!("tasks of the type `{name}` are judged, and nobody may judge them"));
                let hint = "name an agent, or leave `gatekeeper` out of `agents` for the default one".to_owned();
                self.add(placed.weight(), problem.suggest(hint).at(nobody.at.clone()));
            }
            (Some(names), None) if !names.is_empty() => {
                let message = format!("nobody asks these gatekeepers: `{name}` has no `gatekeeper` at `before_merge`");
                let hint = "add `- gatekeeper: [qa]` to its `before_merge`, or leave the list out".to_owned();
                self.warn(&names.at, message, hint);
            }
            (judges, Some(_)) => self.own_judge(name, roles.implementer.as_ref(), judges.as_ref(), flows.settings),
            _ => {}
        }
    }

    /// An agent that alone does the work, and alone judges it.
    fn own_judge(&mut self, kind: &str, workers: Option<&Names>, judges: Option<&Names>, settings: &Settings) {
        let Some([worker]) = workers.map(|names| names.as_slice()) else { return };
        let judge = match judges.map(|names| names.as_slice()) {
            Some([judge]) => Some(judge),
            Some(_) => None,
            None => settings.agent.as_ref(),
        };
        if let Some(judge) = judge.filter(|judge| judge.value == worker.value) {
            let name = quoted(&judge.value);
            let message = format!("{name} does all the work of the type `{kind}`, and judges it too");
            self.warn(&judge.at, message, "let another agent judge it, if there is one".to_owned());
        }
    }

    /// Turns that are complete when they end, where nothing looks at them.
    fn open_completion(&mut self, settings: &Settings, flows: &Flows<'_>) {
        let Some(gate) = settings.completion.as_ref().filter(|completion| completion.value == Completion::Gate) else {
            return;
        };
        for kind in flows.kinds_with_own("stop") {
            if !flows.has_rules(kind) && flows.at("stop", Who { kind, agent: None }).is_empty() {
                let whose = kind.map(|(name, _)| format!(" for tasks of the type `{name}`")).unwrap_or_default();
                let message = format!(
                    "`completion: gate` without a `stop` hook{whose}: work counts as complete when a turn ends, and nothing \
                     checks it"
                );
                self.warn(&gate.at, message, "add `stop: [run_tests]` under `hooks`".to_owned());
            }
        }
    }

    /// Gates that were written, and stand open.
    fn empty_gates(&mut self, settings: &Settings, flows: &Flows<'_>) {
        let types = settings.task_types.values().map(|task_type| &task_type.hooks);
        for points in std::iter::once(&settings.hooks).chain(types) {
            for (written, entries) in &points.0 {
                let Some(point) = Point::parse(written).filter(|point| plan::is_gate(*point)) else { continue };
                let here: BTreeSet<usize> = entries.iter().flatten().map(|entry| entry.at.start).collect();
                let mut hooks = flows.hooks.iter().filter(|placed| here.contains(&placed.at.start)).peekable();
                if hooks.peek().is_some() && !hooks.any(|placed| placed.is_on()) {
                    let message = format!("every hook at `{point}` is switched off: nothing is judged there");
                    self.warn(&written.at, message, "write `[]` if that is meant".to_owned());
                }
            }
        }
    }

    /// Names in lists of agents that stand for none.
    fn strangers(&mut self, settings: &Settings) {
        let mut seen = BTreeSet::new();
        let roles = settings.task_types.values().map(|task_type| &task_type.agents);
        let names = roles.flat_map(|roles| [&roles.implementer, &roles.gatekeeper]).flatten();
        let mut names: Vec<&Located<String>> = names.flat_map(|names| names.iter()).collect();
        names.sort_by_key(|name| name.at.start);
        for name in names {
            if !is_agent(name, settings) && seen.insert(name.as_str()) {
                let near = suggestion(name, &agent_names(settings)).filter(|hint| hint.starts_with("did you mean"));
                let hint =
                    near.unwrap_or_else(|| "say under `agents` how it is started, before it is needed".to_owned());
                self.warn(&name.at, format!("{} is no agent that is known here", quoted(name)), hint);
            }
        }
    }

    /// Agents that are set up, and get no task of any type.
    fn idle_agents(&mut self, settings: &Settings) {
        let lists: Option<Vec<&Names>> =
            settings.task_types.values().map(|task_type| task_type.agents.implementer.as_ref()).collect();
        let Some(lists) = lists.filter(|lists| !lists.is_empty()) else { return };
        let judges = settings.task_types.values().filter_map(|task_type| task_type.agents.gatekeeper.as_ref());
        let used: BTreeSet<&str> =
            lists.into_iter().chain(judges).flat_map(|names| names.iter()).map(|name| name.as_str()).collect();
        let places = settings.agents.iter().map(|(name, agent)| (name.as_str(), &agent.at));
        let usual = settings.agent.as_ref().filter(|agent| !settings.agents.contains_key(agent.as_str()));
        for (name, at) in places.chain(usual.map(|agent| (agent.as_str(), &agent.at))) {
            if !used.contains(name) {
                let message = format!("{} may work on no type of task: every type lists others", quoted(name));
                self.warn(at, message, "it gets only tasks without a type; name it under `implementer`".to_owned());
            }
        }
    }

    /// Briefs that nobody is told.
    fn unread_briefs(&mut self, settings: &Settings, flows: &Flows<'_>) {
        let asked: BTreeSet<&str> = flows.hooks.iter().flat_map(|placed| gatekeepers::briefs(placed.hook)).collect();
        let names: Vec<&str> = asked.iter().copied().collect();
        for (name, text) in settings.briefs.iter().filter(|(name, _)| !asked.contains(name.as_str())) {
            self.warn(
                &text.at,
                format!("no `gatekeeper` asks for the brief {}", quoted(name)),
                suggestion(name, &names),
            );
        }
    }
}

/// The first of one kind and the first of another after it.
fn in_order<'a>(list: &[Placed<'a>], first: Builtin, second: Builtin) -> Option<(Placed<'a>, Placed<'a>)> {
    let index = list.iter().position(|placed| placed.is(first))?;
    let later = list[index + 1..].iter().find(|placed| placed.is(second))?;
    Some((list[index], *later))
}
