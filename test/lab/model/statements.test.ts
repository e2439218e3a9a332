import { readdir, readFile } from "node:fs/promises";
import { expect, test } from "vitest";

const SERVER = new URL("../../../server/src/", import.meta.url);

/** Statements that the model leaves out: they read, and decide nothing. */
const LEFT_OUT = new Set([
  // It counts the rows that the next statements of the sweep examine again.
  "find_due_records",
  // It wakes calls that wait, which then claim as others do.
  "find_resolved_records",
]);

/** Statements of administrators that change records: files of `admin`. */
const ADMINISTRATION = [
  "records/forget-records.ts",
  "records/resolve-record.ts",
  "jobs/restamp-records.ts",
].map((file) => new URL(`admin/${file}`, SERVER));
/** They lock or preview, raise the generation of cached copies, or delete rows of a tenant that claims no more. */
const NOT_THE_PROTOCOLS = new Set([
  "lock_record",
  "raise_cache_generation",
  "remove_records",
  "preview_restamp",
]);

test("each statement on records is an action of the model, by its name", async () => {
  const records = new URL("records/", SERVER);
  const files = (await readdir(records, { recursive: true }))
    .filter((file) => /(?<!\.test)\.ts$/.test(file))
    .map((file) => new URL(file, records));
  const callers = (await namesIn(files)).filter((name) => !LEFT_OUT.has(name));
  const administrators = (await namesIn(ADMINISTRATION)).filter((name) => !NOT_THE_PROTOCOLS.has(name));
  const protocol = await readFile(new URL("protocol.qnt", import.meta.url), "utf8");
  // Events around the statements have names in camel case.
  const actions = [...protocol.matchAll(/^ {2}action ([a-z]+(?:_[a-z]+)+)/gm)].map(([, name]) => name);
  expect(actions.sort()).toEqual([...callers, ...administrators].sort());
});

async function namesIn(files: readonly URL[]): Promise<string[]> {
  const sources = await Promise.all(files.map((file) => readFile(file, "utf8")));
  return sources.flatMap((source) =>
    [...source.matchAll(/^ {2}name: "(\w+)",$/gm)].map(([, name]) => name as string),
  );
}
