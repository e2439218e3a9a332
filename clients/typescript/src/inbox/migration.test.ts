import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { INBOX_MIGRATION } from "./migration.ts";

// Programs in all languages share the tables.
test.each(["typescript/inbox.sql", "python/src/onceward/inbox.sql", "go/onceward/oncewardinbox/inbox.sql"])(
  "the constant is the text of clients/%s",
  async (file) => {
    expect(await readFile(new URL(`../../../${file}`, import.meta.url), "utf8")).toBe(INBOX_MIGRATION);
  },
);
