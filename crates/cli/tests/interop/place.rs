//! A home, a project and a model for one agent, in a network that ends at this machine.

#![expect(clippy::disallowed_methods, reason = "these tests start the real binary, and are started as programs")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use windlass_testkit::provider::{Provider, Step};

use crate::agents::Real;

const WINDLASS: &str = env!("CARGO_BIN_EXE_windlass");
/// Set for a test that is alone in its network.
const INSIDE: &str = "WINDLASS_INTEROP_INSIDE";

/// The directory in which `scripts/agents` installs them.
fn installed() -> PathBuf {
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/agents");
    std::env::var_os("WINDLASS_AGENTS").map_or_else(usual, PathBuf::from).join("bin")
}

/// Returns whether this process is in a network namespace of its own. Otherwise runs the test in one, if possible, and returns
/// false.
pub fn alone(test: &str, real: &Real) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    if !installed().join(real.program).exists() {
        eprintln!("LEFT OUT: {test}: `{}` is not installed; `scripts/agents` installs it", real.program);
        return false;
    }
    let apart = |words: &[&str]| {
        let kind = if rustix::process::geteuid().is_root() { "-n" } else { "-rn" };
        let mut command = Command::new("unshare");
        command.args([kind, "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]).args(words);
        command
    };
    let possible = apart(&["true"]).stderr(Stdio::null()).status();
    if !possible.is_ok_and(|status| status.success()) {
        eprintln!("LEFT OUT: {test}: no network of its own can be made here (`unshare -rn` and `ip link set lo up`)");
        return false;
    }
    let own = std::env::current_exe().unwrap();
    let ran = apart(&[own.to_str().unwrap(), "--exact", test, "--nocapture"]).env(INSIDE, "1").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(ran.status.success(), "{}\n{}", text(&ran.stdout), text(&ran.stderr));
    false
}

/// The place of an agent: its home, project and model.
pub struct Place {
    /// The files of its home, by path.
    settings: Vec<String>,
    root: tempfile::TempDir,
    environment: Vec<(String, String)>,
    model: Provider,
}

impl Place {
    pub fn new(real: &Real, script: &str) -> Self {
        let steps: Vec<Step> = serde_saphyr::from_str(script).unwrap();
        let model = Provider::start(steps).unwrap();
        let root = tempfile::tempdir().unwrap();
        let url = model.url();
        let mut environment: Vec<(String, String)> = vec![
            ("PATH".to_owned(), format!("{}:/usr/local/bin:/usr/bin:/bin", installed().display())),
            ("HOME".to_owned(), root.path().join("home").display().to_string()),
            ("TMPDIR".to_owned(), root.path().join("tmp").display().to_string()),
            ("WINDLASS_STATE_DIR".to_owned(), root.path().join("state").display().to_string()),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ("GIT_CONFIG_GLOBAL".to_owned(), "/dev/null".to_owned()),
        ];
        environment
            .extend(real.environment.iter().map(|(name, value)| ((*name).to_owned(), value.replace("@MODEL@", &url))));
        let settings = real.files.iter().map(|(name, _)| format!("../home/{name}")).collect();
        let place = Self { settings, root, environment, model };
        for directory in ["home", "tmp", "work"] {
            fs::create_dir(place.root.path().join(directory)).unwrap();
        }
        for (name, content) in real.files {
            place.write(&format!("../home/{name}"), &content.replace("@MODEL@", &url));
        }
        place.write("notes.txt", "broken\n");
        let git = place.run("git", &["init", "-q", "-b", "main"]);
        assert_eq!(git.0, 0, "{}", git.1);
        place
    }

    /// Commits all files as the first commit.
    pub fn commit(&self) {
        let as_ann = ["-c", "user.name=ann", "-c", "user.email=ann@localhost"];
        for words in [&["add", "-A"][..], &["commit", "-q", "-m", "Begin"]] {
            let (code, out) = self.run("git", &[&as_ann, words].concat());
            assert_eq!(code, 0, "{out}");
        }
    }

    pub fn work(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("work")
    }

    pub fn write(&self, name: &str, content: &str) {
        let path = self.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(name)).unwrap_or_default()
    }

    /// Returns the files that a gatekeeper has left, once it has ended.
    pub fn left(&self) -> Option<String> {
        fs::read_to_string(self.work().join("../home/left")).ok()
    }

    /// A program, as a person would run it.
    pub fn run(&self, program: &str, words: &[&str]) -> (i32, String) {
        let mut command = Command::new(program);
        command.args(words).env_clear().envs(self.environment.iter().cloned()).current_dir(self.work());
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(&output.stdout) + &text(&output.stderr))
    }

    /// Returns the content of the agent's settings.
    pub fn settings(&self) -> Vec<String> {
        self.settings.iter().map(|file| self.read(file)).collect()
    }

    pub fn windlass(&self, words: &[&str]) -> (i32, String) {
        self.run(WINDLASS, words)
    }

    /// The hooks that have run, in order.
    pub fn hooks(&self) -> Vec<String> {
        self.read("../home/hooks").lines().map(str::to_owned).collect()
    }

    /// Returns the payloads of a type of event.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        self.whole_events(kind).into_iter().map(|mut event| event["data"].take()).collect()
    }

    /// Returns the events of a type with their envelopes.
    pub fn whole_events(&self, kind: &str) -> Vec<Value> {
        let (code, text) = self.windlass(&["--json", "events", "--type", kind]);
        assert_eq!(code, 0, "{text}");
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the model's input of the main conversation, without side requests.
    pub fn asked(&self) -> Vec<String> {
        let is_work = |body: &Value| body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
        let requests = self.model.requests();
        requests.iter().map(|request| &request.body).filter(|body| is_work(body)).map(Value::to_string).collect()
    }
}
