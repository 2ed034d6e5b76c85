// The steps of docs/tutorial/in-the-browser.md. With SCREENSHOTS=DIRECTORY the images of that page are stored there.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Project, logIn, startBrowser } from "./support.mjs";

const tutorial = readFileSync(fileURLToPath(new URL("../../../../docs/tutorial/in-the-browser.md", import.meta.url)), "utf8");
const images = process.env.SCREENSHOTS;

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

/** Reads a file from the tutorial: the lines between `cat > NAME <<'END'` and `END`. */
function readTutorialFile(name) {
  const start = tutorial.indexOf(`cat > ${name} <<'END'\n`);
  const [, ...lines] = tutorial.slice(start, tutorial.indexOf("> END", start)).trimEnd().split("\n");
  return `${lines.map((line) => line.replace(/^> /, "")).join("\n")}\n`;
}

async function takeImage(page, name) {
  if (!images) return;
  mkdirSync(images, { recursive: true });
  await page.screenshot({ path: `${images}/${name}.png` });
}

test("tutorial_answers_the_question_and_shows_the_session", async (context) => {
  const files = [".windlass/config.yaml", "test.sh", "agent.sh"].map((name) => [name, readTutorialFile(name)]);
  const project = new Project(context, Object.fromEntries(files));
  project.run("task", "add", "Mend the pump");
  assert.equal(await project.runToEnd("run", "--task", "T1"), 4);
  const { page, check } = await logIn(browser, await project.serve(), "/", { viewport: { width: 900, height: 560 }, reducedMotion: "reduce" });
  await page.getByText("FAIL test_valve: the valve leaks").waitFor();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByLabel("Text for the agent").fill("Close the valve first.");
  await takeImage(page, "question");
  await page.getByRole("button", { name: "Continue" }).last().click();
  await page.getByText("Nothing needs you").waitFor();
  assert.equal(await project.runToEnd("run", "--task", "T1"), 0);
  await page.getByRole("link", { name: "Sessions" }).first().click();
  await page.locator("main").getByRole("link", { name: /Mend the pump/ }).first().click();
  await page.getByRole("heading", { name: "Timeline" }).waitFor();
  await page.getByText("Iteration 1").first().waitFor();
  await page.getByText("ann: Close the valve first.").waitFor();
  await takeImage(page, "session");
  check();
});
