//! The only access to the machine: variables, directories, the clock, randomness, and the processes around this one.
//!
//! All other code gets these as values, so that it behaves the same on every machine and in every test.

#![expect(clippy::disallowed_methods, reason = "this is the one home of the environment and of the clock")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{env, io};

use jiff::tz::TimeZone;
use windlass_engine::Timestamp;
use windlass_process::file;

/// The largest time zone file that is read, in bytes. A usual one has a few kilobytes.
const MAX_ZONE_FILE: u64 = 1024 * 1024;

/// Returns the words of the command line, the program's own name first.
pub fn command_line_arguments() -> Vec<OsString> {
    env::args_os().collect()
}

pub fn first_argument() -> Option<OsString> {
    env::args_os().nth(1)
}

pub fn working_directory() -> io::Result<PathBuf> {
    env::current_dir()
}

/// Returns the file of the running program.
pub fn own_program() -> io::Result<PathBuf> {
    windlass_process::running_program_path()
}

/// Ends this process at once, without waiting for its threads.
pub fn exit_process(code: i32) -> ! {
    std::process::exit(code)
}

/// Returns the directory of the system for temporary files.
pub fn temporary_directory() -> PathBuf {
    env::temp_dir()
}

/// Returns the value of a variable; `None` if it is unset or empty.
fn nonempty_variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

fn text_variable(name: &str) -> Option<String> {
    nonempty_variable(name).and_then(|value| value.into_string().ok())
}

/// `WINDLASS_PROJECT`: the project of this command, unless `--project` names one.
pub fn project_variable() -> Option<PathBuf> {
    nonempty_variable("WINDLASS_PROJECT").map(PathBuf::from)
}

/// Returns whether a variable is set. The variables of an agent identify it.
pub fn is_variable_set(name: &str) -> bool {
    nonempty_variable(name).is_some()
}

/// Returns the directory that the first set one of these variables names.
pub fn find_directory_variable(names: &[&str]) -> Option<PathBuf> {
    names.iter().find_map(|name| nonempty_variable(name)).map(PathBuf::from).filter(|directory| directory.is_absolute())
}

/// `WINDLASS_RUN`: the run that this process belongs to, if an agent or a hook started it. A value that is not UTF-8 is kept, so
/// that its reader refuses it.
pub fn run_variable() -> Option<String> {
    nonempty_variable("WINDLASS_RUN").map(|value| value.to_string_lossy().into_owned())
}

/// `WINDLASS_DEBT`: the hook effect that this process belongs to.
pub fn effect_variable() -> Option<String> {
    text_variable("WINDLASS_DEBT")
}

/// `WINDLASS_JUDGING`: whether this process belongs to a program that judges an agent's work.
pub fn is_judging_process() -> bool {
    nonempty_variable("WINDLASS_JUDGING").is_some()
}

/// `WINDLASS_PROJECT_DIR`: the project of `WINDLASS_RUN` and `WINDLASS_DEBT`.
pub fn run_project_directory() -> Option<PathBuf> {
    nonempty_variable("WINDLASS_PROJECT_DIR").map(PathBuf::from)
}

/// `WINDLASS_MCP_TOKEN`: the token that clients of our tools over HTTP must send. A value that is not UTF-8 still counts.
pub fn mcp_token() -> Option<String> {
    nonempty_variable("WINDLASS_MCP_TOKEN").map(|value| value.to_string_lossy().into_owned())
}

/// Returns the value of a variable that the configuration names as a secret.
pub fn secret_value(name: &str) -> Option<OsString> {
    nonempty_variable(name)
}

/// `WINDLASS_TRUSTED`: whether the run that this process belongs to was trusted. A process that can set it for ours has our
/// rights already.
pub fn is_run_trusted() -> bool {
    nonempty_variable("WINDLASS_TRUSTED").is_some_and(|value| value == "1")
}

/// `WINDLASS_TRUSTED_STORE`: the files of the store that the command which started this process was told to trust.
pub fn trusted_store_token() -> Option<String> {
    text_variable("WINDLASS_TRUSTED_STORE")
}

/// Returns the environment for programs that Windlass starts. It leaves out variables that Windlass sets for its own children,
/// and variables that tie git to one repository: a git hook that calls us means another tree than the one with the work. It names
/// the state directory, because those programs may have another home.
pub fn inherited_environment() -> Vec<(OsString, OsString)> {
    const PASSED_ON_VARIABLES: [&str; 4] =
        ["WINDLASS_PROJECT", "WINDLASS_STATE_DIR", "WINDLASS_TRUSTED_STORE", "WINDLASS_FAILPOINT"];
    let ours = |name: &str| name.starts_with("WINDLASS_") && !PASSED_ON_VARIABLES.contains(&name);
    let kept = |name: &OsString| !name.to_str().is_some_and(|name| ours(name) || is_repository_variable(name));
    let state = state_directory().filter(|_| !is_variable_set("WINDLASS_STATE_DIR"));
    let state = state.map(|state| ("WINDLASS_STATE_DIR".into(), state.into()));
    env::vars_os().filter(|(name, _)| kept(name)).chain(state).collect()
}

/// Returns whether a variable of git belongs to one repository or one commit. Variables about identity and access to servers
/// apply to all repositories.
fn is_repository_variable(name: &str) -> bool {
    const GLOBAL_GIT_VARIABLES: [&str; 12] = [
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_ASKPASS",
        "GIT_TERMINAL_PROMPT",
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_PAGER",
        "GIT_EDITOR",
    ];
    name.starts_with("GIT_") && !name.starts_with("GIT_TRACE") && !GLOBAL_GIT_VARIABLES.contains(&name)
}

