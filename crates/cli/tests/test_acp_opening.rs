//! What agents that speak the Agent Client Protocol are opened with: servers of tools, a model, permissions

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_agents::TurnEnd;
use windlass_agents::acp::{self, McpServer, Opened, Permissions, Turned};
use windlass_process::{Control, Invocation, Launcher, Roster};

use crate::support::{WINDLASS, World};

/// Notes what it is asked, and answers with what is in `initialize.json`, `session_new.json` and so on, or with nothing.
const AGENT: &str = r#"
while read -r line; do
  echo "$line" >> asked
  file=$(echo "$line" | jq -r '.method | gsub("/"; "_")').json
  result='{}'; test -e $file && result=$(cat $file)
  echo "$line" | jq -c --argjson result "$result" '{jsonrpc: "2.0", id, result: $result}'
done
"#;

/// An agent that is driven from here.
struct Driven {
    world: World,
    roster: Roster,
    launcher: Launcher,
}

/// What an agent is opened with.
#[derive(Default)]
struct With<'a> {
    servers: Vec<McpServer>,
    model: Option<&'a str>,
    before: Option<&'a str>,
    permissions: &'a str,
}

impl Driven {
    /// Answers with these.
    fn new(answers: &[(&str, Value)]) -> Self {
        let world = World::empty();
        world.write("agent.sh", AGENT);
        for (method, answer) in answers {
            world.write(&format!("{}.json", method.replace('/', "_")), answer.to_string());
        }
        let roster = Roster::enlist(&world.path("owners"), 7).unwrap();
        let launcher =
            Launcher { program: WINDLASS.into(), arguments: vec!["__supervise".into()], environment: vec![] };
        Self { world, roster, launcher }
    }

    fn open_with(&self, invocation: Invocation, with: &With<'_>) -> Opened {
        let around = self.world.program("sh");
        let environment = around.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let environment = environment.collect();
        let spec = acp::spec(invocation, &self.world.directory, environment);
        let permissions: Permissions = match with.permissions {
            "" => Permissions::default(),
            text => serde_saphyr::from_str(text).unwrap(),
        };
        let start = acp::Start {
            launcher: &self.launcher,
            roster: &self.roster,
            spec: &spec,
            permissions: &permissions,
            servers: &with.servers,
            model: with.model,
            before: with.before,
        };
        let opened = acp::Connection::open(&start, &Control::new(), &mut far());
        opened.unwrap_or_else(|end| panic!("{end:?}"))
    }

    fn open(&self, with: &With<'_>) -> Opened {
        self.open_with(Invocation::Shell("sh agent.sh".into()), with)
    }

    /// What it was asked, but for the greeting: the method, and with what.
    fn asked(&self) -> Vec<(String, Value)> {
        let text = std::fs::read_to_string(self.world.path("asked")).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.skip(1).map(|line| (line["method"].as_str().unwrap().to_owned(), line["params"].clone())).collect()
    }
}

fn far() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(60))
}

fn greeting(capabilities: &Value) -> (&'static str, Value) {
    ("initialize", json!({"protocolVersion": 1, "agentCapabilities": capabilities}))
}

fn begun(more: Value) -> (&'static str, Value) {
    let mut answer = more;
    answer["sessionId"] = "one".into();
    ("session/new", answer)
}

#[test]
fn servers_of_tools_are_handed_over_however_the_conversation_is_opened() {
    let env = vec![("TOKEN".to_owned(), "a b".to_owned())];
    let args = vec!["mcp".to_owned(), "--task".to_owned()];
    let server = McpServer { name: "windlass".to_owned(), command: PathBuf::from("/bin/windlass"), args, env };
    let handed = json!([{"name": "windlass", "command": "/bin/windlass", "args": ["mcp", "--task"],
        "env": [{"name": "TOKEN", "value": "a b"}]}]);
    let cases = [
        (json!({}), None, "session/new"),
        (json!({"loadSession": true, "sessionCapabilities": {"resume": {}}}), Some("one"), "session/load"),
        (json!({"sessionCapabilities": {"resume": {}}}), Some("one"), "session/resume"),
    ];
    for (capabilities, before, method) in cases {
        let driven = Driven::new(&[greeting(&capabilities), begun(json!({}))]);
        let opened = driven.open(&With { servers: vec![server.clone()], before, ..With::default() });
        assert_eq!((opened.connection.conversation(), opened.anew), ("one", None));
        let [(asked, params)] = &driven.asked()[..] else { panic!("one question") };
        assert_eq!((asked.as_str(), &params["mcpServers"]), (method, &handed));
        assert_eq!(params["cwd"], driven.world.directory.to_str().unwrap());
        assert_eq!(params["sessionId"].as_str(), before);
    }
}

