import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { readWay } from "../tools/generate/way/way-table.ts";

/**
 * A newcomer reads these files to understand one call: a change may take files away, and adds one only for a promise of the
 * contract. `npm run check` fails if the list is not the way of a real call, and if that looks its policy up twice.
 */
const MAX_FILES = 37;

const way = readWay(await readFile(new URL("../../server/README.md", import.meta.url), "utf8"));

test("a granted Claim runs through a bounded number of files", () => {
  expect(way.length).toBeGreaterThan(20);
  expect(way.length).toBeLessThanOrEqual(MAX_FILES);
});
