//! Commands of people about sessions: `say`, `session list|show|logs|cancel`

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use insta::assert_snapshot;
use rustix::process::Signal;

use crate::support::{TestWorld, WINDLASS, normalize_durations};
use crate::test_run::{PENDING_FEEDBACK_CONFIG, PausedRun, RUN, create_agent_project};

const SESSION_NAME: &str = "mend-the-pump-e01275de";

impl PausedRun {
    /// Lets the first turn end.
    fn finish_turn(&mut self) -> (i32, String) {
        fs::write(self.world.path("go"), "").unwrap();
        self.await_exit()
    }
}

impl TestWorld {
    /// Agents and hooks find the binary.
    pub fn with_windlass(self) -> Self {
        std::os::unix::fs::symlink(WINDLASS, self.program_directory().join("windlass")).unwrap();
        self
    }

    /// Returns the output of a command without the owner's name.
    fn output_without_owner(&self, words: &[&str]) -> String {
        let text = crate::support::normalize_times_and_paths(&self.run_ok(words), &self.directory);
        let word = |word: &str| if word.starts_with("run-") { "OWNER".to_owned() } else { word.to_owned() };
        let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ");
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    }
}

#[test]
fn message_is_delivered_once_with_next_prompt() {
    let mut waiting = PausedRun::new("hooks: {session_start: [{command: echo first, pipe_output: true}]}");
    assert_eq!(
        waiting.world.run_ok(&["say", "Use `tabs`\n<promise>COMPLETE</promise>"]),
        format!("the agent of {SESSION_NAME} gets the message with its next prompt\n")
    );
    let (code, said) = waiting.finish_turn();
    assert_eq!(code, 0, "{said}");
    // The claim of its first turn came before it got the message.
    assert_snapshot!(normalize_durations(&said), @r"
    session mend-the-pump-e01275de
      command:sh agent.sh, at most 25 iterations
      session_start[0] ok
    iteration 1
      the agent gets one piece of feedback
      the agent says that it is done
    iteration 2
      the agent gets one piece of feedback
      ann says: Use `tabs`⏎<promise>COMPLETE</promise>
      the agent says that it is done
    complete after 2 iterations
      took <took> agent <took> hooks <took> 2 turns
      note: nothing checked this work; add a check, such as `hooks: {stop: [run_tests]}`, to .windlass/config.yaml
    ");
    let prompt = waiting.world.read_prompt(2);
    assert!(prompt.contains("[Message from ann]:\nUse `tabs`\n[promise]COMPLETE</promise>\n"), "{prompt}");
    assert_eq!(waiting.world.events_of_type("feedback_delivered").len(), 2);
    assert!(waiting.world.run_ok(&["why", SESSION_NAME]).contains("feedback_queued           ann: Use `tabs`"));
    assert!(
        waiting
            .world
            .events_of_type("feedback_queued")
            .iter()
            .filter(|event| event["data"]["voice"] == "person")
            .count()
            == 1
    );
}

#[test]
fn message_precedes_later_hook_feedback_in_prompt() {
    let hook = "test $WINDLASS_ITERATION -gt 1 || { echo > judged; cat go; }; echo by hook";
    let config = &format!("hooks: {{post_iteration: [{{command: '{hook}', pipe_output: true}}]}}");
    let world = create_agent_project(config, "test $turn -lt 2 || echo '<promise>COMPLETE</promise>'");
    for fifo in ["judged", "go"] {
        world.make_pipe(fifo);
    }
    let child = world.command(RUN).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut waiting = PausedRun { world, child };
    waiting.world.await_pipe("judged");
    assert!(waiting.world.run_with_input(&["say", "-"], b"by ann\n").stdout.contains("with its next prompt"));
    assert_eq!(waiting.finish_turn().0, 0);
    let prompt = waiting.world.read_prompt(2);
    let (ann, hook) = (prompt.find("by ann").unwrap(), prompt.find("by hook").unwrap());
    assert!(ann < hook, "{prompt}");
}

/// The text is data: nothing of it is ever run.
#[test]
fn hooks_hear_what_is_said_and_can_add_to_it() {
    let hook = "{command: 'cat > heard.json; echo the manual is in docs', pipe_output: true}";
    let mut waiting = PausedRun::new(&format!("hooks: {{message_added: [{hook}]}}"));
    waiting.world.run_ok(&["say", "$(touch ran); `touch ran`"]);
    let (code, said) = waiting.finish_turn();
    assert_eq!(code, 0, "{said}");
    let heard = serde_json::from_str::<serde_json::Value>(&waiting.world.read_file("heard.json")).unwrap();
    assert_eq!(heard["event"]["type"], "message_added");
    assert_eq!(
        heard["event"]["data"],
        serde_json::json!({"source": "ann", "text": "$(touch ran); `touch ran`", "voice": "person"})
    );
    assert!(!waiting.world.path("ran").exists());
    let prompt = waiting.world.read_prompt(2);
    assert!(prompt.contains("[Message from ann]:") && prompt.contains("the manual is in docs"), "{prompt}");
}

#[test]
fn commands_inside_a_turn_never_count_as_a_persons() {
    let agent = "test $turn -gt 1 || { windlass say one; env -i PATH=\"$PATH\" WINDLASS_STATE_DIR=\"$WINDLASS_STATE_DIR\" USER=ann windlass say two; \
                 windlass session cancel \"$WINDLASS_SESSION\" > refused 2>&1; }; echo '<promise>COMPLETE</promise>'";
    let world = create_agent_project("", agent).with_windlass();
    let ran = world.run(RUN);
    // The agent has sent messages to itself only: its claim counts, and the messages are delivered at the end.
    assert!(ran.code == 0 && ran.stdout.contains("complete after one iteration"), "{ran}");
    let told = world.event_payloads("feedback_queued");
    assert_eq!(told.len(), 2, "{told:?}");
    for said in told {
        assert_eq!(
            (said["voice"].as_str(), said["source"].as_str()),
            (Some("agent"), Some("the agent of session mend-the-pump-e01275de"))
        );
    }
    let prompt = world.read_prompt(2);
    assert!(
        prompt.contains("[Message, not from a person] the agent of session mend-the-pump-e01275de:\n```text\none\n"),
        "{prompt}"
    );
    assert!(
        world.read_file("refused").starts_with("error: only a person can cancel a session\n"),
        "{}",
        world.read_file("refused")
    );
}

/// Neither its own session nor another one, under any other run id.
#[test]
fn session_cancellation_by_agent_is_refused() {
    let helper = "windlass run helper --session two --agent 'command:sh helper.sh' > helped 2>&1
        windlass run 'Mend the pump' --agent 'command:sh agent.sh' > again 2>&1";
    let world = create_agent_project("", &format!("{helper}; echo '<promise>COMPLETE</promise>'")).with_windlass();
    let cancel = format!(
        "for name in two {SESSION_NAME}; do windlass session cancel $name; env -i PATH=\"$PATH\" WINDLASS_STATE_DIR=\"$WINDLASS_STATE_DIR\" windlass session cancel $name; done"
    );
    world.write("helper.sh", format!("cat > /dev/null; {cancel} > refused 2>&1; echo '<promise>COMPLETE</promise>'"));
    let ran = world.run(RUN);
    assert!(ran.code == 0 && ran.stdout.contains("complete after one iteration"), "{ran}");
    let refused = "error: only a person can cancel a session\n\
                   hint: end the turn with `<promise>BLOCKED</promise>` and say what is needed\n";
    assert_eq!(world.read_file("refused"), refused.repeat(4));
    let again = world.read_file("again");
    assert!(
        again.contains("hint: end the turn: the session continues by itself") && !again.contains("cancel"),
        "{again}"
    );
}

#[test]
fn say_without_a_unique_running_session_is_refused() {
    let world = create_agent_project("", "echo '<promise>COMPLETE</promise>'");
    assert_eq!(world.run(RUN).code, 0);
    assert_snapshot!(world.expect_failure(&["say", "hello"]), @"
    error: no session is running
    hint: `windlass session list` shows the sessions; `windlass run GOAL` starts one
    [1 not_found]
    ");
    assert_snapshot!(world.expect_failure(&["say", "hello", "--session", SESSION_NAME]), @"
    error: session `mend-the-pump-e01275de` has ended
    hint: `windlass status` shows the sessions and who runs them
    [1 refused]
    ");
    assert_snapshot!(world.expect_failure(&["say", "hello", "--session", "bend"]), @"
    error: there is no session `bend`
    hint: `windlass session list` names them all
    [1 not_found]
    ");
    let mut waiting = PausedRun::new("");
    let mut other = waiting.world.command(&["run", "Other", "--session", "other", "--agent", "command:sh wait.sh"]);
    waiting.world.write("wait.sh", "echo > started; cat go2; echo '<promise>COMPLETE</promise>'");
    waiting.world.make_pipe("go2");
    let mut child = other.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    waiting.world.await_pipe("started");
    assert_snapshot!(waiting.world.expect_failure(&["say", "hello"]), @"
    error: cannot choose between 2 sessions
    caused by: other, mend-the-pump-e01275de
    hint: --session names one
    [1 refused]
    ");
    assert_snapshot!(waiting.world.expect_failure(&["say", " ", "--session", "other"]), @"
    error: the message is empty
    [64 usage]
    ");
    fs::write(waiting.world.path("go2"), "").unwrap();
    child.wait().unwrap();
    assert_eq!(waiting.finish_turn().0, 0);
}

#[test]
fn message_to_killed_session_is_delivered_on_resume() {
    let mut waiting = PausedRun::new("");
    waiting.send_signal(Signal::KILL);
    waiting.await_exit();
    assert!(waiting.world.run_ok(&["say", "mind the step"]).contains("when the session is run again"));
    assert_eq!(waiting.world.run(RUN).code, 0);
    assert!(waiting.world.read_prompt(2).contains("[Message from ann]:\nmind the step\n"));
}

#[test]
fn runner_ends_cancelled_session_during_turn() {
    let mut waiting = PausedRun::new(PENDING_FEEDBACK_CONFIG);
    let said = waiting.world.run_ok(&["session", "cancel", SESSION_NAME, "--reason", "wrong branch"]);
    assert_eq!(said, format!("{SESSION_NAME} is being ended\n"));
    let (code, said) = waiting.await_exit();
    assert_eq!(code, 3, "{said}");
    assert_snapshot!(normalize_durations(&said), @r"
    session mend-the-pump-e01275de
      command:sh agent.sh, at most 25 iterations
      session_start[0] ok
    iteration 1
      the agent gets one piece of feedback
      turn interrupted
    cancelled after one iteration: wrong branch
      session_end[0] ok
      took <took> agent <took> hooks <took> one turn
      left: one piece of feedback not delivered to the agent
      next: windlass run --task T1 --agent 'command:sh agent.sh'
    ");
    assert_eq!(waiting.world.read_file("ended"), "end\n");
    assert_eq!(waiting.world.events_of_type("session_stopping")[0]["metadata"]["triggeredBy"], "ann");
    assert_snapshot!(waiting.world.expect_failure(&["session", "cancel", SESSION_NAME]), @"
    error: session `mend-the-pump-e01275de` has ended
    hint: `windlass status` shows the sessions and who runs them
    [1 refused]
    ");
}

/// A cancellation works everywhere: in a hook before the first turn, in the gate, in the last hook of an iteration.
#[test]
fn cancelled_session_terminates_its_running_hook() {
    for point in ["session_start", "pre_iteration", "stop"] {
        let config = format!(
            "hooks: {{{point}: [{{command: 'echo > started; cat go'}}], session_end: [{{command: touch ended}}]}}"
        );
        let world = create_agent_project(&config, "echo hello");
        for fifo in ["started", "go"] {
            world.make_pipe(fifo);
        }
        let child = world.command(RUN).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut waiting = PausedRun { world, child };
        waiting.world.await_pipe("started");
        waiting.world.run_ok(&["session", "cancel", SESSION_NAME]);
        let (code, said) = waiting.await_exit();
        assert_eq!(code, 3, "{point}: {said}");
        assert!(said.contains(&format!("{point}[0] cancelled\n")), "{point}: {said}");
        assert!(waiting.world.has_file("ended"), "{point}");
    }
}

#[test]
fn cancelled_session_of_dead_process_is_ended_by_next_command() {
    for settled_by in ["doctor", "run"] {
        let mut waiting = PausedRun::new(PENDING_FEEDBACK_CONFIG);
        waiting.send_signal(Signal::KILL);
        waiting.await_exit();
        let world = &waiting.world;
        assert!(
            world
                .run_ok(&["session", "cancel", SESSION_NAME])
                .contains("no process runs it: `windlass doctor --settle`")
        );
        assert_eq!(world.json(&["session", "show", SESSION_NAME])["next"][0], "windlass doctor --settle");
        if settled_by == "doctor" {
            assert_eq!(world.run(&["doctor"]).code, 1);
            assert_eq!(world.run_ok(&["doctor", "--settle"]), "1 cancelled session was ended\n");
            assert_eq!(world.run_ok(&["doctor", "--settle"]), "nothing was left behind\n");
        } else {
            let other = world.run(&["run", "Other", "--agent", "command:sh agent.sh"]);
            assert!(other.stderr.contains("ended cancelled sessions: 1"), "{other}");
            assert_eq!(world.read_file("ended"), "end\nend\n");
        }
        let shown = world.json(&["session", "show", SESSION_NAME]);
        assert_eq!((shown["state"].as_str(), shown["ending"].as_str()), (Some("ended"), Some("cancelled")));
        // The message waits with the task.
        assert_eq!(world.json(&["task", "show", "T1"])["unheard"].as_array().unwrap().len(), 1, "{shown}");
        assert!(world.read_file("ended").starts_with("end\n"));
        assert_eq!(world.run(&["doctor"]).code, 0);
    }
}

#[test]
fn sessions_are_listed_and_shown_as_they_are() {
    let mut waiting = PausedRun::new("");
    let world = &waiting.world;
    world.run_ok(&["say", "mind the step"]);
    assert_snapshot!(world.output_without_owner(&["session", "list"]), @"
    mend-the-pump-e01275de  running  iteration  1  <time>
      T1 Mend the pump  (command:sh agent.sh)
    ");
    assert_snapshot!(world.output_without_owner(&["session", "show", SESSION_NAME]), @r#"
    session mend-the-pump-e01275de  running
      goal          Mend the pump
      task          T1
      agent         command:sh agent.sh
      started       <time>
      owner         OWNER alive
      iterations    1 of 25
      sent back     0 times in iteration 1; each hook at most 5, or its `retry.max`
      completion    the agent has to say that it is done
      waits for     the agent (turn in progress)

    not yet delivered to the agent
      ann: mind the step

    next
      windlass session logs mend-the-pump-e01275de --follow  watch it
      windlass say "…" --session mend-the-pump-e01275de      say something to the agent
      windlass session cancel mend-the-pump-e01275de         end it
    "#);
    waiting.send_signal(Signal::KILL);
    waiting.await_exit();
    let world = &waiting.world;
    assert_snapshot!(world.output_without_owner(&["session", "show", SESSION_NAME]), @"
    session mend-the-pump-e01275de  unfinished
      goal          Mend the pump
      task          T1
      agent         command:sh agent.sh
      started       <time>
      owner         OWNER dead
      iterations    1 of 25
      sent back     0 times in iteration 1; each hook at most 5, or its `retry.max`
      completion    the agent has to say that it is done
      waits for     the agent (turn interrupted)

    not yet delivered to the agent
      ann: mind the step

    next
      windlass run --session mend-the-pump-e01275de --agent 'command:sh agent.sh'  resume it
      windlass session cancel mend-the-pump-e01275de                               end it
    ");
    assert_eq!(
        world
            .run(&["run", "It's another", "--agent", "command:sh agent.sh", "--max-iterations", "1", "--session", "b"])
            .code,
        0
    );
    assert_eq!(
        world.run(&["run", "It's another", "--agent", "command:true", "--max-iterations", "1", "--session", "c"]).code,
        3
    );
    assert_snapshot!(world.output_without_owner(&["session", "list", "--limit", "1"]), @"
    c                       ended       iteration  1  <time>
      T3 It's another  (command:true)
    mend-the-pump-e01275de  unfinished  iteration  1  <time>
      T1 Mend the pump  (command:sh agent.sh)
    there are more; --all shows them
    ");
    assert_snapshot!(world.output_without_owner(&["session", "show", "c"]), @"
    session c  ended: one iteration is the limit
      goal          It's another
      task          T3
      agent         command:true
      started       <time>
      ended         <time>
      iterations    1 of 1
      sent back     0 times in iteration 1; each hook at most 5, or its `retry.max`
      completion    the agent has to say that it is done

    next
      windlass why c                               see who decided what
      windlass run --task T3 --agent command:true  try again
    ");
    let listed = world.json_lines(&["session", "list", "--all"]);
    let states: Vec<_> =
        listed.iter().map(|listed| (listed["session"].as_str().unwrap(), listed["state"].as_str().unwrap())).collect();
    assert_eq!(states, [("c", "ended"), ("b", "ended"), (SESSION_NAME, "unfinished")]);
}

/// A project in which T1 is blocked by a gate that never opens.
fn create_escalated_task() -> TestWorld {
    let config = "
limits: {max_hook_retries: 0}
hooks: {stop: [{name: tests, command: 'test -e fixed || { echo red >&2; exit 2; }'}]}
";
    let world = create_agent_project(config, "echo '<promise>COMPLETE</promise>'").with_windlass();
    assert_eq!(world.run(RUN).code, 4);
    world
}

#[test]
fn answered_escalation_is_delivered_to_next_session() {
    let world = create_escalated_task();
    assert_snapshot!(world.output_without_owner(&["status"]), @r#"
    project  $WORK
    tasks    1 blocked

    needs a person
    T1  blocked  P2  Mend the pump
      T1: `tests` blocks, and may not send the agent back
      windlass answer T1 continue
    "#);
    assert_eq!(world.json(&["session", "show", SESSION_NAME])["next"][1], "windlass answer T1 continue");
    assert_snapshot!(world.run_ok(&["answer", SESSION_NAME, "continue", "Look at `fixed`"]), @"
    T1  ready  P2  Mend the pump
    `windlass run --task T1 --agent 'command:sh agent.sh'` resumes it
    ");
    assert_eq!(world.json(&["task", "show", "T1"])["answer"]["text"], "Look at `fixed`");
    world.write("fixed", "");
    let turns = world.read_file("turns").trim().parse::<u32>().unwrap();
    let ran = world.run(&["run", "--task", "T1", "--agent", "command:sh agent.sh"]);
    assert_eq!(ran.code, 0, "{ran}");
    let prompt = world.read_prompt(turns + 1);
    assert!(prompt.contains("[Message from ann]:\nLook at `fixed`\n"), "{prompt}");
    let listed = world.run_ok(&["session", "list", "--limit", "1"]);
    assert!(listed.contains("\n  T1 Mend the pump  ("), "{listed}");
    assert!(world.json(&["task", "show", "T1"]).get("answer").is_none());
    assert_snapshot!(world.expect_failure(&["answer", "T1", "continue"]), @"
    error: T1 does not wait for the answer `continue`: it is completed
    hint: `windlass why T1` shows its state
    [1 refused]
    ");
}

/// An absent agent gets nothing; the one after it does.
#[test]
fn undelivered_answer_is_delivered_to_next_agent_once() {
    let world = create_escalated_task();
    world.run_ok(&["answer", "T1", "continue", "Look at `fixed`"]);
    world.write("fixed", "");
    let failed = world.run(&["run", "--task", "T1", "--agent", "command:./absent"]);
    assert_ne!(failed.code, 0, "{failed}");
    let turns = world.read_file("turns").trim().parse::<u32>().unwrap();
    let ran = world.run(&["run", "--task", "T1", "--agent", "command:sh agent.sh"]);
    assert_eq!(ran.code, 0, "{ran}");
    let prompt = world.read_prompt(turns + 1);
    assert_eq!(prompt.matches("Look at `fixed`\n").count(), 1, "{prompt}");
}

#[test]
fn same_run_command_resumes_task_with_answer() {
    let world = create_escalated_task();
    world.run_ok(&["answer", "T1", "ignore-hook", "good enough"]);
    let turns = world.read_file("turns").trim().parse::<u32>().unwrap();
    let ran = world.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    let prompt = world.read_prompt(turns + 1);
    assert!(prompt.contains("[Message from ann]:\ngood enough\n"), "{prompt}");
    assert_eq!(world.json(&["task", "show", "T1"])["state"], "completed");
    assert_eq!(world.events_of_type("task_created").len(), 1);
}

#[test]
fn person_can_approve_reject_or_ignore_blocking_gate() {
    let world = create_escalated_task();
    world.run_ok(&["answer", "T1", "approve", "looked at by hand"]);
    let completed = &world.events_of_type("task_completed")[0];
    assert_eq!(
        (completed["metadata"]["forced"].as_bool(), completed["data"]["result"].as_str()),
        (Some(true), Some("looked at by hand"))
    );

    let world = create_escalated_task();
    world.run_ok(&["answer", "T1", "reject", "never"]);
    assert_eq!(world.events_of_type("task_failed")[0]["data"]["reason"], "never");
    world.run_ok(&["answer", "T1", "retry"]);
    assert_eq!(world.json(&["task", "show", "T1"])["state"], "ready");

    let world = create_escalated_task();
    world.run_ok(&["answer", "T1", "ignore-hook"]);
    let again: &[&str] = &["run", "--task", "T1", "--agent", "command:sh agent.sh"];
    assert_eq!(world.run(again).code, 0, "it blocks, and does not count");
    assert_eq!(world.last_hook_outcome("tests").0, "block");
}

#[test]
fn agents_and_hooks_cannot_answer_for_a_person() {
    let world = TestWorld::with_tasks(&["One"]).with_windlass();
    world.run_ok(&["task", "block", "T1", "--reason", "which?"]);
    assert_snapshot!(world.expect_failure(&["answer", "T1", "ignore-hook"]), @"
    error: no hook has blocked T1
    hint: `windlass why T1` shows what did; `continue` resumes it
    [1 refused]
    ");
    assert_snapshot!(world.expect_failure(&["answer", "T1", "perhaps"]), @"
    error: invalid value 'perhaps' for '<ANSWER>' [possible values: continue, retry, approve, reject, ignore-hook]
    hint: `windlass answer --help` shows how it is used
    [64 usage]
    ");
    assert_snapshot!(world.expect_failure(&["answer", "no such thing", "retry"]), @"
    error: `no such thing` is neither a task nor a session
    hint: `windlass session list` names them all
    [1 not_found]
    ");
    world.write("agent.sh", "windlass answer T1 continue > said 2>&1; env -i PATH=\"$PATH\" WINDLASS_STATE_DIR=\"$WINDLASS_STATE_DIR\" windlass answer T1 approve >> said 2>&1; echo '<promise>COMPLETE</promise>'");
    assert_eq!(world.run(RUN).code, 0);
    assert_snapshot!(world.read_file("said"), @"
    error: only a person can answer
    hint: end the turn with `<promise>BLOCKED</promise>` and say what is needed
    error: only a person can answer
    hint: end the turn with `<promise>BLOCKED</promise>` and say what is needed
    ");
    assert_eq!(world.json(&["task", "show", "T1"])["state"], "blocked");
}

#[test]
fn logs_tell_what_was_said_and_follow_until_the_end() {
    let config = "hooks: {stop: [{command: 'test -e fixed || { echo red >&2; exit 2; }'}]}";
    let world = create_agent_project(
        config,
        "printf 'line one\\033[2J\\nline two\\n'; test $turn -lt 2 || touch fixed; test $turn -gt 1 || { echo > started; cat go; }; echo '<promise>COMPLETE</promise>'",
    );
    for fifo in ["started", "go"] {
        world.make_pipe(fifo);
    }
    let child = world.command(RUN).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut waiting = PausedRun { world, child };
    waiting.world.await_pipe("started");
    let follow = &["session", "logs", SESSION_NAME, "--follow", "--json"];
    let mut follower = waiting.world.command(follow).stdout(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(follower.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("turn_started") {
        line.clear();
        told.read_line(&mut line).unwrap();
    }
    // The command follows: this output came after its begin.
    assert_eq!(waiting.finish_turn().0, 0);
    let mut rest = String::new();
    told.read_to_string(&mut rest).unwrap();
    assert!(rest.trim_end().lines().last().unwrap().contains("session_ended"), "{rest}");
    assert_eq!(follower.wait().unwrap().code(), Some(0));
    assert_snapshot!(waiting.world.output_without_owner(&["session", "logs", SESSION_NAME]), @r"
    <time>  session: started with command:sh agent.sh
    <time>  iteration 1
    <time>  agent: turn started, to work
    <time>  agent: said
      | line one
      | line two
      | <promise>COMPLETE</promise>
    <time>  agent: claims COMPLETE
    <time>  stop[0]: runs
    <time>  stop[0]: blocks, red
    <time>  stop[0]: tells the agent
      | red
    <time>  gate: sent back (1 of 5)
    <time>  agent: turn started, sent back, with one piece of feedback
    <time>  agent: said
      | line one
      | line two
      | <promise>COMPLETE</promise>
    <time>  agent: claims COMPLETE
    <time>  stop[0]: runs
    <time>  stop[0]: ok
    <time>  gate: complete
    <time>  session: ended, complete
    ");
}

const ASKING_CONFIG: &str = "
limits: {max_hook_retries: 0}
on_retry_limit: ask
hooks: {stop: [{name: tests, command: 'echo red >&2; exit 2'}]}
";

/// A follower sees a question and its answer, although no process runs the session.
#[test]
fn followed_log_shows_question_and_its_answer() {
    let world = create_agent_project(ASKING_CONFIG, "echo '<promise>COMPLETE</promise>'");
    assert_eq!(world.run(RUN).code, 4);
    let shown = world.output_without_owner(&["status"]);
    let (shown, _) = shown.split_once("\n\nat work").unwrap();
    assert_snapshot!(shown, @r#"
    project  $WORK
    tasks    1 active

    sessions
    mend-the-pump-e01275de  iteration 1, asks a person
      Mend the pump
      waits for a person: stop hooks block, and may not send the agent back again
      windlass answer mend-the-pump-e01275de continue
    "#);
    assert!(!world.run_ok(&["doctor"]).contains("interrupted"), "a session that asks is not interrupted");
    let mut follow = world.command(&["session", "logs", SESSION_NAME, "--follow"]);
    let mut follower = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(follower.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(told.any(|line| line.ends_with("gate: a person is asked")));
    world.run_ok(&["answer", SESSION_NAME, "ignore-hook"]);
    let answered = "ann: answers ignore-hook: the block counts as passed, this time";
    assert!(told.any(|line| line.ends_with(answered)));
    assert_eq!(world.run(RUN).code, 0);
    assert!(told.last().unwrap().contains("and a person let it pass"));
    let output = follower.wait_with_output().unwrap();
    let note = format!(
        "note: it asks a person: `windlass answer {SESSION_NAME} continue` continues it; or ignore-hook, reject\n"
    );
    assert!(String::from_utf8(output.stderr).unwrap().starts_with(&note));
}

#[test]
fn status_shows_rate_limit_wait_and_dead_runner() {
    let world = create_agent_project("", "echo 'You have hit your usage limit. Try again in 3 hours.' >&2; exit 1");
    let mut child = world.command(RUN).stdout(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(told.any(|line| line.contains("rate limited: ")));
    let shown = world.output_without_owner(&["status"]);
    assert!(shown.contains("iteration 1, running\n"), "{shown}");
    assert!(shown.contains("\n  waits for the agent's rate limit to end, at <time>\n"), "{shown}");
    let log = world.output_without_owner(&["session", "logs", SESSION_NAME]);
    assert!(
        log.ends_with("agent: rate limited, waits until <time>: You have hit your usage limit. Try again in 3 hours."),
        "{log}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let shown = world.output_without_owner(&["status"]);
    assert!(shown.contains("iteration 1, interrupted: its process has died; the same command resumes it\n"), "{shown}");
    assert!(world.run_ok(&["doctor"]).contains(&format!("interrupted: {SESSION_NAME}")));
    world.run_ok(&["task", "release", "T1", "--force"]);
    assert!(!world.run_ok(&["doctor"]).contains("interrupted"), "its task has another holder");
}

/// Text that was too long for the log is in a record, and is read only from there.
#[test]
fn logs_have_all_of_a_long_answer() {
    let world =
        create_agent_project("", "head -c 3000000 /dev/zero | tr '\\0' 'y'; echo; echo '<promise>COMPLETE</promise>'");
    assert_eq!(world.run(RUN).code, 0);
    let text = world.run_ok(&["session", "logs", SESSION_NAME]);
    assert!(text.len() > 2_900_000, "{}", text.len());
    let record = world.events_of_type("turn_finished")[0]["data"]["record"].as_str().unwrap().to_owned();
    fs::remove_file(world.path(".windlass/runs").join(&record)).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", world.path(".windlass/runs").join(&record)).unwrap();
    let text = world.run_ok(&["session", "logs", SESSION_NAME]);
    assert!(text.len() < 200_000 && text.contains("yyy"), "{}", text.len());
}

#[test]
fn output_of_passed_check_is_recorded_without_secrets() {
    let config = "secrets: [TOKEN]\nhooks: {stop: [{name: tests, command: 'echo 3 passed, $TOKEN; echo slow >&2'}]}";
    let world = create_agent_project(config, "echo '<promise>COMPLETE</promise>'");
    assert_eq!(world.run_with_variable(("TOKEN", "squeamish-ossifrage"), RUN).code, 0);
    let record = world.events_of_type("hook_finished")[0]["data"]["record"].as_str().unwrap().to_owned();
    let path = world.path(".windlass/runs").join(record);
    assert_eq!(fs::read_to_string(&path).unwrap(), "3 passed, [secret TOKEN]\nslow");
    let logs = world.run_ok(&["session", "logs", SESSION_NAME]);
    assert!(logs.contains(&format!("ok, output in {}", path.display())) && !logs.contains("3 passed"), "{logs}");
    let find_run = || {
        let lines = world.json_lines(&["session", "logs", SESSION_NAME]);
        lines.into_iter().find(|line| line["type"] == "hook_finished").unwrap()
    };
    assert_eq!(find_run()["text"], "3 passed, [secret TOKEN]\nslow");
    // A link could lead out of the directory.
    fs::remove_file(&path).unwrap();
    for is_linked in [false, true] {
        if is_linked {
            std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
        }
        let logs = world.run_ok(&["session", "logs", SESSION_NAME]);
        assert!(logs.contains("tests: ok\n") && !logs.contains("output in"), "{logs}");
        assert_eq!(find_run()["text"], serde_json::Value::Null);
    }
    // A check that prints nothing leaves no file.
    let silent = create_agent_project("hooks: {stop: [{command: 'true'}]}", "echo '<promise>COMPLETE</promise>'");
    assert_eq!(silent.run(RUN).code, 0);
    assert!(silent.events_of_type("hook_finished")[0]["data"].get("record").is_none());
}

/// A store can come with a repository: untrusted hooks do not run, even if they only end a session.
#[test]
fn cancelled_session_of_untrusted_project_is_not_settled() {
    let mut waiting = PausedRun::new(PENDING_FEEDBACK_CONFIG);
    waiting.send_signal(Signal::KILL);
    waiting.await_exit();
    let world = &waiting.world;
    world.run_ok(&["session", "cancel", SESSION_NAME]);
    world.run_ok(&["trust", "--revoke"]);
    let left = world.run(&["doctor", "--settle"]);
    assert!(left.code == 64 && !world.has_file("ended"), "{left}");
    assert_eq!(world.json(&["session", "show", SESSION_NAME])["ending"], serde_json::Value::Null, "{left}");
    world.run_ok(&["trust", "--yes"]);
    assert_eq!(world.run_ok(&["doctor", "--settle"]), "1 cancelled session was ended\n");
    assert_eq!(world.read_file("ended"), "end\n");
}
