// Tasks, sessions, reasons, hooks, cost and the log, each driven against a real run.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import { DONE_AGENT, Project, RED_CONFIG, logIn, startBrowser } from "./support.mjs";

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

test("tasks_are_added_edited_and_ordered", async (context) => {
  const project = new Project(context);
  const served = await project.serve();
  const { page, check } = await logIn(browser, served, "/tasks");
  await page.getByText("There is no open task.").waitFor();
  for (const goal of ["Mend the pump", "Paint the pump"]) {
    await page.goto(`${served.url}/tasks`);
    await page.getByRole("button", { name: "Add a task" }).click();
    await page.getByRole("textbox", { name: "Goal" }).fill(goal);
    await page.getByRole("button", { name: "Add the task" }).click();
    await page.getByRole("heading", { name: goal, level: 1 }).waitFor();
  }
  project.run("task", "add", "Order the paint");
  const dependencies = page.getByLabel("Wait for other tasks");
  await dependencies.fill("T1, T9, T3");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("button", { name: "Remove the dependency on T1" }).waitFor();
  // The tasks that were not added stay in the field.
  await page.getByRole("alert").waitFor();
  assert.equal(await dependencies.inputValue(), "T9, T3");
  await dependencies.fill("T3");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("button", { name: "Remove the dependency on T3" }).waitFor();
  assert.equal(project.json("task", "show", "T2")[0].openDependencies, 2);
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("Priority").selectOption("0");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("P0").first().waitFor();
  assert.equal(project.json("task", "show", "T2")[0].priority, 0);
  await page.goto(`${served.url}/tasks?view=graph`);
  await page.getByText("Paint the pump").first().waitFor();
  await page.getByText("Mend the pump").first().waitFor();
  await page.getByRole("tab", { name: "Board" }).or(page.getByRole("button", { name: "Board" })).click();
  await page.getByText("Paint the pump").first().waitFor();
  await page.goto(`${served.url}/tasks`);
  await page.getByLabel("Filter the tasks by goal").fill("paint");
  await page.getByText("Mend the pump").waitFor({ state: "detached" });
  check();
});

test("notices_of_a_command_are_shown_until_closed", async (context) => {
  const project = new Project(context);
  project.write(".windlass/config.yaml", "task_types: {docs: {}}\n");
  const { page, check } = await logIn(browser, await project.serve(), "/tasks");
  await page.getByRole("button", { name: "Add a task" }).click();
  await page.getByRole("textbox", { name: "Goal" }).fill("Mend the pump");
  await page.getByRole("button", { name: "Add the task" }).click();
  const notice = page.getByRole("status").getByText(/the configuration is not trusted, so the defaults apply/);
  await notice.waitFor();
  await page.getByRole("button", { name: "Close", exact: true }).click();
  await notice.waitFor({ state: "detached" });
  check();
});

test("task_is_blocked_and_reopened_with_a_reason", async (context) => {
  const project = new Project(context);
  project.run("task", "add", "Mend the pump");
  const { page, check } = await logIn(browser, await project.serve(), "/tasks/T1");
  await page.getByRole("button", { name: "Block" }).click();
  await page.getByLabel("Reason").fill("Which valve?");
  await page.getByRole("dialog").getByRole("button", { name: /Block/ }).click();
  await page.getByText("Which valve?").first().waitFor();
  assert.equal(project.json("task", "show", "T1")[0].state, "blocked");
  check();
});

