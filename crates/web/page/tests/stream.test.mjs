// The stream of events: a login that ended, a store from a backup, events that the server left out; and what comes from now on.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync } from "node:fs";
import { after, before, test } from "node:test";
import { DONE_AGENT, Project, RED_CONFIG, changeResponse, logIn, logInAs, startBrowser } from "./support.mjs";

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

async function endServer(served) {
  const ended = new Promise((resolve) => served.child.on("exit", resolve));
  served.child.kill("SIGKILL");
  await ended;
}

test("page_whose_login_ended_asks_for_a_link", async (context) => {
  const project = new Project(context);
  project.run("task", "add", "Mend the pump");
  const served = await project.serve();
  const { page, context: own } = await logIn(browser, served, "/tasks");
  await page.getByText("Mend the pump").first().waitFor();
  await own.clearCookies();
  await endServer(served);
  await project.serve();
  await page.getByRole("heading", { name: "Log in to Windlass" }).waitFor();
});

test("page_follows_a_store_that_was_restored_from_a_backup", async (context) => {
  const project = new Project(context);
  project.run("task", "add", "Mend the pump");
  const first = await project.serve();
  const { page } = await logIn(browser, first, "/log");
  await page.getByText("Mend the pump").first().waitFor();
  // The backup has the port of the server and the login.
  await endServer(first);
  cpSync(project.path(".windlass"), `${project.root}/backup`, { recursive: true });
  const served = await project.serve();
  for (const goal of ["Paint the pump", "Sell the pump", "Lose the pump"]) project.run("task", "add", goal);
  await page.getByText("Lose the pump").first().waitFor();
  await endServer(served);
  for (const suffix of ["", "-wal", "-shm"]) execFileSync("rm", ["-f", project.path(`.windlass/windlass.db${suffix}`)]);
  cpSync(`${project.root}/backup`, project.path(".windlass"), { recursive: true });
  project.run("trust", "--yes");
  await project.serve();
  await page.getByText("Lose the pump").first().waitFor({ state: "detached" });
  project.run("task", "add", "Find the pump");
  await page.getByText("Find the pump").first().waitFor();
});

test("page_loads_its_views_again_after_a_gap", async (context) => {
  const project = new Project(context);
  project.run("task", "add", "Mend the pump");
  const served = await project.serve();
  const { page } = await logIn(browser, served);
  // The stream says only that it has left something out, and then ends.
  await page.route("**/api/events*", (route) => route.fulfill({ contentType: "text/event-stream", body: 'event: gap\ndata: {"from": 1}\n\n' }));
  await page.goto(`${served.url}/tasks`);
  await page.getByText("Mend the pump").first().waitFor();
  project.run("task", "add", "Paint the pump");
  await page.getByText("Paint the pump").first().waitFor();
});

test("view_that_loaded_slowly_shows_the_next_event_soon", async (context) => {
  const project = new Project(context);
  project.run("task", "add", "Mend the pump");
  const served = await project.serve();
  const { page, check } = await logIn(browser, served);
  // By the clock of the page, its first load takes a minute.
  await page.addInitScript(() => {
    const now = performance.now.bind(performance);
    globalThis.clockOffset = 0;
    performance.now = () => now() + globalThis.clockOffset;
  });
  await changeResponse(page, "**/api/now", () =>
    page.evaluate(() => {
      globalThis.clockOffset = 60_000;
    }),
  );
  await page.goto(served.url);
  await page.getByText("Mend the pump").first().waitFor();
  project.run("task", "add", "Paint the pump");
  await page.getByText("Paint the pump").first().waitFor();
  check();
});

test("wait_in_progress_says_when_it_ends", async (context) => {
  const project = new Project(context, { ".windlass/config.yaml": RED_CONFIG, "agent.sh": DONE_AGENT });
  await project.runToEnd("run", "Mend the pump", "--session", "pump");
  const served = await project.serve();
  const { page, check } = await logIn(browser, served);
  const endedAt = Date.now() + 90_000;
  await changeResponse(page, "**/api/sessions/pump", (timeline) => {
    const group = timeline.groups.at(-1);
    const wait = { kind: "wait", event: "iteration_postponed", title: "The agent asks for time", startedAt: Date.now(), endedAt, isPending: true };
    group.items.push({ ...wait, details: [], evidence: [], relatedSeqs: [], seq: 900, startSeq: 900, text: null, tone: "warning" });
  });
  await page.goto(`${served.url}/sessions/pump`);
  const item = page.locator("#item-900");
  const shown = await page.evaluate((at) => new Date(at).toTimeString().slice(0, 8), endedAt);
  await item.getByText(`until ${shown}`).waitFor();
  assert.equal(await item.locator(".item-bar").evaluate((bar) => getComputedStyle(bar).borderTopStyle), "dashed");
  check();
});

test("session_at_work_is_spoken_to_and_cancelled_from_the_first_screen", async (context) => {
  const project = new Project(context, { "agent.sh": "cat > prompt; cat go\n" });
  execFileSync("mkfifo", [project.path("go")]);
  const run = project.start("run", "Mend the pump", "--session", "pump", "--agent", "command:sh agent.sh");
  const ended = new Promise((resolve) => run.on("exit", resolve));
  const served = await project.serve();
  const { page, check } = await logIn(browser, served);
  await page.getByRole("button", { name: "Say something to pump" }).click();
  await page.getByLabel("The agent reads it with its next prompt.").fill("Use the new washer.");
  await page.getByRole("dialog").getByRole("button", { name: "Say", exact: true }).click();
  await page.getByText("gets the message with its next prompt").waitFor();
  const other = await logInAs(browser, project, served, "look");
  await other.page.getByRole("link", { name: "Mend the pump" }).first().waitFor();
  assert.equal(await other.page.getByRole("button", { name: /Say|Cancel/ }).count(), 0);
  await page.getByRole("button", { name: "Cancel pump" }).click();
  await page.getByLabel("Reason (optional)").fill("It is the wrong pump.");
  await page.getByRole("button", { name: "Cancel the session" }).click();
  assert.notEqual(await ended, 0);
  await page.getByText("No agent works now.").waitFor();
  check();
});

test("why_belongs_to_tasks_or_sessions", async (context) => {
  const project = new Project(context, { ".windlass/config.yaml": RED_CONFIG, "agent.sh": DONE_AGENT });
  await project.runToEnd("run", "Mend the pump", "--session", "pump");
  const { page, check } = await logIn(browser, await project.serve(), "/why/pump");
  const current = page.getByRole("navigation").locator("a[aria-current='page']");
  assert.equal((await current.innerText()).trim(), "Sessions");
  check();
});

test("cut_lists_and_types_of_hooks_are_named", async (context) => {
  const project = new Project(context, { ".windlass/config.yaml": RED_CONFIG, "agent.sh": DONE_AGENT });
  await project.runToEnd("run", "Mend the pump");
  const served = await project.serve();
  const { page, check } = await logIn(browser, served);
  await changeResponse(page, "**/api/now", (now) => Object.assign(now, { hasMore: true }));
  await changeResponse(page, "**/api/hooks", (hooks) => hooks.hooks.forEach((hook) => Object.assign(hook, { types: ["<b>bug</b>"] })));
  await page.goto(served.url);
  await page.getByText("and more").waitFor();
  await page.goto(`${served.url}/hooks`);
  await page.getByText("<b>bug</b>").first().waitFor();
  check();
});
