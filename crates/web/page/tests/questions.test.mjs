// Questions: answered on the page, from a phone, and by two people and a terminal at once.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import { DONE_AGENT, Project, RED_CONFIG, changeResponse, logIn, logInAs, openPage, startBrowser } from "./support.mjs";

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

/** A project whose task T1 waits for a person, because its tests are red. */
async function createQuestion(context, config = RED_CONFIG) {
  const project = new Project(context, { ".windlass/config.yaml": config, "agent.sh": DONE_AGENT });
  project.run("task", "add", "Mend the pump");
  assert.equal(await project.runToEnd("run", "--task", "T1"), 4);
  return project;
}

test("question_is_answered_from_the_list_without_opening_it", async (context) => {
  const project = await createQuestion(context);
  const { page, check } = await logIn(browser, await project.serve());
  await page.getByRole("heading", { name: /Needs you/ }).waitFor();
  assert.match(await page.title(), /^\(1\) /);
  await page.getByText("FAIL test_valve: the valve leaks").waitFor();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByLabel("Text for the agent").fill("The leak is known. Close the valve.");
  await page.getByRole("button", { name: "Continue" }).last().click();
  await page.getByText("Nothing needs you").waitFor();
  await page.getByText("windlass run --task T1").first().waitFor();
  assert.equal(project.json("task", "show", "T1")[0].state, "ready");
  project.write("fixed", "");
  assert.equal(await project.runToEnd("run", "--task", "T1"), 0);
  assert.match(project.read("prompt"), /The leak is known\. Close the valve\./);
  check();
});

test("task_screen_shows_reason_and_message_beside_the_answers", async (context) => {
  const project = await createQuestion(context);
  const { page, check } = await logIn(browser, await project.serve(), "/tasks/T1");
  await page.getByRole("heading", { name: "Your decision" }).waitFor();
  await page.getByText("I have mended it.").first().waitFor();
  check();
});

test("question_link_fits_a_phone_and_works_once", async (context) => {
  const project = await createQuestion(context);
  await project.serve();
  const [{ link }] = project.json("serve", "question", "T1");
  const phone = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true };
  const { page, check } = await openPage(browser, link, phone);
  await page.getByRole("heading", { name: "Mend the pump" }).waitFor();
  await page.getByText("FAIL test_valve: the valve leaks").waitFor();
  await page.getByText("shop", { exact: true }).waitFor();
  await page.getByText("I have mended it.").waitFor();
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 360, `the page is ${width} pixels wide`);
  for (const button of await page.getByRole("button").all()) {
    const { height } = await button.boundingBox();
    assert.ok(height >= 44, `${await button.textContent()}: ${height} pixels high`);
  }
  await page.getByRole("button", { name: "Continue" }).tap();
  await page.getByRole("button", { name: "Continue" }).last().tap();
  await page.getByText("Your answer was sent").waitFor();
  assert.equal(project.json("task", "show", "T1")[0].state, "ready");
  const { page: second } = await openPage(browser, link);
  await second.getByText("its question has an answer").waitFor();
  check();
});

test("one_of_two_browsers_and_a_terminal_wins", async (context) => {
  const project = await createQuestion(context);
  const served = await project.serve();
  const first = await logIn(browser, served);
  const second = await logInAs(browser, project, served, "answer");
  for (const { page } of [first, second]) {
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByLabel("Text for the agent").waitFor();
  }
  const click = ({ page }) => page.getByRole("button", { name: "Continue" }).last().click();
  const [, , code] = await Promise.all([click(first), click(second), project.runToEnd("answer", "T1", "continue")]);
  for (const { page } of [first, second]) {
    await page.getByText("Nothing needs you").waitFor();
  }
  const answers = project.json("events", "--type", "task_unblocked");
  assert.equal(answers.length, 1, `the terminal ended with ${code}`);
  first.check();
  second.check();
});

