// Hostile titles, outputs, and names of files and branches: data stays text.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
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

/** Lists the elements and attributes that the page itself never makes. */
function findInjected(page) {
  return page.evaluate(() => {
    // The page has one script and one style sheet, and draws with hidden `svg` elements or those of its plots.
    const foreign = "img, iframe, object, embed, base, math, style, body script, body meta, body link, body title, form[action], svg:not([aria-hidden='true'], .day-plot)";
    const found = [...document.querySelectorAll(foreign)].map((element) => element.outerHTML.slice(0, 200));
    for (const element of document.querySelectorAll("*")) {
      const names = element.getAttributeNames().filter((name) => name.startsWith("on"));
      const isScript = [element.getAttribute("href"), element.getAttribute("src")].some((address) => /^\s*(javascript|data):/i.test(address ?? ""));
      if ((names.length > 0 || isScript) && element.closest("head") === null) found.push(element.outerHTML.slice(0, 200));
    }
    return found;
  });
}

/** Lists the texts with a character that is invisible or turns their direction: the page writes its code point instead. */
function findInvisible(page) {
  return page.evaluate(() => {
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const { data, parentElement } = walker.currentNode;
      const at = data.search(/[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/);
      if (at >= 0) found.push(`${parentElement.className} ${parentElement.parentElement.outerHTML.slice(0, 160)}`);
    }
    return found;
  });
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
    assert.deepEqual(await findInjected(page), [], path);
    assert.deepEqual(await findInvisible(page), [], path);
    const width = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(width <= 0, `${path} is ${width} pixels too wide`);
    check();
  }
  await page.goto(`${served.url}/tasks`);
  await page.getByText("<script>alert(document.domain)</script>", { exact: false }).first().waitFor();
  check();
});

const HOSTILE_FILES = [
  "<img src=x onerror=alert(1)>.txt",
  '"><script>alert(1)</script>',
  "'><svg onload=alert(1)>.js",
  "a name with spaces.txt",
  `it's "quoted" and \\ \`ticked\`.txt`,
  "caf\u00e9 \u6f22\u5b57.txt",
  "\u202egnp.exe\u2066.txt",
  "tab\there.txt",
  "line\nbreak.txt",
  "-rf",
  "${alert(1)} {{alert(1)}}.txt",
];

test("hostile_files_of_a_change_stay_text", async (context) => {
  const config = `agent: command:sh "$AGENT"\nworktrees: true\nhooks:\n  stop: [{name: '<img src=x onerror=alert(1)>', command: 'cat ./*.txt | head -n 40'}]\n`;
  const agent = `cat > /dev/null; cp -R "$FILES/." .; git add -A; git commit -qm '<script>alert(1)</script>'; echo '<promise>COMPLETE</promise>'\n`;
  const project = new Project(context, { ".windlass/config.yaml": config, "agent.sh": agent, "pump.txt": "run\n" });
  project.environment.AGENT = project.path("agent.sh");
  project.environment.FILES = `${project.root}/files`;
  const content = `${listHostileStrings().join("\n")}\nconst isAdmin = "\u202e\u2066// only for admins\u2069";\n`;
  for (const name of [...HOSTILE_FILES, "pump.txt"]) {
    const path = join(project.root, "files", name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }
  project.initRepository();
  project.run("task", "add", "<img src=x onerror=alert(1)>");
  assert.equal(await project.runToEnd("run", "--task", "T1"), 0);
  const served = await project.serve();
  const { page, check } = await logIn(browser, served);
  for (const path of ["/", "/changes", "/changes/T1", "/tasks/T1", "/why/T1", "/hooks"]) {
    await page.goto(served.url + path);
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    await page.waitForLoadState("networkidle").catch(() => {});
    assert.deepEqual(await findInjected(page), [], path);
    assert.deepEqual(await findInvisible(page), [], path);
    const width = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(width <= 0, `${path} is ${width} pixels too wide`);
    check();
  }
  await page.goto(`${served.url}/changes/T1`);
  const main = page.getByRole("main");
  await main.getByText("Recorded at").first().waitFor({ state: "attached" });
  await page.evaluate(() => document.querySelectorAll("details").forEach((folded) => (folded.open = true)));
  for (const text of ["<img src=x onerror=alert(1)>.txt", "a name with spaces.txt", "U+202E", "U+000A", "<script>alert(document.domain)</script>"]) {
    await main.getByText(text).first().waitFor();
  }
  for (const button of await page.getByRole("button", { name: /^Comment on line 1$/ }).all()) {
    await button.click();
    assert.deepEqual(await findInjected(page), []);
  }
  check();
});
