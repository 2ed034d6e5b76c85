//! Agents that speak the Agent Client Protocol: the scripted one in a project, and any other without a loop around it.

use std::time::Duration;

use serde_json::Value;
use windlass_agents::acp::{self, AcpConnection, AgentPermissions, HandshakeOutcome, McpServer};
use windlass_agents::{TurnBudget, TurnOutcome};
use windlass_engine::UsdCost;
use windlass_process::{OwnerLock, ProgramInvocation, RunControl, SupervisorLauncher};

use super::{WINDLASS, World};

/// Notes what it is asked, and answers with what is in `initialize.json`, `session_new.json` and so on, or with nothing.
const AGENT: &str = r#"
while read -r line; do
  echo "$line" >> asked
  file=$(echo "$line" | jq -r '.method | gsub("/"; "_")').json
  result='{}'; test -e $file && result=$(cat $file)
  echo "$line" | jq -c --argjson result "$result" '{jsonrpc: "2.0", id, result: $result}'
done
"#;

impl World {
    /// A project whose agent plays a script (`scripted:play.yaml`), trusted if it has a configuration.
    pub fn played(config: &str, script: &str) -> Self {
        let world = Self::empty();
        world.write("play.yaml", script);
        if !config.is_empty() {
            world.write(".windlass/config.yaml", config);
            world.ok(&["trust", "--yes"]);
        }
        world
    }
}

/// An agent that is driven from here.
pub struct Driven {
    pub world: World,
    roster: OwnerLock,
    launcher: SupervisorLauncher,
}

/// What an agent is opened with.
#[derive(Default)]
pub struct With<'a> {
    pub servers: Vec<McpServer>,
    pub model: Option<&'a str>,
    pub before: Option<&'a str>,
    pub permissions: &'a str,
}

impl Driven {
    /// Answers with these.
    pub fn new(answers: &[(&str, Value)]) -> Self {
        let world = World::empty();
        world.write("agent.sh", AGENT);
        for (method, answer) in answers {
            world.write(&format!("{}.json", method.replace('/', "_")), answer.to_string());
        }
        let roster = OwnerLock::acquire(&world.path("owners"), 7).unwrap();
        let launcher =
            SupervisorLauncher { program: WINDLASS.into(), arguments: vec!["__supervise".into()], environment: vec![] };
        Self { world, roster, launcher }
    }

    pub fn open_with(&self, invocation: ProgramInvocation, with: &With<'_>) -> HandshakeOutcome {
        let around = self.world.program("sh");
        let environment = around.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let environment = environment.collect();
        let spec = acp::build_agent_spec(invocation, &self.world.directory, environment);
        let permissions: AgentPermissions = match with.permissions {
            "" => AgentPermissions::default(),
            text => serde_saphyr::from_str(text).unwrap(),
        };
        let start = acp::AgentStartRequest {
            launcher: &self.launcher,
            roster: &self.roster,
            spec: &spec,
            permissions: &permissions,
            servers: &with.servers,
            model: with.model,
            before: with.before,
            cost: UsdCost::default(),
        };
        let opened = AcpConnection::open_conversation(&start, &mut generous_deadline());
        opened.unwrap_or_else(|end| panic!("{end:?}"))
    }

    pub fn open(&self, with: &With<'_>) -> HandshakeOutcome {
        self.open_with(ProgramInvocation::Shell("sh agent.sh".into()), with)
    }

    /// Has it work on a prompt. Returns what came of it, the connection if it can be prompted again, and what was told
    /// meanwhile.
    pub fn prompt(&self, connection: AcpConnection) -> (TurnOutcome, Option<AcpConnection>, String) {
        let mut told = String::new();
        let attention = acp::TurnContext {
            roster: &self.roster,
            budget: &mut generous_deadline(),
            transcript: &mut |text| told.push_str(text),
        };
        let (outcome, connection) = connection.run_turn("Go.", attention);
        (outcome, connection, told)
    }

    /// Whether it can be prompted again.
    pub fn is_ready(&self, connection: &mut AcpConnection) -> bool {
        connection.is_ready(&RunControl::new(), &self.roster)
    }

    /// What it was asked, but for the greeting: the method, and with what.
    pub fn asked(&self) -> Vec<(String, Value)> {
        let text = std::fs::read_to_string(self.world.path("asked")).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.skip(1).map(|line| (line["method"].as_str().unwrap().to_owned(), line["params"].clone())).collect()
    }
}

/// Long enough for anything that does not wait for ever.
fn generous_deadline() -> TurnBudget {
    TurnBudget::new(Some(Duration::from_secs(60)), None, RunControl::new())
}
