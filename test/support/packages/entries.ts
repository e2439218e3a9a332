import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "vitest";
import { findNodes, linkPackages, type Manifest, type PackedClient, typeErrors } from "./packed-client.ts";

const run = promisify(execFile);
const LOAD_TIMEOUT_MS = 120_000;

/** Returns the entries of the client that are code, such as "/http"; "" is the root. */
export function entriesOf({ exports }: Manifest): readonly string[] {
  const code = Object.entries(exports).filter(([, target]) => typeof target !== "string");
  return code.map(([entry]) => entry.slice(1));
}

/** Returns a program that imports these entries. */
export function importsOf(entries: readonly string[]): string {
  const lines = entries.map((entry, index) => `export * as entry${index} from "@onceward/client${entry}";`);
  return `${lines.join("\n")}\n`;
}

/**
 * Expects that every entry type-checks, and loads on every Node in the PATH, beside the frameworks that it works with.
 *
 * @param folders where a framework lies that is not the one of `node_modules`, by its name.
 */
export async function expectEveryEntryWorks(
  { manifest, project }: PackedClient,
  folders: Readonly<Record<string, string>> = {},
): Promise<void> {
  const entries = entriesOf(manifest);
  await linkPackages(project, [...Object.keys(manifest.peerDependencies), "@types/node"], folders);
  await writeFile(join(project, "every.ts"), importsOf(entries));
  const errors = await typeErrors(project, "every.ts", ["--types", "node"]);
  // Those of the frameworks' own declarations are theirs.
  expect(errors.filter((line) => /^every\.ts|@onceward\/client/.test(line))).toEqual([]);

  await writeFile(join(project, "every.js"), importsOf(entries));
  for (const node of (await findNodes()).values()) {
    expect(await run(node, ["every.js"], { cwd: project, timeout: LOAD_TIMEOUT_MS })).toEqual({
      stdout: "",
      stderr: "",
    });
  }
}
