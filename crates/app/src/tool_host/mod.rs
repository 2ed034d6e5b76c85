//! The tool host of a real project: for one command, or for a server that takes calls for days.
//!
//! ```text
//! call ─► inside whose run? ─► configuration: cached while its file is unchanged ─► commit ─► its pending hooks, if any
//! ```
//!
//! Invariants:
//! - A call checks the configuration's file, and neither reads nor parses an unchanged one again.
//! - Nothing of a configuration counts that no person trusts.
//! - A person's change of the configuration, or of their trust, applies from the next call on.
//! - Nothing is written to standard output, which a server uses for its protocol. The output of hooks is captured, and failures
//!   of hooks become notices of the front end.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use windlass_config::{Config, ConfigSource, plan};
use windlass_engine::validation::ValidationRule;
use windlass_engine::{
    Authority, Command, CommandOrigin, ConfigDigest, ConfigTrust, Digest, EngineRules, EventRecord, RunId, TaskTypes,
    Timestamp, TypeName,
};
use windlass_hooks::SecretMask;
use windlass_process::OwnerLock;
use windlass_store::{SqliteStore, Store};
use windlass_tools::validation::ValidatorEnv;
use windlass_tools::{self as tools, CallerHint, RunControl, ToolError, ToolHost};

use crate::caller::{CallerContext, requires_person};
use crate::context::OpenedProject;
use crate::execution::{self, HookExecution, owner_name};
use crate::person::ConcernedSessions;
use crate::runner_settings::{build_secret_mask, supervisor_launcher, validator_permission, validator_trust};
use crate::{Failure, FailureCode, Notice, environment, hints, trust};

/// Longer than a clock tick of any file system.
const FILE_CLOCK_TICK: Duration = Duration::from_secs(2);

/// A project that serves tool calls.
pub struct ProjectToolHost {
    opened: OpenedProject,
    config_file: PathBuf,
    user: String,
    cached: Option<CachedConfig>,
    /// Set from the first call on that could enqueue a hook.
    owner_lock: Option<OwnerLock>,
    /// A file that was changed within this time may change again without a new time stamp.
    recent: Duration,
}

/// A parsed configuration.
struct CachedConfig {
    source: CachedConfigSource,
    text: Digest,
    config: Arc<Config>,
    /// Whether the configuration counts.
    is_trusted: bool,
    rules: EngineRules,
    mask: SecretMask,
}

/// The source of a cached configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CachedConfigSource {
    /// The configuration that a run was started with.
    Run(ConfigDigest),
    /// The file, identified by its metadata.
    File(FileStamp),
    /// The file, which was changed too recently to be identified by its metadata.
    Changing,
}

/// Metadata that identifies one content of a file, as far as the file system can tell; all zero if there is no file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct FileStamp {
    file: (u64, u64),
    length: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

impl ProjectToolHost {
    pub fn new(opened: OpenedProject) -> Self {
        let (user, config_file) = (environment::user_name(), opened.project.config_file());
        Self { opened, config_file, user, cached: None, owner_lock: None, recent: FILE_CLOCK_TICK }
    }

    /// Returns the owner lock of this process, acquired on first use.
    fn owner_lock(&mut self) -> Result<&OwnerLock, Failure> {
        match &mut self.owner_lock {
            Some(owner_lock) => Ok(owner_lock),
            none => Ok(none.insert(execution::acquire_owner_lock(&self.opened.project)?)),
        }
    }

    /// Detects the caller of a call, and refreshes the cached configuration.
    fn refresh_config(&mut self) -> Result<CallerContext, Failure> {
        let inside = CallerContext::detect_from_variables(&self.opened)?;
        self.cache_config(&inside)?;
        Ok(inside)
    }

    /// Detects the caller of a command, which may be one that agents are refused, and refreshes the cached configuration.
    fn refresh_config_for(&mut self, command: &Command) -> Result<CallerContext, Failure> {
        if !requires_person(command) {
            return self.refresh_config();
        }
        let inside = CallerContext::detect_for_person(&self.opened, ConcernedSessions::of_command_subject(command))?;
        self.cache_config(&inside)?;
        Ok(inside)
    }