/// Returns the environment for programs that run for an agent: they belong to the run and the hook of this process.
pub fn inherited_environment_in_run() -> Vec<(OsString, OsString)> {
    let inside =
        ["WINDLASS_RUN", "WINDLASS_DEBT"].into_iter().filter_map(|name| Some((name.into(), nonempty_variable(name)?)));
    inherited_environment().into_iter().chain(inside).collect()
}

/// Returns the unfiltered environment of this process.
pub fn full_environment() -> Vec<(OsString, OsString)> {
    env::vars_os().collect()
}

/// `WINDLASS_FAILPOINT`: the failpoint at which a test makes this program fail.
pub fn failpoint_variable() -> Option<String> {
    text_variable("WINDLASS_FAILPOINT")
}

/// Returns whether a terminal can redraw its output and a person watches it: `TERM`, `CI`.
pub fn can_redraw_terminal() -> bool {
    text_variable("TERM").is_some_and(|name| name != "dumb")
        && nonempty_variable("CI").is_none_or(|value| value == "false")
}

/// Returns the pager for long texts: `WINDLASS_PAGER`, else `PAGER`, else `less` if it is installed. An empty value or `cat`
/// means none.
pub fn pager_command() -> Option<String> {
    let chosen = ["WINDLASS_PAGER", "PAGER"].into_iter().find_map(|name| env::var_os(name)?.into_string().ok());
    let usual =
        || program_directories().iter().any(|place| place.join("less").is_file()).then(|| "less -FRX".to_owned());
    let pager = chosen.or_else(usual)?;
    Some(pager).filter(|pager| !matches!(pager.trim(), "" | "cat"))
}

/// Returns the author of events: `USER`, else `LOGNAME`, else the user's number.
pub fn user_name() -> String {
    let number = || format!("uid-{}", rustix::process::getuid().as_raw());
    text_variable("USER").or_else(|| text_variable("LOGNAME")).unwrap_or_else(number)
}

/// Returns the directory of this person's trust decisions, outside every project.
pub fn state_directory() -> Option<PathBuf> {
    nonempty_variable("WINDLASS_STATE_DIR")
        .or_else(|| nonempty_variable("XDG_STATE_HOME").map(|home| PathBuf::from(home).join("windlass").into()))
        .map(PathBuf::from)
        .or_else(|| nonempty_variable("HOME").map(|home| PathBuf::from(home).join(".local/state/windlass")))
        .filter(|directory| directory.is_absolute())
}

/// Returns the id of this machine's installation, or the name of its host.
pub fn machine_id() -> String {
    let text = file::read_text_file(Path::new("/etc/machine-id"), 1024).map(|text| text.trim().to_owned());
    text.filter(|id| !id.is_empty()).unwrap_or_else(host_name)
}

/// Returns the name of this machine.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns the person's home directory.
pub fn home_directory() -> Option<PathBuf> {
    nonempty_variable("HOME").map(PathBuf::from).filter(|directory| directory.is_absolute())
}

/// Returns the directories in which programs are looked up.
pub fn program_directories() -> Vec<PathBuf> {
    nonempty_variable("PATH")
        .map(|path| env::split_paths(&path).filter(|d| d.is_absolute()).collect())
        .unwrap_or_default()
}

/// Returns the present time of the system.
pub fn system_time() -> SystemTime {
    SystemTime::now()
}

pub fn current_timestamp() -> Timestamp {
    let since = system_time().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Returns the time of a monotonic clock, which also runs while the machine sleeps; a change of the system's time does not move
/// it. Events of a session, and so its limits, use this clock.
pub fn steady_timestamp() -> Timestamp {
    static STEADY_CLOCK: OnceLock<SteadyClock> = OnceLock::new();
    let uptime = windlass_process::system_uptime();
    STEADY_CLOCK.get_or_init(|| SteadyClock { started_at: current_timestamp(), uptime }).timestamp_at(uptime)
}

/// A moment of the system's time, with the uptime of the system at that moment.
struct SteadyClock {
    started_at: Timestamp,
    uptime: Duration,
}

impl SteadyClock {
    fn timestamp_at(&self, uptime: Duration) -> Timestamp {
        let since = i64::try_from(uptime.saturating_sub(self.uptime).as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(self.started_at.millis().saturating_add(since))
    }
}

/// Returns the person's time zone: `TZ`, else the machine's.
///
/// This reads one file. Searching the whole database for the name would take longer than the rest of a command.
pub fn time_zone() -> TimeZone {
    static CACHED_ZONE: OnceLock<TimeZone> = OnceLock::new();
    let compiled = |path: &Path| TimeZone::tzif("", &file::read_bounded(path, MAX_ZONE_FILE).ok()?).ok();
    let find = || match env::var_os("TZ") {
        None => compiled(Path::new("/etc/localtime")),
        Some(name) => {
            let name = name.to_str()?.trim_start_matches(':');
            compiled(&Path::new("/usr/share/zoneinfo").join(name)).or_else(|| TimeZone::posix(name).ok())
        }
    };
    CACHED_ZONE.get_or_init(|| find().unwrap_or(TimeZone::UTC)).clone()
}

/// Returns sixteen random bytes, for ids that must not collide.
pub fn random_u128() -> Result<u128, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(u128::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_clock_goes_by_the_time_that_has_passed() {
        let clock = SteadyClock { started_at: Timestamp::from_millis(5_000), uptime: Duration::from_secs(70) };
        assert_eq!(clock.timestamp_at(Duration::from_secs(70)).millis(), 5_000);
        assert_eq!(clock.timestamp_at(Duration::from_millis(71_250)).millis(), 6_250);
        assert_eq!(clock.timestamp_at(Duration::ZERO).millis(), 5_000);
        assert!(steady_timestamp() <= steady_timestamp());
    }
}
