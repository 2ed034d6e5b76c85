// Bundles the page into dist/: index.html, app.js.gz and app.css.gz.
//   node build.mjs            writes the files
//   node build.mjs --check    compares them with those that are there

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { gunzipSync, gzipSync } from "node:zlib";
import { build } from "esbuild";

const MAX_COMPRESSED_BYTES = 120 * 1024;
const GZIP_MTIME_START = 4;
const GZIP_SYSTEM = 9;
const UNKNOWN_SYSTEM = 255;

const page = new URL("./", import.meta.url);
const dist = new URL("dist/", page);

function compress(bytes) {
  const packed = gzipSync(bytes, { level: 9 });
  packed.writeUInt32LE(0, GZIP_MTIME_START);
  packed[GZIP_SYSTEM] = UNKNOWN_SYSTEM;
  return packed;
}

async function bundle(entry) {
  const result = await build({
    absWorkingDir: page.pathname,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: ["es2022"],
    charset: "utf8",
    legalComments: "none",
    define: { "process.env.NODE_ENV": '"production"' },
    logLevel: "warning",
  });
  return result.outputFiles[0].contents;
}

const [script, style, index] = await Promise.all([
  bundle("src/main.tsx"),
  bundle("src/styles/app.css"),
  readFile(new URL("src/index.html", page)),
]);
const files = { "index.html": index, "app.js.gz": compress(script), "app.css.gz": compress(style) };
let total = 0;
for (const bytes of Object.values(files)) total += bytes.length;
if (total > MAX_COMPRESSED_BYTES) {
  console.error(`the page has ${total} bytes; at most ${MAX_COMPRESSED_BYTES} are allowed`);
  process.exit(1);
}
if (process.argv.includes("--check")) await checkFiles();
else await writeFiles();

async function writeFiles() {
  await mkdir(dist, { recursive: true });
  for (const [name, bytes] of Object.entries(files)) {
    await writeFile(new URL(name, dist), bytes);
    console.log(`${name}: ${bytes.length} bytes`);
  }
}

/** Compares the contents. Compressed bytes differ between versions of the library that compresses. */
async function checkFiles() {
  for (const [name, bytes] of Object.entries(files)) {
    const content = name.endsWith(".gz") ? gunzipSync : (same) => same;
    const written = await readFile(new URL(name, dist)).catch(() => Buffer.alloc(0));
    const isSame = written.length > 0 && Buffer.compare(content(written), content(bytes)) === 0;
    if (!isSame) {
      console.error(`dist/${name} is out of date; \`scripts/page build\` writes it`);
      process.exitCode = 1;
    }
  }
}
