// Review of a change: comments go to the agent, and a merge needs the gates.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Project, logIn, startBrowser } from "./support.mjs";

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

const CONFIG = `agent: command:sh "$AGENT"
worktrees: true
hooks:
  stop:
    - {name: lint, command: 'grep -q valve pump.txt && echo "1 file is clean"'}
`;

/** The first turn closes the valve; a turn with comments in its prompt does what they say. */
const AGENT = `prompt=$(cat)
echo "$prompt" >> "$NOTES"
case "$prompt" in
  *"Say which valve"*) echo "close the red valve" > pump.txt ;;
  *) echo "close the valve" > pump.txt ;;
esac
git add -A; git commit -qm "Close the valve"
echo '<promise>COMPLETE</promise>'
`;

test("comment_on_a_line_sends_the_task_back_and_merge_ends_it", async (context) => {
  const project = new Project(context, { ".windlass/config.yaml": CONFIG, "agent.sh": AGENT, "pump.txt": "run\n" });
  project.environment.AGENT = project.path("agent.sh");
  project.environment.NOTES = `${project.root}/notes`;
  project.initRepository();
  project.run("task", "add", "Mend the pump");
  const first = await project.runToEnd("run", "--task", "T1");
  assert.equal(first, 0, `the run ended with ${first}`);
  const served = await project.serve();
  const { page, check } = await logIn(browser, served, "/changes");
  await page.getByRole("link", { name: /Mend the pump/ }).first().click();
  await page.getByText("close the valve").first().waitFor();
  await page.getByText("lint").first().click();
  await page.getByText("1 file is clean").waitFor();
  await page.getByRole("button", { name: "Comment on line 1" }).first().click();
  await page.getByLabel("Comment on line 1 of pump.txt").fill("Say which valve.");
  await page.getByRole("button", { name: "Send back with 1 comment" }).click();
  // The outcome stands where the button is, and a reader of the screen hears it.
  const outcome = page.getByRole("complementary", { name: "Review" }).getByRole("status");
  await outcome.getByText("Sent back with 1 comment.").waitFor();
  assert.equal(await project.runToEnd("run", "--task", "T1"), 0);
  await page.goto(`${served.url}/changes/T1`);
  await page.getByText("close the red valve").first().waitFor();
  await page.getByRole("button", { name: "Merge" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Merge" }).click();
  await page.getByText("Merged into main.").waitFor();
  assert.equal(project.execute("git", "show", "main:pump.txt"), "close the red valve\n");
  check();
});

test("merge_with_plain_git_is_recorded_on_the_page", async (context) => {
  const project = new Project(context, { ".windlass/config.yaml": CONFIG, "agent.sh": AGENT, "pump.txt": "run\n" });
  project.environment.AGENT = project.path("agent.sh");
  project.environment.NOTES = `${project.root}/notes`;
  project.initRepository();
  project.run("task", "add", "Mend the pump");
  assert.equal(await project.runToEnd("run", "--task", "T1"), 0);
  const [{ branch }] = project.json("change", "show", "T1");
  project.execute("git", "merge", "-q", branch);
  const { page, check } = await logIn(browser, await project.serve(), "/changes/T1");
  await page.getByRole("button", { name: "Record the merge" }).click();
  await page.getByRole("heading", { name: /is already in main: record it/ }).waitFor();
  await page.getByRole("button", { name: "Record", exact: true }).click();
  await page.getByText("The merge into main is recorded.").waitFor();
  assert.equal(project.json("events", "--type", "change_merged").length, 1);
  check();
});
