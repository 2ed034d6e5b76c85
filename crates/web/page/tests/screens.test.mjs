// Every screen, at the width of a phone and of a large display, in light and dark: readable for assistive technology, and never too wide.
// With SCREENSHOTS=DIRECTORY each screen is also stored as an image.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { DONE_AGENT, Project, RED_CONFIG, logIn, openPage, startBrowser } from "./support.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const images = process.env.SCREENSHOTS;

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

const VIEWPORTS = [
  { width: 360, height: 740 },
  { width: 1024, height: 768 },
  { width: 1600, height: 1000 },
  // A page at 400 % on a display of 1280 pixels.
  { width: 320, height: 640 },
];

/** An agent that reports what it used. */
const PAID_TURN = `turns:
  - do:
      - update: {sessionUpdate: usage_update, used: 90, size: 200, cost: {amount: 0.6, currency: USD}}
      - say: It is painted.
      - promise: COMPLETE
      - answer: {stopReason: end_turn, usage: {inputTokens: 5200, outputTokens: 340, totalTokens: 5540}}
`;

async function createBusyProject(context) {
  const project = new Project(context, { ".windlass/config.yaml": RED_CONFIG, "agent.sh": DONE_AGENT, "paid.yaml": PAID_TURN, "waiting.sh": "cat > /dev/null; echo 'I look at the valve.'; cat go\n" });
  project.run("task", "add", "Mend the pump", "--priority", "1");
  project.run("task", "add", "Write the guide for the pump", "--depends", "T1");
  project.run("task", "add", "Paint it");
  await project.runToEnd("run", "--task", "T1");
  await project.runToEnd("run", "--task", "T3", "--agent", "scripted:paid.yaml");
  execFileSync("mkfifo", [project.path("go")]);
  project.start("run", "Look at the valve", "--session", "valve", "--agent", "command:sh waiting.sh");
  return project;
}

/** A project of its own, because worktrees need a git repository: T1 has a change to review. */
async function createChange(context) {
  const config = `agent: command:sh "$AGENT"\nworktrees: true\nhooks:\n  stop: [{name: lint, command: 'grep -q valve pump.txt'}]\n`;
  const agent = `cat > /dev/null; echo "close the valve" > pump.txt; seq 40 > steps.txt; git add -A; git commit -qm "Close the valve"; echo '<promise>COMPLETE</promise>'\n`;
  const project = new Project(context, { ".windlass/config.yaml": config, "agent.sh": agent, "pump.txt": "run\n" });
  project.environment.AGENT = project.path("agent.sh");
  project.initRepository();
  project.run("task", "add", "Mend the pump");
  assert.equal(await project.runToEnd("run", "--task", "T1"), 0);
  return project;
}

/** Runs axe-core in a world of its own, because the policy of the page allows no other script. */
async function findViolations(page) {
  const session = await page.context().newCDPSession(page);
  const { frameTree } = await session.send("Page.getFrameTree");
  const { executionContextId } = await session.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id });
  const run = (expression) => session.send("Runtime.evaluate", { expression, contextId: executionContextId, awaitPromise: true, returnByValue: true });
  await run(axe);
  const answer = await run("axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target).join(' | ')}`))");
  await session.detach();
  assert.ok(answer.result.value, JSON.stringify(answer));
  return answer.result.value;
}

/** Checks what a page shows, in light and dark, at each width. Returns what is wrong. */
async function findProblems(page, name) {
  const problems = [];
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    // Colours that change step by step would be measured between two themes.
    const transitions = await page.evaluate(() => document.getAnimations().filter((one) => one instanceof CSSTransition).length);
    if (transitions > 0) problems.push(`${name}, ${colorScheme}: ${transitions} transitions`);
    for (const viewport of VIEWPORTS) {
      await page.setViewportSize(viewport);
      const excess = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      if (excess > 0) problems.push(`${name} at ${viewport.width}: ${excess} pixels too wide`);
      if (images) await page.screenshot({ path: `${images}/${name}-${viewport.width}-${colorScheme}.png`, fullPage: true });
    }
    await page.setViewportSize(VIEWPORTS[1]);
    const violations = await findViolations(page);
    problems.push(...violations.map((violation) => `${name}, ${colorScheme}: ${violation}`));
  }
  return problems;
}

async function waitForContents(page) {
  await page.getByRole("heading", { level: 1 }).first().waitFor();
  await page.getByText("Loading").waitFor({ state: "detached" });
}

test("screens_are_accessible_and_fit_their_window", async (context) => {
  if (images) mkdirSync(images, { recursive: true });
  const [project, other] = await Promise.all([createBusyProject(context), createChange(context)]);
  const [served, otherServed] = await Promise.all([project.serve(), other.serve()]);
  const [{ link }] = project.json("serve", "question", "T1");
  const { page, check } = await logIn(browser, served);
  const screens = {
    now: "/", tasks: "/tasks", board: "/tasks?view=board", graph: "/tasks?view=graph", task: "/tasks/T1", sessions: "/sessions",
    session: "/sessions/t1-mend-the-pump", why: "/why/T1", changes: "/changes", hooks: "/hooks", cost: "/cost", log: "/log",
  };
  const problems = [];
  for (const [name, path] of Object.entries(screens)) {
    await page.goto(served.url + path);
    await waitForContents(page);
    if (name === "cost") await page.getByText("$0.60").first().waitFor();
    problems.push(...(await findProblems(page, name)));
  }
  await page.goto(`${served.url}/sessions/valve`);
  await page.getByRole("log").getByText("I look at the valve.").waitFor();
  problems.push(...(await findProblems(page, "live")));
  check();

  const change = await logIn(browser, otherServed, "/changes/T1");
  await change.page.getByText("close the valve").first().waitFor();
  problems.push(...(await findProblems(change.page, "change")));
  change.check();

  const question = await openPage(browser, link);
  await question.page.getByText("FAIL test_valve: the valve leaks").waitFor();
  problems.push(...(await findProblems(question.page, "question")));
  question.check();

  const login = await openPage(browser, served.url);
  await login.page.getByRole("heading", { name: "Log in to Windlass" }).waitFor();
  problems.push(...(await findProblems(login.page, "login")));
  login.check();

  assert.deepEqual(problems, []);
});
