import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { INBOX_MIGRATION } from "./migration.ts";

test("the file and the constant are equal", async () => {
  expect(await readFile(new URL("../../inbox.sql", import.meta.url), "utf8")).toBe(INBOX_MIGRATION);
});