test("session_shows_output_while_the_agent_works", async (context) => {
  const agent = "cat >> prompts; echo 'I look at the valve.'; cat go; echo 'Mended. <promise>COMPLETE</promise>'\n";
  const config = RED_CONFIG.replace("max_hook_retries: 0", "max_hook_retries: 5");
  const project = new Project(context, { ".windlass/config.yaml": config, "agent.sh": agent });
  execFileSync("mkfifo", [project.path("go")]);
  const run = project.start("run", "Mend the pump", "--session", "pump");
  const served = await project.serve();
  const { page, check } = await logIn(browser, served, "/sessions/pump");
  await page.getByRole("log").getByText("I look at the valve.").waitFor();
  await page.getByLabel("The agent reads it with its next prompt.").fill("Use the new washer.");
  await page.getByRole("button", { name: "Say" }).click();
  await page.getByText("Use the new washer.").first().waitFor();
  project.write("go", "");
  // The gate sends the agent back, with what failed and what the person said.
  await page.getByText("FAIL test_valve: the valve leaks").first().waitFor();
  await page.getByText(/sent back \(1 of 5\)/).first().waitFor();
  assert.match(project.read("prompts"), /Use the new washer\./);
  project.write("fixed", "");
  const ended = new Promise((resolve) => run.on("exit", resolve));
  project.write("go", "");
  assert.equal(await ended, 0);
  await page.getByText(/complete/).first().waitFor();
  // The delivery has each piece with its source.
  await page.getByText("ann: Use the new washer.").first().waitFor();
  await page.getByRole("link", { name: "Why" }).first().click();
  await page.getByRole("heading", { name: /Why pump/ }).waitFor();
  await page.getByText("tests").first().waitFor();
  check();
});

test("session_is_cancelled_with_a_reason", async (context) => {
  const project = new Project(context, { "agent.sh": "cat go\n" });
  execFileSync("mkfifo", [project.path("go")]);
  const run = project.start("run", "Mend the pump", "--session", "pump", "--agent", "command:sh agent.sh");
  const ended = new Promise((resolve) => run.on("exit", resolve));
  const { page, check } = await logIn(browser, await project.serve());
  await page.getByRole("link", { name: /Mend the pump|pump/ }).first().click();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByLabel("Reason (optional)").fill("It is the wrong pump.");
  await page.getByRole("button", { name: "Cancel the session" }).click();
  assert.notEqual(await ended, 0);
  await page.getByText(/cancelled/).first().waitFor();
  await page.getByText("is being ended").waitFor({ state: "detached" });
  assert.equal(project.json("session", "show", "pump")[0].reason, "It is the wrong pump.");
  check();
});

