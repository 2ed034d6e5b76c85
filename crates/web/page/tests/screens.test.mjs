// Every screen, at the width of a phone and of a large display, in light and dark: readable for assistive technology, and never too wide.
// With SCREENSHOTS=DIRECTORY each screen is also stored as an image.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { DONE_AGENT, Project, RED_CONFIG, logIn, startBrowser } from "./support.mjs";

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
];

async function createBusyProject(context) {
  const project = new Project(context, { ".windlass/config.yaml": RED_CONFIG, "agent.sh": DONE_AGENT });
  project.run("task", "add", "Mend the pump", "--priority", "1");
  project.run("task", "add", "Write the guide for the pump", "--depends", "T1");
  project.run("task", "add", "Paint it");
  await project.runToEnd("run", "--task", "T1");
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

test("screens_are_accessible_and_fit_their_window", async (context) => {
  const project = await createBusyProject(context);
  const served = await project.serve();
  const { page, check } = await logIn(browser, served);
  const screens = {
    now: "/", tasks: "/tasks", board: "/tasks?view=board", graph: "/tasks?view=graph", task: "/tasks/T1", sessions: "/sessions",
    session: "/sessions/t1-mend-the-pump", why: "/why/T1", changes: "/changes", hooks: "/hooks", cost: "/cost", log: "/log",
  };
  if (images) mkdirSync(images, { recursive: true });
  const problems = [];
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    for (const [name, path] of Object.entries(screens)) {
      await page.goto(served.url + path);
      await page.getByRole("heading", { level: 1 }).first().waitFor();
      await page.getByText("Loading").waitFor({ state: "detached" });
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
  }
  assert.deepEqual(problems, []);
  check();
});
