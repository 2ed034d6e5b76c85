//! A home directory, a project and a scripted model for one agent, in an isolated network namespace.

#![expect(
    clippy::disallowed_methods,
    reason = "these tests run the real binary, and run themselves again in a namespace"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use windlass_testkit::provider::{ModelStep, ScriptedProvider};

use crate::agents::InstalledAgent;

const WINDLASS: &str = env!("CARGO_BIN_EXE_windlass");
/// The environment variable that marks a test in its own network namespace.
const ISOLATION_VARIABLE: &str = "WINDLASS_INTEROP_INSIDE";

/// Returns the directory in which `scripts/agents` installs the agents.
fn install_directory() -> PathBuf {
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/agents");
    std::env::var_os("WINDLASS_AGENTS").map_or_else(usual, PathBuf::from).join("bin")
}

/// Returns whether this process is in its own network namespace. If not, runs the test again in one, if possible, and returns
/// false.
pub fn is_isolated_run(test: &str, real_agent: &InstalledAgent) -> bool {
    if std::env::var_os(ISOLATION_VARIABLE).is_some() {
        return true;
    }
    if !install_directory().join(real_agent.program).exists() {
        eprintln!("LEFT OUT: {test}: `{}` is not installed; `scripts/agents` installs it", real_agent.program);
        return false;
    }
    let isolated_command = |words: &[&str]| {
        let kind = if rustix::process::geteuid().is_root() { "-n" } else { "-rn" };
        let mut command = Command::new("unshare");
        command.args([kind, "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]).args(words);
        command
    };
    let possible = isolated_command(&["true"]).stderr(Stdio::null()).status();
    if !possible.is_ok_and(|status| status.success()) {
        eprintln!("LEFT OUT: {test}: no network of its own can be made here (`unshare -rn` and `ip link set lo up`)");
        return false;
    }
    let test_program = std::env::current_exe().unwrap();
    let output = isolated_command(&[test_program.to_str().unwrap(), "--exact", test, "--nocapture"])
        .env(ISOLATION_VARIABLE, "1")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    false
}

/// The environment of an agent: its home directory, its project and its model.
pub struct AgentHome {
    /// The paths of its settings files.
    settings_files: Vec<String>,
    root: tempfile::TempDir,
    environment: Vec<(String, String)>,
    model: ScriptedProvider,
}

impl AgentHome {
    pub fn new(real_agent: &InstalledAgent, script: &str) -> Self {
        let steps: Vec<ModelStep> = serde_saphyr::from_str(script).unwrap();
        let model = ScriptedProvider::start(steps).unwrap();
        let root = tempfile::tempdir().unwrap();
        let url = model.url();
        let mut environment: Vec<(String, String)> = vec![
            ("PATH".to_owned(), format!("{}:/usr/local/bin:/usr/bin:/bin", install_directory().display())),
            ("HOME".to_owned(), root.path().join("home").display().to_string()),
            ("TMPDIR".to_owned(), root.path().join("tmp").display().to_string()),
            ("WINDLASS_STATE_DIR".to_owned(), root.path().join("state").display().to_string()),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ("GIT_CONFIG_GLOBAL".to_owned(), "/dev/null".to_owned()),
        ];
        environment.extend(
            real_agent.environment.iter().map(|(name, value)| ((*name).to_owned(), value.replace("@MODEL@", &url))),
        );
        let settings_files = real_agent.files.iter().map(|(name, _)| format!("../home/{name}")).collect();
        let home = Self { settings_files, root, environment, model };
        for directory in ["home", "tmp", "work"] {
            fs::create_dir(home.root.path().join(directory)).unwrap();
        }
        for (name, content) in real_agent.files {
            home.write_file(&format!("../home/{name}"), &content.replace("@MODEL@", &url));
        }
        home.write_file("notes.txt", "broken\n");
        let git = home.run_program("git", &["init", "-q", "-b", "main"]);
        assert_eq!(git.0, 0, "{}", git.1);
        home
    }

    /// Commits all files as the first commit.
    pub fn commit_all_files(&self) {
        let as_ann = ["-c", "user.name=ann", "-c", "user.email=ann@localhost"];
        for words in [&["add", "-A"][..], &["commit", "-q", "-m", "Begin"]] {
            let (code, out) = self.run_program("git", &[&as_ann, words].concat());
            assert_eq!(code, 0, "{out}");
        }
    }

    pub fn work_directory(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("work")
    }

    pub fn write_file(&self, name: &str, content: &str) {
        let path = self.work_directory().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn read_file(&self, name: &str) -> String {
        fs::read_to_string(self.work_directory().join(name)).unwrap_or_default()
    }

    /// Returns the list of files that an ended gatekeeper has written.
    pub fn read_gatekeeper_files(&self) -> Option<String> {
        fs::read_to_string(self.work_directory().join("../home/left")).ok()
    }

    /// Runs a program in the project. Returns its exit code and its output.
    pub fn run_program(&self, program: &str, words: &[&str]) -> (i32, String) {
        let mut command = Command::new(program);
        command.args(words).env_clear().envs(self.environment.iter().cloned()).current_dir(self.work_directory());
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(&output.stdout) + &text(&output.stderr))
    }

    /// Returns the content of the agent's settings.
    pub fn read_settings(&self) -> Vec<String> {
        self.settings_files.iter().map(|file| self.read_file(file)).collect()
    }

    pub fn run_windlass(&self, words: &[&str]) -> (i32, String) {
        self.run_program(WINDLASS, words)
    }

    /// Returns the hooks that have run, in order.
    pub fn read_hooks(&self) -> Vec<String> {
        self.read_file("../home/hooks").lines().map(str::to_owned).collect()
    }

    /// Returns the payloads of a type of event.
    pub fn event_payloads(&self, kind: &str) -> Vec<Value> {
        self.full_events(kind).into_iter().map(|mut event| event["data"].take()).collect()
    }

    /// Returns the events of a type with their envelopes.
    pub fn full_events(&self, kind: &str) -> Vec<Value> {
        let (code, text) = self.run_windlass(&["--json", "events", "--type", kind]);
        assert_eq!(code, 0, "{text}");
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the model's input of the main conversation, without side requests.
    pub fn model_requests(&self) -> Vec<String> {
        let is_work = |body: &Value| body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
        let requests = self.model.requests();
        requests.iter().map(|request| &request.body).filter(|body| is_work(body)).map(Value::to_string).collect()
    }
}