test("hook_is_tested_and_switched_off_but_not_trusted", async (context) => {
  const project = new Project(context, { ".windlass/config.yaml": RED_CONFIG, "agent.sh": DONE_AGENT });
  await project.runToEnd("run", "Mend the pump");
  const { page, check } = await logIn(browser, await project.serve(), "/hooks");
  const hook = page.getByRole("article", { name: "tests" });
  await hook.getByRole("button", { name: "Test tests" }).click();
  await hook.getByRole("button", { name: /^(Run|Test)( the)?( hook| test| it)?$/ }).click();
  await hook.getByText("FAIL test_valve: the valve leaks").first().waitFor();
  await hook.getByText("exit code 2").waitFor();
  await hook.getByText("Blocks", { exact: true }).waitFor();
  // The dialog says what a person has to do in a terminal before it changes anything.
  await hook.getByRole("button", { name: "Disable tests" }).click();
  await page.getByRole("dialog").getByText("windlass trust").waitFor();
  assert.equal(project.read(".windlass/config.yaml"), RED_CONFIG);
  await page.getByRole("dialog").getByRole("button", { name: "Disable", exact: true }).click();
  await page.getByText(/windlass trust/).first().waitFor();
  assert.match(project.read(".windlass/config.yaml"), /enabled: false/);
  await hook.getByRole("button", { name: "Enable tests" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Enable", exact: true }).click();
  await hook.getByText("A person has trusted it as it is now.").waitFor();
  assert.equal(project.read(".windlass/config.yaml"), RED_CONFIG);
  check();
});

test("plots_have_a_table_behind_them", async (context) => {
  const project = new Project(context, { ".windlass/config.yaml": RED_CONFIG, "agent.sh": DONE_AGENT });
  await project.runToEnd("run", "Mend the pump");
  const { page, check } = await logIn(browser, await project.serve(), "/cost");
  await page.getByRole("heading", { name: "Durations of hooks" }).waitFor();
  for (const button of await page.getByRole("button", { name: "Table" }).all()) await button.click();
  const tables = await page.getByRole("table").count();
  assert.ok(tables >= 2, `${tables} tables`);
  await page.getByRole("cell", { name: /tests/ }).or(page.getByRole("rowheader", { name: /tests/ })).first().waitFor();
  await page.getByText("No budget is set.").waitFor();
  check();
});

test("budget_shows_what_an_open_session_has_left", async (context) => {
  const config = "limits: {max_hook_retries: 0, cost: 2.5}\non_retry_limit: ask\nhooks: {stop: [{name: tests, command: exit 2}]}\n";
  // An agent that reports its cost, but no tokens.
  const turn = `turns:
  - do:
      - update: {sessionUpdate: usage_update, used: 90, size: 200, cost: {amount: 0.6, currency: USD}}
      - promise: COMPLETE
`;
  const project = new Project(context, { ".windlass/config.yaml": config, "paid.yaml": turn });
  await project.runToEnd("run", "Mend the pump", "--session", "pump", "--agent", "scripted:paid.yaml");
  const { page, check } = await logIn(browser, await project.serve(), "/cost");
  await page.getByText("A new session may use at most $2.50.").waitFor();
  await page.getByRole("row", { name: /pump/ }).getByText("$0.60 of $2.50, $1.90 left").waitFor();
  // The bars show money, because there is nothing else to show.
  const bar = page.getByRole("region", { name: "By agent" }).locator(".bar-lower");
  assert.equal(await bar.getAttribute("width"), "100%");
  check();
});

test("log_shows_new_events_and_links_to_each_position", async (context) => {
  const project = new Project(context);
  project.run("task", "add", "Mend the pump");
  const served = await project.serve();
  const { page, check } = await logIn(browser, served, "/log");
  await page.getByText("task_created").first().waitFor();
  project.run("task", "add", "Paint the pump");
  await page.getByText("Paint the pump").first().waitFor();
  await page.goto(`${served.url}/log/1`);
  await page.getByText("Mend the pump").first().waitFor();
  await page.getByText("by ann").first().waitFor();
  await page.locator("#log-1").getByText("Details").click();
  await page.locator("#log-1").getByText('"triggeredBy": "ann"').waitFor();
  check();
});

test("page_catches_up_after_the_server_was_killed", async (context) => {
  const project = new Project(context);
  project.run("task", "add", "Mend the pump");
  const served = await project.serve();
  const { page } = await logIn(browser, served, "/log");
  await page.getByText("Mend the pump").first().waitFor();
  const ended = new Promise((resolve) => served.child.on("exit", resolve));
  served.child.kill("SIGKILL");
  await ended;
  await page.getByText("Reconnecting to the server.").waitFor();
  project.run("task", "add", "Paint the pump");
  await project.serve();
  await page.getByText("Paint the pump").first().waitFor();
  await page.getByText("Reconnecting to the server.").waitFor({ state: "detached" });
});

test("screens_are_reached_with_the_keyboard", async (context) => {
  const project = new Project(context);
  const { page, check } = await logIn(browser, await project.serve());
  await page.getByRole("heading", { name: "Now", level: 1 }).waitFor();
  for (const [key, name] of [["t", "Tasks"], ["s", "Sessions"], ["h", "Hooks"], ["l", "Log"], ["n", "Now"]]) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await page.getByRole("heading", { name, level: 1 }).waitFor();
  }
  await page.keyboard.press("?");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.reload();
  await page.getByRole("heading", { name: "Now", level: 1 }).waitFor();
  await page.keyboard.press("Tab");
  assert.match(await page.evaluate(() => document.activeElement?.textContent ?? ""), /Skip/);
  check();
});