test("text_for_question_that_another_person_answers_stays_on_screen", async (context) => {
  const project = await createQuestion(context);
  const { page, check } = await logIn(browser, await project.serve());
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByLabel("Text for the agent").fill("Close the valve before");
  project.run("answer", "T1", "retry", "Use a new pump");
  await page.getByText("T1 waits for no answer any more: ann answered retry: Use a new pump").waitFor();
  await page.getByText("Close the valve before").waitFor();
  await page.getByRole("button", { name: "Discard the text" }).click();
  await page.getByText("Close the valve before").waitFor({ state: "detached" });
  check();
});

test("own_answer_is_not_called_lost_while_its_hooks_run", async (context) => {
  const project = await createQuestion(context, `${RED_CONFIG}  task_answered: [{name: note, command: cat go}]\n`);
  execFileSync("mkfifo", [project.path("go")]);
  const { page, check } = await logIn(browser, await project.serve());
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByLabel("Text for the agent").fill("Close the valve.");
  await page.getByRole("button", { name: "Continue" }).last().click();
  await page.getByText("Nothing needs you").waitFor();
  const late = page.getByText("Your text was not sent");
  assert.equal(await late.count(), 0);
  project.write("go", "");
  await page.getByText("Your answer was sent").waitFor();
  assert.equal(await late.count(), 0);
  check();
});

test("older_answer_does_not_explain_a_question_that_ended_without_one", async (context) => {
  const project = await createQuestion(context);
  project.run("answer", "T1", "retry", "Use a new pump");
  assert.equal(await project.runToEnd("run", "--task", "T1"), 4);
  const { page, check } = await logIn(browser, await project.serve());
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByLabel("Text for the agent").fill("Close the valve before");
  const asked = page.waitForResponse((response) => response.url().includes("/api/log?type=task_answered"));
  project.run("task", "delete", "T1");
  await (await asked).finished();
  await page.getByText("T1 waits for no answer any more", { exact: true }).waitFor();
  assert.equal(await page.getByText("answered retry").count(), 0);
  check();
});

test("draft_for_a_question_that_is_not_listed_or_of_another_project_is_not_late", async (context) => {
  const project = await createQuestion(context);
  const { page, check } = await logIn(browser, await project.serve());
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByLabel("Text for the agent").fill("Close the valve before");
  const late = page.getByText("T1 waits for no answer any more");
  await changeResponse(page, "**/api/now", (now) => Object.assign(now, { waiting: [], hasMore: true }));
  await page.reload();
  await page.getByText("Nothing needs you").waitFor();
  assert.equal(await late.count(), 0);
  await changeResponse(page, "**/api/now", (now) => Object.assign(now, { waiting: [], hasMore: false }));
  await page.reload();
  await late.waitFor();
  await changeResponse(page, "**/api/viewer", (viewer) => Object.assign(viewer, { projectPath: "/srv/other" }));
  await page.reload();
  await page.getByText("Nothing needs you").waitFor();
  assert.equal(await late.count(), 0);
  check();
});

test("viewer_who_may_look_sees_no_buttons_that_change", async (context) => {
  const project = await createQuestion(context);
  const served = await project.serve();
  const { page, check } = await logInAs(browser, project, served, "look");
  await page.getByText("FAIL test_valve: the valve leaks").waitFor();
  assert.equal(await page.getByRole("button", { name: "Continue" }).count(), 0);
  await page.goto(`${served.url}/tasks`);
  await page.getByText("Mend the pump").first().waitFor();
  assert.equal(await page.getByRole("button", { name: "Add a task" }).count(), 0);
  check();
});

test("page_without_login_asks_for_a_link", async (context) => {
  const project = await createQuestion(context);
  const served = await project.serve();
  const { page } = await openPage(browser, `${served.url}/tasks`);
  await page.getByRole("heading", { name: "Log in to Windlass" }).waitFor();
  await page.getByLabel("Open the link, or paste it here").fill("wrong");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByText("this code is not valid").waitFor();
  const [{ login }] = project.json("serve", "invite", "bob");
  await page.getByLabel("Open the link, or paste it here").fill(login);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { name: "Tasks", level: 1 }).waitFor();
});
