import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { claimRecord, claimRecords, takeOverRecords } from "./claim/claim-statements.ts";
import { COMPLETE_COLUMNS } from "./engine/record-sql.ts";

test("no statement returns a float8 or a time's text: both depend on session settings", () => {
  const files = readdirSync(import.meta.dirname, { recursive: true, encoding: "utf8" });
  const inexact = files
    .filter((file) => /(?<!\.test)\.ts$/.test(file))
    .flatMap((file) =>
      readFileSync(`${import.meta.dirname}/${file}`, "utf8")
        .split("\n")
        .filter((line) =>
          /date_part\(|(?<!\$\d+|\})::float8(?!\))|(?:_at|_from|hour|day|\.at)\)?::text/.test(line),
        )
        .map((line) => `${file}: ${line.trim()}`),
    );
  expect(inexact).toEqual([]);
});

test("a take-over sets every column that a claim inserts but the key and sweep_at", () => {
  const text = takeOverRecords.text.replaceAll(/\s+/g, " ");
  const inserted = /insert into records as r \((.*?)\)/.exec(text)?.[1]?.trim().split(", ") ?? [];
  const updates = text.slice(text.indexOf("do update set"), text.indexOf(" where ((r.state = 0"));
  const kept = inserted.filter((column) => !new RegExp(`[ ,]${column} = `).test(updates));
  expect(kept).toEqual(["tenant_id", "namespace", "key", "sweep_at"]);
});

test("a claim and a completion keep no attempts: they cost what they cost without", () => {
  for (const text of [claimRecord.text, claimRecords.text, COMPLETE_COLUMNS])
    expect(text).not.toContain("past_attempts");
});
