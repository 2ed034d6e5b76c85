// Hostile titles, outputs, and names of files and branches: data stays text.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Project, logIn, startBrowser } from "./support.mjs";

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

/** 200 strings that would run, load or break something if a page took them for markup, a link or a format. */
function listHostileStrings() {
  const call = "alert(document.domain)";
  const seeds = [
    `<script>${call}</script>`,
    `<img src=x onerror=${call}>`,
    `<svg onload=${call}>`,
    `"><script>${call}</script>`,
    `'><img src=x onerror="${call}">`,
    `</title><script>${call}</script>`,
    `</textarea><img src=x onerror=${call}>`,
    `<iframe src="javascript:${call}"></iframe>`,
    `<a href="javascript:${call}">go</a>`,
    `javascript:${call}`,
    `data:text/html,<script>${call}</script>`,
    `<style>@import "http://evil.example/a.css";</style>`,
    `<link rel=stylesheet href=http://evil.example/a.css>`,
    `<base href="http://evil.example/">`,
    `<meta http-equiv=refresh content="0;url=http://evil.example/">`,
    `<form action=http://evil.example/><input type=submit autofocus>`,
    `<object data="http://evil.example/a.swf"></object>`,
    `<math><mtext></form><form><mglyph><style></math><img src onerror=${call}>`,
    "{{constructor.constructor('" + call + "')()}}",
    "${" + call + "}",
    `\u202e\u2066gnp.exe\u2069`,
    `a\u200b\u200d\ufeffb`,
    `e${"\u0301".repeat(60)}`,
    "x".repeat(290),
    "__proto__",
    "constructor",
    "%00%0d%0aSet-Cookie: a=b",
    "../../../../etc/passwd",
    "\\\\evil.example\\share",
    "&lt;script&gt;&#x3c;img src=x onerror=1&#x3e;",
  ];
  const frames = [(text) => text, (text) => `${text} ${text}`, (text) => `fix: ${text}!`, (text) => `\`${text}\``, (text) => `T1 ${text}`, (text) => `"${text}"`, (text) => `(${text})`];
  return frames.flatMap((frame) => seeds.map(frame)).map((text) => text.slice(0, 290)).slice(0, 200);
}

test("hostile_text_stays_text_on_every_screen", async (context) => {
  const strings = listHostileStrings();
  assert.equal(strings.length, 200);
  const agent = `cat > /dev/null; cat strings.txt; mkdir -p '<img src=x onerror=alert(1)>'; echo x > '<img src=x onerror=alert(1)>/a.txt'; exit 0\n`;
  const config = `agent: command:sh agent.sh
limits: {max_iterations: 2, max_hook_retries: 0}
hooks:
  stop: [{name: '<script>alert(1)</script>', command: 'cat strings.txt >&2; exit 2'}]
  post_iteration: [{name: '<svg onload=alert(1)>', command: 'cat strings.txt', pipe_output: true}]
`;
  const project = new Project(context, { ".windlass/config.yaml": config, "agent.sh": `${agent}echo '<promise>COMPLETE</promise>'\n`, "strings.txt": `${strings.join("\n")}\n<promise>COMPLETE</promise>\n` });
  const served = await project.serve();
  const [{ token }] = project.json("serve", "invite", "robot", "--may", "manage", "--token");
  for (const goal of strings) {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const answer = await fetch(`${served.url}/api/tasks`, { method: "POST", headers, body: JSON.stringify({ goal, description: goal }) });
    assert.equal(answer.status, 200, `${goal}: ${await answer.text()}`);
  }
  await project.runToEnd("run", "--task", "T1");
  await project.runToEnd("run", "--task", "T2");
  const { page, check } = await logIn(browser, served);
  const [{ session }] = project.json("session", "show", "T1");
  const paths = ["/", "/tasks", "/tasks?view=board", "/tasks?view=graph", "/tasks/T1", "/sessions", `/sessions/${session}`, "/why/T1", "/changes", "/hooks", "/cost", "/log"];
  for (const path of paths) {
    await page.goto(served.url + path);
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    await page.waitForLoadState("networkidle").catch(() => {});
    const injected = await page.evaluate(() => document.querySelectorAll("main script, main iframe, main object, main base, main meta, main link, main style, main form[action^='http']").length);
    assert.equal(injected, 0, path);
    const width = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(width <= 0, `${path} is ${width} pixels too wide`);
    check();
  }
  await page.goto(`${served.url}/tasks`);
  await page.getByText("<script>alert(document.domain)</script>", { exact: false }).first().waitFor();
  check();
});
