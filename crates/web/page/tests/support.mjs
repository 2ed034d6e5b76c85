// A real project with a scripted agent, its served page, and a real browser.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { chromium } from "playwright-core";

const repository = fileURLToPath(new URL("../../../../", import.meta.url));
const program = process.env.WINDLASS ?? join(repository, "target/debug/windlass");
const CHROMIUM_OPTIONS = [
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** A temporary project. `test.after` removes it. */
export class Project {
  constructor(test, files = {}) {
    this.root = realpathSync(mkdtempSync(join(tmpdir(), "windlass-page-")));
    this.directory = join(this.root, "shop");
    this.children = [];
    for (const directory of ["shop", "home", "bin"]) mkdirSync(join(this.root, directory));
    symlinkSync(program, join(this.root, "bin/windlass"));
    const { WINDLASS_PROJECT, WINDLASS_RUN, ...inherited } = process.env;
    this.environment = {
      ...inherited,
      PATH: `${join(this.root, "bin")}:${process.env.PATH}`,
      HOME: join(this.root, "home"),
      WINDLASS_STATE_DIR: join(this.root, "state"),
      USER: "ann",
      TZ: "UTC",
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_AUTHOR_NAME: "Ann",
      GIT_AUTHOR_EMAIL: "ann@example.com",
      GIT_COMMITTER_NAME: "Ann",
      GIT_COMMITTER_EMAIL: "ann@example.com",
    };
    for (const [name, content] of Object.entries(files)) this.write(name, content);
    test.after(() => this.end());
    this.run("init");
    if (existsSync(this.path(".windlass/config.yaml"))) this.run("trust", "--yes");
  }

  path(name) {
    return join(this.directory, name);
  }

  write(name, content) {
    mkdirSync(dirname(this.path(name)), { recursive: true });
    writeFileSync(this.path(name), content);
  }

  read(name) {
    return existsSync(this.path(name)) ? readFileSync(this.path(name), "utf8") : "";
  }

  /** Runs a program in the project and returns its output. */
  execute(name, ...words) {
    return execFileSync(name, words, { cwd: this.directory, env: this.environment, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  }

  run(...words) {
    return this.execute("windlass", ...words);
  }

  json(...words) {
    const lines = this.run("--json", ...words).trim().split("\n").filter(Boolean);
    return lines.map((line) => JSON.parse(line));
  }

  /** Runs a command that may end with any exit code, and returns the code. */
  runToEnd(...words) {
    return new Promise((resolve) => {
      this.start(...words).on("exit", (code) => resolve(code));
    });
  }

  start(...words) {
    const child = spawn("windlass", words, { cwd: this.directory, env: this.environment, stdio: ["ignore", "pipe", "ignore"] });
    this.children.push(child);
    child.stdout.setEncoding("utf8");
    return child;
  }

  /** Makes a git repository with the files of the project. */
  initRepository() {
    this.execute("git", "init", "-q", "-b", "main", ".");
    this.write(".gitignore", ".windlass/windlass.db*\n.windlass/owners/\n.windlass/runs/\n.windlass/worktrees/\n");
    this.execute("git", "add", "-A");
    this.execute("git", "commit", "-qm", "A start");
  }

  /** Serves the page, and returns its address and the link that logs in. */
  async serve(...options) {
    const child = this.start("--json", "serve", ...options);
    const [line] = await firstLines(child, 1);
    return { child, ...JSON.parse(line) };
  }

  async end() {
    for (const child of this.children) {
      if (child.exitCode === null && child.signalCode === null) {
        const ended = new Promise((resolve) => child.on("exit", resolve));
        child.kill("SIGKILL");
        await ended;
      }
    }
    rmSync(this.root, { recursive: true, force: true });
  }
}

function firstLines(child, count) {
  return new Promise((resolve, reject) => {
    const lines = [];
    const reader = createInterface({ input: child.stdout });
    reader.on("line", (line) => {
      lines.push(line);
      if (lines.length === count) resolve(lines);
    });
    reader.on("close", () => reject(new Error(`the program ended after ${lines.length} lines`)));
  });
}

/** A configuration whose stop hook fails until there is a file `fixed`. */
export const RED_CONFIG = `agent: command:sh agent.sh
limits: {max_hook_retries: 0}
hooks:
  stop:
    - name: tests
      command: 'test -e fixed || { echo "FAIL test_valve: the valve leaks" >&2; exit 2; }'
`;

/** An agent that claims to be done at once. */
export const DONE_AGENT = "cat > prompt; echo 'I have mended it. <promise>COMPLETE</promise>'\n";

/** Serves the built page of this directory instead of the one in the program, if PAGE_DIST is set. */
async function serveBuiltPage(context) {
  if (!process.env.PAGE_DIST) return;
  for (const [name, contentType] of [["app.js", "text/javascript"], ["app.css", "text/css"]]) {
    const body = gunzipSync(readFileSync(new URL(`../dist/${name}.gz`, import.meta.url)));
    await context.route((address) => address.pathname === `/${name}`, (route) => route.fulfill({ body, contentType }));
  }
}

/** Starts one browser for all tests of a file. */
export async function startBrowser() {
  const root = typeof process.getuid === "function" && process.getuid() === 0;
  const args = root ? [...CHROMIUM_OPTIONS, "--no-sandbox"] : CHROMIUM_OPTIONS;
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args });
}

/** Opens a page that fails the test on a dialog, an error of a script, or a request to another host. */
export async function openPage(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1024, height: 768 }, ...options });
  await serveBuiltPage(context);
  const page = await context.newPage();
  const problems = [];
  page.on("dialog", (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("pageerror", (error) => problems.push(`error: ${error.stack}`));
  page.on("request", (request) => {
    const address = new URL(request.url());
    if (address.protocol !== "data:" && address.host !== new URL(url).host) problems.push(`request: ${request.url()}`);
  });
  page.on("console", (message) => {
    const isBroken = message.type() === "error" && !message.text().includes("ERR_") && !message.text().includes("status of");
    if (isBroken) problems.push(`console: ${message.text()}`);
  });
  await page.goto(url);
  page.setDefaultTimeout(30_000);
  return { page, context, problems, check: () => assert.deepEqual(problems, []) };
}

/** Changes what the page gets from a path of the server. A request on its way at the end of a test gets no answer. */
export function changeResponse(page, path, edit) {
  return page.route(path, async (route) => {
    const response = await route.fetch().catch(() => null);
    if (response === null) return;
    const json = await response.json();
    await edit(json);
    await route.fulfill({ response, json });
  });
}

/** Logs in with a link, and goes to a path. */
export async function logIn(browser, served, path = "/", options = {}) {
  const opened = await openPage(browser, served.login, options);
  await opened.page.getByRole("navigation").first().waitFor();
  if (path !== "/") await opened.page.goto(served.url + path);
  return opened;
}

/** Prints a link for another person, and logs in with it. */
export async function logInAs(browser, project, served, role, path = "/", options = {}) {
  const [{ login }] = project.json("serve", "invite", "bob", "--may", role);
  return logIn(browser, { ...served, login }, path, options);
}
