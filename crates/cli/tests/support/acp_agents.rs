//! Agents that speak the Agent Client Protocol: the scripted agent of a project, and an agent without a Windlass session.

use std::time::Duration;

use serde_json::Value;
use windlass_agents::acp::{self, AcpConnection, AgentPermissions, HandshakeOutcome, McpServer};
use windlass_agents::{TurnBudget, TurnOutcome};
use windlass_engine::UsdCost;
use windlass_process::{OwnerLock, ProgramInvocation, RunControl, SupervisorLauncher};

use super::{TestWorld, WINDLASS};

/// An agent that records its requests, and answers with the content of `initialize.json`, `session_new.json` and so on, or with
/// an empty object.
const AGENT_SCRIPT: &str = r#"
while read -r line; do
  echo "$line" >> asked
  file=$(echo "$line" | jq -r '.method | gsub("/"; "_")').json
  result='{}'; test -e $file && result=$(cat $file)
  echo "$line" | jq -c --argjson result "$result" '{jsonrpc: "2.0", id, result: $result}'
done
"#;

impl TestWorld {
    /// Creates a project whose agent follows a script (`scripted:play.yaml`). Trusts the configuration, if there is one.
    pub fn with_scripted_agent(config: &str, script: &str) -> Self {
        let world = Self::empty();
        world.write("play.yaml", script);
        if !config.is_empty() {
            world.write(".windlass/config.yaml", config);
            world.run_ok(&["trust", "--yes"]);
        }
        world
    }
}

/// An ACP agent that the test drives without a runner.
pub struct ScriptedAcpAgent {
    pub world: TestWorld,
    owner_lock: OwnerLock,
    launcher: SupervisorLauncher,
}

/// The parameters of a new conversation with an agent.
#[derive(Default)]
pub struct AcpOpenOptions<'a> {
    pub servers: Vec<McpServer>,
    pub model: Option<&'a str>,
    pub before: Option<&'a str>,
    pub permissions: &'a str,
}

impl ScriptedAcpAgent {
    /// Creates an agent that answers each method with this value.
    pub fn new(answers: &[(&str, Value)]) -> Self {
        let world = TestWorld::empty();
        world.write("agent.sh", AGENT_SCRIPT);
        for (method, answer) in answers {
            world.write(&format!("{}.json", method.replace('/', "_")), answer.to_string());
        }
        let owner_lock = OwnerLock::acquire(&world.path("owners"), 7).unwrap();
        let launcher =
            SupervisorLauncher { program: WINDLASS.into(), arguments: vec!["__supervise".into()], environment: vec![] };
        Self { world, owner_lock, launcher }
    }

    pub fn open_program(&self, invocation: ProgramInvocation, options: &AcpOpenOptions<'_>) -> HandshakeOutcome {
        let shell = self.world.program("sh");
        let environment = shell.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let environment = environment.collect();
        let spec = acp::build_agent_spec(invocation, &self.world.directory, environment);
        let permissions: AgentPermissions = match options.permissions {
            "" => AgentPermissions::default(),
            text => serde_saphyr::from_str(text).unwrap(),
        };
        let start = acp::AgentStartRequest {
            launcher: &self.launcher,
            owner_lock: &self.owner_lock,
            spec: &spec,
            permissions: &permissions,
            servers: &options.servers,
            model: options.model,
            before: options.before,
            cost: UsdCost::default(),
        };
        let outcome = AcpConnection::open_conversation(&start, &mut generous_deadline());
        outcome.unwrap_or_else(|end| panic!("{end:?}"))
    }

    pub fn open_conversation(&self, options: &AcpOpenOptions<'_>) -> HandshakeOutcome {
        self.open_program(ProgramInvocation::Shell("sh agent.sh".into()), options)
    }

    /// Sends a prompt. Returns the outcome of the turn, the connection if the agent accepts another prompt, and the transcript.
    pub fn run_prompt(&self, connection: AcpConnection) -> (TurnOutcome, Option<AcpConnection>, String) {
        let mut transcript = String::new();
        let context = acp::TurnContext {
            owner_lock: &self.owner_lock,
            budget: &mut generous_deadline(),
            transcript: &mut |text| transcript.push_str(text),
        };
        let (outcome, connection) = connection.run_turn("Go.", context);
        (outcome, connection, transcript)
    }

    /// Returns whether the agent accepts another prompt.
    pub fn is_ready(&self, connection: &mut AcpConnection) -> bool {
        connection.is_ready(&RunControl::new(), &self.owner_lock)
    }

    /// Returns the methods and parameters of the requests, without `initialize`.
    pub fn requests(&self) -> Vec<(String, Value)> {
        let text = std::fs::read_to_string(self.world.path("asked")).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.skip(1).map(|line| (line["method"].as_str().unwrap().to_owned(), line["params"].clone())).collect()
    }
}

/// Returns a budget that only an endless wait exceeds.
fn generous_deadline() -> TurnBudget {
    TurnBudget::new(Some(Duration::from_secs(60)), None, RunControl::new())
}
