import { execFile } from "node:child_process";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { expect, test } from "vitest";
import { publishProblems, typeProblems } from "../../deploy/release/checks/package-problems.ts";
import { entriesOf, expectEveryEntryWorks, importsOf } from "../support/packages/entries.ts";
import { findNodes, linkPackages, typeErrors, usePackedClient } from "../support/packages/packed-client.ts";

const run = promisify(execFile);
const LOAD_TIMEOUT_MS = 120_000;

const packed = usePackedClient();

test("publint finds no problem in the package", async () => {
  expect(await publishProblems(packed().tarball)).toEqual([]);
});

test("every entry has its types", async () => {
  expect(await typeProblems(packed().tarball)).toEqual([]);
});

test("the package contains only published files, and declares the packages that it imports", async () => {
  const { manifest, project } = packed();
  const home = join(project, "node_modules/@onceward/client");
  expect((await readdir(home)).sort()).toEqual([
    "LICENSE",
    "README.md",
    "api.md",
    "dist",
    "guides",
    "inbox.sql",
    "package.json",
  ]);
  const declared = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies });
  const imported = new Set<string>();
  for (const file of await readdir(join(home, "dist"), { recursive: true })) {
    if (!/\.(js|d\.ts)$/.test(file)) continue;
    for (const [, name = ""] of (await readFile(join(home, "dist", file), "utf8")).matchAll(IMPORT))
      imported.add(name);
  }
  expect([...imported].filter((name) => !declared.includes(name)).sort()).toEqual([]);
});

/**
 * The package of an import that is neither a file's, nor of `imports` in package.json, nor Node's; comments with examples begin
 * with an asterisk.
 */
const IMPORT = /^(?!\s*\*).*\bfrom "((?!\.|#|node:)(?:@[^/"]+\/)?[^/"]+)/gm;

test("entries without a framework type-check without Node's types and with an old library", async () => {
  const { project } = packed();
  const entries = ["", "/web", "/http", "/webhooks", "/inbox"];
  await writeFile(join(project, "bare.ts"), importsOf(entries));
  expect(await typeErrors(project, "bare.ts", ["--types", ""])).toEqual([]);
});

test.each([
  ["node16", "node16"],
  ["preserve", "bundler"],
])(
  "with module %s every entry type-checks without the library of browsers",
  async (module, moduleResolution) => {
    const { manifest, project } = packed();
    await linkPackages(project, [...Object.keys(manifest.peerDependencies), "@types/express", "@types/node"]);
    await writeFile(join(project, "lean.ts"), importsOf(entriesOf(manifest)));
    const options = ["--lib", "es2023,esnext.disposable", "--types", "node"];
    const modules = ["--module", module, "--moduleResolution", moduleResolution];
    const errors = await typeErrors(project, "lean.ts", [...options, ...modules]);
    // Declarations of some frameworks name types that only that library has: hence skipLibCheck in the README.
    expect(errors.filter((line) => /^lean\.ts|@onceward\/client/.test(line))).toEqual([]);
  },
);

test("a CommonJS program requires the client, with its types, on every Node that is here", async () => {
  const { project } = packed();
  await linkPackages(project, ["@types/node"]);
  await writeFile(join(project, "typed.cts"), `import client = require("@onceward/client");\n${REQUIRED}`);
  expect(await typeErrors(project, "typed.cts", ["--types", "node"])).toEqual([]);
  await writeFile(
    join(project, "plain.cjs"),
    `const client = require("@onceward/client");\nrequire("@onceward/client/express");\n${REQUIRED}`,
  );
  for (const [version, node] of await findNodes()) {
    const { stdout, stderr } = await run(node, ["plain.cjs"], { cwd: project, timeout: LOAD_TIMEOUT_MS });
    expect([version, stdout, stderr]).toEqual([version, "function GUARD_OFF\n", ""]);
  }
});

test("no CommonJS file names the folders that it was built from", async () => {
  const home = join(packed().project, "node_modules/@onceward/client/dist/cjs");
  const files = (await readdir(home, { recursive: true })).filter((name) => name.endsWith(".cjs"));
  expect(files.length).toBeGreaterThan(20);
  for (const file of files)
    expect(await readFile(join(home, file), "utf8"), file).not.toContain("node_modules/");
});

/** A program that makes a call, and prints its error. */
const REQUIRED = `
process.emitWarning = () => {};
const onceward = client.createOnceward({ guard: "off-in-development" });
onceward.calls.lookup({ namespace: "a", key: "b" }).catch((error) => {
  console.log(typeof client.joinKey, error.reason);
});
`;

test("the root loads neither Connect nor HTTP/2: these load with the first connection", async () => {
  const { project } = packed();
  await writeFile(join(project, "count.js"), COUNT);
  const { stdout } = await run(process.execPath, ["count.js"], { cwd: project, timeout: LOAD_TIMEOUT_MS });
  const modules: string[] = JSON.parse(stdout);
  expect(modules.filter((module) => /@connectrpc|node:http|node:tls/.test(module))).toEqual([]);
  // 132 when this was written; half of them are Protobuf's.
  expect(modules.length).toBeLessThan(140);
});

/**
 * Largest bundles with all that they import, compressed. The root with Connect and Protobuf: 56,990 when this was written. `./http`
 * without the transport: 34,175.
 */
const MAX_BUNDLE_BYTES = { "index.js": 57_700, "http.js": 34_500 };

test.each(Object.entries(MAX_BUNDLE_BYTES))(
  "a bundle of the whole of %s is small",
  async (file, maxBytes) => {
    const bundle = await rolldown({
      input: join(packed().project, "node_modules/@onceward/client/dist", file),
      platform: "node",
    });
    const { output } = await bundle.generate({ format: "esm", minify: true });
    await bundle.close();
    const sizes = output.map((chunk) => (chunk.type === "chunk" ? gzipSync(chunk.code).byteLength : 0));
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(maxBytes);
  },
);

const COUNT = `
import { registerHooks } from "node:module";
const modules = [];
registerHooks({ load: (url, context, next) => (modules.push(url), next(url, context)) });
await import("@onceward/client");
console.log(JSON.stringify(modules));
`;

test("beside the newest majors of frameworks, every entry type-checks and loads on every Node", async () => {
  await expectEveryEntryWorks(packed());
});