    /// Caches the configuration that applies to a call.
    fn cache_config(&mut self, inside: &CallerContext) -> Result<(), Failure> {
        let source = match inside.config {
            Some(digest) => CachedConfigSource::Run(digest),
            None => self.stat_config_file(),
        };
        let known =
            self.cached.as_ref().is_some_and(|kept| kept.source == source && source != CachedConfigSource::Changing);
        let kept = match self.cached.take() {
            Some(kept) if known => kept,
            kept => self.parse_unless_cached(inside.load_config_source(&self.opened)?, source, kept)?,
        };
        let trust_option = self.opened.trust || inside.config.is_some();
        let counts = trust::is_config_effective(&self.opened.project, &kept.config, trust_option)?;
        let kept = match kept.is_trusted == counts {
            true => kept,
            false => CachedConfig { rules: self.build_rules(&kept.config, counts)?, is_trusted: counts, ..kept },
        };
        if !counts && kept.config.affects_tasks() {
            trust::note_untrusted_defaults(&*self.opened.front_end);
        }
        self.cached = Some(kept);
        Ok(())
    }

    /// Parses a configuration, unless the cached one has the same text.
    fn parse_unless_cached(
        &mut self,
        written: ConfigSource,
        source: CachedConfigSource,
        before: Option<CachedConfig>,
    ) -> Result<CachedConfig, Failure> {
        let text = written.text().digest();
        if let Some(kept) = before.filter(|kept| kept.text == text) {
            return Ok(CachedConfig { source, ..kept });
        }
        let config = Arc::new(Config::from_source(written)?);
        let (rules, mask) = (self.build_rules(&config, false)?, build_secret_mask(&config));
        Ok(CachedConfig { source, text, config, is_trusted: false, rules, mask })
    }

    /// Returns the configuration that the last call cached.
    fn cached_config(&self) -> &CachedConfig {
        self.cached.as_ref().expect("it was looked up")
    }

    fn build_rules(&mut self, config: &Config, counts: bool) -> Result<EngineRules, Failure> {
        match (plan::plan_hooks(config).is_empty(), counts) {
            (true, true) => return Ok(plan::pure_rules(config)?),
            (true, false) => return Ok(plan::pure_rules(&config.without_trust())?),
            (false, _) => {}
        }
        let owner = owner_name(self.owner_lock()?);
        Ok(plan::engine_rules(config, &owner, if counts { ConfigTrust::Yes } else { ConfigTrust::No })?)
    }

    fn stat_config_file(&self) -> CachedConfigSource {
        let Ok(found) = fs::metadata(&self.config_file) else { return CachedConfigSource::File(FileStamp::default()) };
        let stamp = FileStamp {
            file: (found.dev(), found.ino()),
            length: found.len(),
            written: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        };
        let changed = Duration::from_secs(found.ctime().max(found.mtime()).unsigned_abs());
        let now = Duration::from_millis(environment::current_timestamp().millis().unsigned_abs());
        if changed + self.recent <= now { CachedConfigSource::File(stamp) } else { CachedConfigSource::Changing }
    }

    fn commit_command(&mut self, origin: &CommandOrigin, command: &Command) -> Result<Vec<EventRecord>, ToolError> {
        let nonce = execution::random_u128().map_err(to_tool_error)?;
        let kept = self.cached.as_ref().expect("it was looked up");
        Ok(self.opened.store.execute_command(&kept.rules, origin, command, nonce)?)
    }

    /// Runs the pending hooks of this process.
    fn run_pending_hooks(&mut self, control: &RunControl) -> Result<(), Failure> {
        let (Some(kept), Some(owner_lock)) = (&self.cached, &self.owner_lock) else { return Ok(()) };
        let rules = kept.rules.clone();
        let execution = HookExecution::new(&mut self.opened, &kept.config, control).with_owner(owner_lock, rules);
        execution.run_with_effects(|dispatch| dispatch.run_pending_effects().map_err(hints::run_failure))
    }
}

impl ToolHost for ProjectToolHost {
    fn store(&self) -> &SqliteStore {
        &self.opened.store
    }

    fn execute_command(&mut self, command: &Command, control: &RunControl) -> Result<Vec<EventRecord>, ToolError> {
        let inside = self.refresh_config_for(command).map_err(to_tool_error)?;
        let origin = CommandOrigin {
            by: self.user.clone(),
            at: environment::current_timestamp(),
            authority: Authority::Person,
            run: inside.run.clone(),
            via: inside.via,
        };
        let records = self.commit_command(&origin, command)?;
        if records.iter().any(|record| record.envelope.metadata.owes.is_some()) {
            // The command is committed, so it succeeds even if its hooks fail.
            match self.run_pending_hooks(control) {
                Err(failure) if matches!(failure.code, FailureCode::Interrupted(_)) => {
                    return Err(to_tool_error(failure));
                }
                Err(failure) => self.opened.front_end.show_notice(Notice::Failure(&failure)),
                Ok(()) => {}
            }
        }
        Ok(records)
    }