#[test]
fn a_model_is_chosen_where_the_agent_offers_a_choice() {
    let options = json!({"configOptions": [{"id": "m", "category": "model", "type": "select", "currentValue": "big",
        "options": [{"value": "big", "name": "Big"}, {"value": "small", "name": "Small"}]}]});
    let opened = |model, answer: &Value| {
        let driven = Driven::new(&[greeting(&json!({})), begun(answer.clone())]);
        let notices = driven.open(&With { model: Some(model), ..With::default() }).notices;
        (driven.asked().into_iter().nth(1), notices)
    };
    let set = ("session/set_config_option".to_owned(), json!({"sessionId": "one", "configId": "m", "value": "small"}));
    assert_eq!(opened("small", &options), (Some(set), vec![]));
    assert_eq!(opened("big", &options), (None, vec![]));
    let none = "the agent has no model `huge`: it offers `big`, `small`".to_owned();
    assert_eq!(opened("huge", &options), (None, vec![none]));
    let (asked, notices) = opened("huge", &json!({}));
    assert!(asked.is_none() && notices[0].contains("offers no choice of models"), "{notices:?}");
}

/// What comes of a turn of the scripted agent under these permissions.
fn played(permissions: &str, steps: &str) -> (String, String) {
    let driven = Driven::new(&[]);
    driven.world.write("play.yaml", format!("turns: [{{do: [{steps}]}}]"));
    let words = [WINDLASS, "agent", "play.yaml"].map(Into::into);
    let connection =
        driven.open_with(Invocation::Argv(words.into()), &With { permissions, ..With::default() }).connection;
    let mut told = String::new();
    let attention = acp::Attention {
        control: &Control::new(),
        roster: &driven.roster,
        until: &mut far(),
        silence: None,
        tell: &mut |text| told.push_str(text),
    };
    let Turned { end, connection, .. } = connection.prompt("Go.", attention);
    connection.expect("it is good for another prompt").close();
    let TurnEnd::Said(said) = end else { panic!("{end:?}") };
    (said, told)
}

#[test]
fn permissions_decide_what_is_allowed_and_what_is_done() {
    let (said, told) = played("allow", "ask: Mend it?, say: Mended.");
    assert!(said == "Mended.\n" && told.contains("[asks for permission, Mend it?: allowed (allow_once)]"), "{told}");
    let (said, told) = played("deny", "ask: Mend it?, say: Mended.");
    assert_eq!(said, "I may not do this: Mend it? (reject_once-option)\n");
    assert!(told.contains("[asks for permission, Mend it?: denied (reject_once)]"), "{told}");
    let run = "request: {method: terminal/create, params: {command: touch ran}}";
    let write = "request: {method: fs/write_text_file, params: {path: new, content: x}}";
    let read = "request: {method: fs/read_text_file, params: {path: play.yaml, limit: 0}}";
    let denied = |kind: &str| format!(" failed: not allowed: `permissions` deny {kind} here (-32603)\n");
    let (said, told) = played("{default: allow, execute: deny}", &format!("{run}, {write}"));
    assert_eq!(said, format!("terminal/create{}fs/write_text_file: {{}}\n", denied("execute")));
    assert!(told.contains("[runs touch ran: denied]"), "{told}");
    let (said, _) = played("read-only", &format!("{run}, {write}, {read}"));
    let expected = [
        format!("terminal/create{}", denied("execute")),
        format!("fs/write_text_file{}", denied("edit")),
        "fs/read_text_file: {\"content\":\"\"}\n".to_owned(),
    ];
    assert_eq!(said, expected.concat());
}
