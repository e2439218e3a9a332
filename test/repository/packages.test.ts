import { readFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { type Lock, productionPackages } from "../../deploy/release/sbom.ts";

const lockfile = new URL("../../package-lock.json", import.meta.url);
const { packages: lock } = JSON.parse(readFileSync(lockfile, "utf8")) as { packages: Lock };

test("the command line installs the client, commander and a parser of YAML, and nothing else", () => {
  const names = (workspace: string) =>
    [...productionPackages(lock, workspace).values()].map(({ name }) => name);
  const client = names("clients/typescript");
  const own = names("clients/cli").filter((name) => !client.includes(name));
  expect(own.sort()).toEqual(["@onceward/cli", "commander", "yaml"]);
});

test("every export of the client has a row in its README, and a test that imports it", async () => {
  const client = fileURLToPath(new URL("../../clients/typescript/", import.meta.url));
  const { exports } = JSON.parse(await readFile(join(client, "package.json"), "utf8")) as { exports: object };
  // An SQL file is copied, not imported; the package's root is in every test of the client.
  const names = Object.keys(exports).flatMap((path) => /^\.\/([\w-]+)$/.exec(path)?.[1] ?? []);
  const readme = await readFile(join(client, "README.md"), "utf8");
  const imports = await importsOfTests();
  const inRow = (name: string) => readme.includes(`[\`@onceward/client/${name}\`](src/${name}.ts)`);
  const isImported = (name: string) =>
    imports.has(`/src/${name}.ts`) || imports.has(`@onceward/client/${name}`);
  expect(names.length).toBeGreaterThan(20);
  expect({
    withoutRow: names.filter((name) => !inRow(name)),
    withoutTest: names.filter((name) => !isImported(name)),
  }).toEqual({ withoutRow: [], withoutTest: [] });
});

/** Returns what the tests and their helpers import: packages' names, and paths from `/src/` on within the client. */
async function importsOfTests(): Promise<ReadonlySet<string>> {
  const root = fileURLToPath(new URL("../", import.meta.url));
  const files = (await readdir(root, { recursive: true })).filter(
    (name) => name.endsWith(".ts") && !name.includes("node_modules"),
  );
  const texts = await Promise.all(files.map((name) => readFile(join(root, name), "utf8")));
  const imported = texts.join("\n").matchAll(/\bfrom "(?:[./]+clients\/typescript(?=\/src\/))?([^"]+)"/g);
  return new Set([...imported].map(([, path = ""]) => path));
}