    fn task_types(&mut self) -> Result<TaskTypes, ToolError> {
        self.refresh_config().map_err(to_tool_error)?;
        Ok(self.cached_config().rules.types.clone())
    }

    fn configured_rules(&mut self, kind: Option<&TypeName>) -> Result<Vec<ValidationRule>, ToolError> {
        self.refresh_config().map_err(to_tool_error)?;
        let CachedConfig { config, is_trusted: counts, .. } = self.cached_config();
        let rules = config.validation_rules().rules_for_type(kind).to_vec();
        if !counts && !rules.is_empty() {
            // Without these rules, work would pass that the file wants judged.
            let state = trust::find_trust_state(&self.opened.project, config).map_err(to_tool_error)?;
            return Err(to_tool_error(trust::trust_failure(config, state)));
        }
        Ok(rules)
    }

    fn calling_run(&self) -> Result<Option<RunId>, ToolError> {
        Ok(CallerContext::detect_from_variables(&self.opened).map_err(to_tool_error)?.run)
    }

    fn validator_env(&mut self) -> Result<ValidatorEnv<'_>, ToolError> {
        let inside = self.refresh_config().map_err(to_tool_error)?;
        let config = self.cached_config().config.clone();
        // Inside a run, the run's own trust decides; its configuration alone is no reason to trust it.
        let told_so = self.opened.trust || (inside.config.is_some() && environment::is_run_trusted());
        let trusted = told_so || trust::may_run_agent_programs(&self.opened.project, &config).map_err(to_tool_error)?;
        Ok(ValidatorEnv {
            directory: self.opened.project.root.clone(),
            environment: environment::inherited_environment_in_run(),
            mask: build_secret_mask(&config),
            permission: validator_permission(&config, validator_trust(trusted)),
            launcher: Some(supervisor_launcher().map_err(to_tool_error)?),
            owner_lock: self.owner_lock().map_err(to_tool_error)?,
        })
    }

    fn secret_mask(&mut self) -> Result<&SecretMask, ToolError> {
        self.refresh_config().map_err(to_tool_error)?;
        Ok(&self.cached_config().mask)
    }

    fn now(&self) -> Timestamp {
        environment::current_timestamp()
    }

    fn project_directory(&self) -> &Path {
        &self.opened.project.root
    }
}

/// Converts a failure to the error of a tool.
pub fn to_tool_error(failure: Failure) -> ToolError {
    let code = match failure.code {
        FailureCode::Usage => tools::ToolErrorCode::Invalid,
        FailureCode::Config => tools::ToolErrorCode::Config,
        FailureCode::Trust => tools::ToolErrorCode::Trust,
        FailureCode::NotFound | FailureCode::NoProject => tools::ToolErrorCode::NotFound,
        FailureCode::Refused => tools::ToolErrorCode::Refused,
        FailureCode::Store => tools::ToolErrorCode::Store,
        FailureCode::System | FailureCode::Fleet | FailureCode::Access => tools::ToolErrorCode::System,
        FailureCode::Interrupted(_) => tools::ToolErrorCode::Interrupted,
    };
    let hint = match code {
        tools::ToolErrorCode::Trust => Some(CallerHint::command("windlass trust", "shows what would run and asks")),
        _ => failure.hint.map(CallerHint::Advice),
    };
    ToolError { code, message: failure.message, causes: failure.causes, hints: hint.into_iter().collect() }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        let code = match error.code {
            tools::ToolErrorCode::UnknownTool | tools::ToolErrorCode::Invalid => FailureCode::Usage,
            tools::ToolErrorCode::NotFound => FailureCode::NotFound,
            tools::ToolErrorCode::Refused => FailureCode::Refused,
            tools::ToolErrorCode::Trust => FailureCode::Trust,
            tools::ToolErrorCode::Config => FailureCode::Config,
            tools::ToolErrorCode::Store => FailureCode::Store,
            tools::ToolErrorCode::System => FailureCode::System,
            tools::ToolErrorCode::Interrupted => FailureCode::Interrupted(hints::SIGINT_NUMBER),
        };
        let hint = error.word_hints(|hint| match hint {
            CallerHint::Tool { name, effect } => format!("the tool {name} {effect} (`windlass tool show {name}`)"),
            CallerHint::Command { line, effect } => format!("`{line}` {effect}"),
            CallerHint::Advice(text) => text.clone(),
        });
        // A message with several errors has one per line.
        let mut lines = error.message.lines().map(str::to_owned);
        let message = lines.next().unwrap_or_default();
        Self { causes: lines.chain(error.causes).collect(), hint, ..Self::new(code, message) }
    }
}

#[cfg(test)]
mod tests;
