import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { MAX_ATTEMPTS_SHOWN, MAX_REASON_CHARACTERS } from "./core/domain/attempt.ts";
import {
  claimArrays,
  claimParameters,
  claimRecord,
  claimRecords,
  takeOverRecords,
} from "./core/store/records/claim-statements.ts";
import {
  FENCING_MARGIN_MS,
  MAX_INLINE_RESULT_BYTES,
  RECORD_SELECT,
  RESULT_KIND,
} from "./core/store/records/record-row.ts";
import { SWEPT_BY_NAMESPACE } from "./core/store/records/sweep-records.ts";
import { STORED_BYTES } from "./core/store/tenants/tenant-totals.ts";
import { SEALED_OVERHEAD_BYTES } from "./features/encryption/seal.ts";
import { MAX_EXAMINED_ROWS } from "./features/jobs/store/count-matching.ts";
import { FORGET_COLUMNS } from "./features/jobs/store/forget-records.ts";
import { MAX_EXAMINED_AMBIGUOUS } from "./features/jobs/store/list-ambiguous.ts";
import { FILTER_STATE, MAX_EXAMINED } from "./features/jobs/store/list-records.ts";

/** The folders with statements on records. */
const FOLDERS = [
  "core/store/records",
  "features/administration/store",
  "features/encryption",
  "features/jobs/store",
].map((folder) => `${import.meta.dirname}/${folder}`);

/** Files whose statements are on other tables. */
const ON_OTHER_TABLES = ["namespaces.ts", "record-jobs.ts", "remove-tenant.ts"];

/** The text of these folders' files, by path. */
const SOURCES = new Map(
  FOLDERS.flatMap((folder) =>
    readdirSync(folder)
      .filter((file) => /(?<!\.test)\.ts$/.test(file) && !ON_OTHER_TABLES.includes(file))
      .map((file) => [`${folder}/${file}`, readFileSync(`${folder}/${file}`, "utf8")] as const),
  ),
);

/** What is written once and is part of several statements. */
const SHARED: Readonly<Record<string, string>> = { RECORD_SELECT, FORGET_COLUMNS, SWEPT_BY_NAMESPACE };

/** The text of each statement in these files, by name, with its shared parts and a single space for each white space. */
const STATEMENTS = new Map(
  [...SOURCES.values()].flatMap((source) =>
    [...source.matchAll(/name: "(\w+)",\s+text: `([^`]*)`/g)].map(([, name = "", text = ""]) => [
      name,
      text
        .replaceAll(/\$\{(\w+)\}/g, (part, shared: string) => SHARED[shared] ?? part)
        .replaceAll(/\s+/g, " ")
        .trim(),
    ]),
  ),
);

function textOf(name: string): string {
  const text = STATEMENTS.get(name);
  if (text === undefined) throw new Error(`no statement ${name}`);
  return text;
}

/**
 * Returns the part of each text that a pattern's first group matches, with the statement's name. Skips other
 * texts.
 */
function partsMatching(pattern: RegExp): readonly (readonly [name: string, part: string])[] {
  return [...STATEMENTS].flatMap(([name, text]) =>
    [...text.matchAll(pattern)].map(([, part = ""]) => [name, part] as const),
  );
}

/** Expects that statements contain the same part, and returns it. */
function expectSamePart(pattern: RegExp, names: readonly string[]): string {
  const parts = partsMatching(pattern);
  expect(parts.map(([name]) => name).sort()).toEqual([...names].sort());
  const [[, first]] = parts as [readonly [string, string]];
  for (const part of parts) expect(part).toEqual([part[0], first]);
  return first;
}

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

const ASSEMBLED = ["preview_restamp", "restamp_records"];

test("all statements but those that restamp are whole texts", () => {
  expect(STATEMENTS.size).toBe([...SOURCES.values()].join().split("\n  text: ").length - 1);
  const assembled = [...STATEMENTS].filter(([, text]) => text.includes("${")).map(([name]) => name);
  expect(assembled.sort()).toEqual(ASSEMBLED);
});

test("numbers of states and kinds of results in SQL are those of their definitions", () => {
  const names = { ...FILTER_STATE, ...RESULT_KIND };
  const numbers = Object.fromEntries(
    Object.entries(names).map(([name, number]) => [
      name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`),
      number,
    ]),
  );
  const sql = [...SOURCES.values()].join("\n");
  const named = [...sql.matchAll(/(\d+) \/\* ([a-z ]+) \*\//g)].filter(
    ([, , name]) => name !== "fencing margin",
  );
  expect(named.length).toBeGreaterThan(35);
  for (const [, number, name = ""] of named) expect([name, Number(number)]).toEqual([name, numbers[name]]);
  expect(sql.match(/\b(state|result_kind) (=|<>) \d+(?! \/\*)|\bwhen \d+(?! \/\*)/g)).toBeNull();
});

test("the fencing margin in SQL is the defined one", () => {
  const margins = [...SOURCES.values()].flatMap((source) => [
    ...[...source.matchAll(/interval '(\d+) minutes'/g)].map(([, minutes]) => Number(minutes) * 60_000),
    ...[...source.matchAll(/(\d+) \/\* fencing margin \*\//g)].map(([, ms]) => Number(ms)),
  ]);
  expect(margins.length).toBeGreaterThan(8);
  expect(new Set(margins)).toEqual(new Set([FENCING_MARGIN_MS]));
});

test("limits in SQL are the defined ones", () => {
  const inline = partsMatching(/octet_length\(r\.result_metadata\), 0\) <= (\d+)/g);
  expect(inline).toEqual(
    ["read_records", "read_records", "lock_record", "lock_record"].map((name) => [
      name,
      String(MAX_INLINE_RESULT_BYTES),
    ]),
  );
  expect(textOf("scan_records")).toContain(` limit ${MAX_EXAMINED} )`);
  expect(textOf("scan_ambiguous_records")).toContain(` limit least(${MAX_EXAMINED_AMBIGUOUS}, `);
  expect(textOf("count_matching_ambiguous")).toContain(` limit ${MAX_EXAMINED_ROWS} )`);
});

test("the overhead of encryption in SQL is the defined one", () => {
  const overheads = partsMatching(/ - (?:case when r\.\w+_key_id is null then 0 else )?(\d+) end\b/g);
  expect(overheads.length).toBeGreaterThanOrEqual(8);
  for (const [, number] of overheads) expect(Number(number)).toBe(SEALED_OVERHEAD_BYTES);
  expect(STORED_BYTES.match(/\b28\b/g)).toHaveLength(3);
});

test("the claim statements insert the same columns with the same values", () => {
  const insert = /(insert into records as r .*?) on conflict \(tenant_id, namespace, key\)/;
  const [many, takeOver, one] = [claimRecords, takeOverRecords, claimRecord].map(
    ({ text }) => insert.exec(text.replaceAll(/\s+/g, " "))?.[1] ?? "",
  ) as [string, string, string];
  const isYoung = "i.accepted_until_ms is null or extract(epoch from now()) * 1000 < i.accepted_until_ms";
  const unconditional = many.replace(` where ${isYoung}`, "");
  expect(unconditional).not.toBe(many);
  // A claim leaves out a key that is too old. A take-over may still continue the life of its record.
  const state = "1 /* in progress */";
  expect(takeOver).toBe(
    unconditional.replace(state, `case when ${isYoung} then ${state} else 0 /* forgotten */ end`),
  );
  const inputs = expectSamePart(/(select unnest\(\$1[^"]* as claim_id, .*?) as i order by/g, [
    "claim_records",
    "take_over_records",
  ]);
  const parameters = Object.fromEntries(
    [...inputs.matchAll(/unnest\((\$\d+::\w+)\[\]\) as (\w+)/g)].map(([, parameter, name]) => [
      name,
      parameter,
    ]),
  );
  const clock = expectSamePart(/(greatest\(\(extract\(epoch from clock_timestamp.*?bigint\)) as token/g, [
    "claim_records",
    "take_over_records",
  ]);
  const single = unconditional
    .replaceAll(/\bi\.(?!ordinal)(\w+)/g, (_, name) => parameters[name] ?? "")
    .replace("(select token from clock)", clock)
    .replace("i.ordinal", "1")
    .replace(/ select (.*) from input i/, " values ($1)");
  expect(one).toBe(single);
});

test("a take-over sets every column that a claim inserts but the key and sweep_at", () => {
  const text = textOf("take_over_records");
  const inserted = /insert into records as r \((.*?)\)/.exec(text)?.[1]?.trim().split(", ") ?? [];
  const updates = text.slice(text.indexOf("do update set"), text.indexOf(" where ((r.state = 0"));
  const kept = inserted.filter((column) => !new RegExp(`[ ,]${column} = `).test(updates));
  expect(kept).toEqual(["tenant_id", "namespace", "key", "sweep_at"]);
});

test("many claims take the parameters of one claim, and until when each may begin a new life", () => {
  const command = {
    id: { tenantId: 1, namespace: "charges", key: "key" },
    fingerprint: undefined,
    claimId: "",
    owner: "",
    acceptAmbiguous: false,
    leaseMs: 1,
    onLeaseExpiry: "HOLD",
    keyRetentionS: 1,
    resultRetentionS: 1,
    failureRetentionS: 1,
    retentionInForceS: 1,
    keyCreatedAtMs: undefined,
    acceptedUntilMs: undefined,
  } as const;
  const highestOf = (text: string) =>
    Math.max(...[...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)));
  const [one, many] = [highestOf(claimRecord.text), highestOf(claimRecords.text)];
  expect([claimParameters(command, 0).length, claimArrays([command], 0).length]).toEqual([one, many]);
  expect(many).toBe(one + 1);
});

test("statements that settle a claim select it by the same condition", () => {
  const names = ["complete_records", "release_records", "extend_leases"];
  const condition = expectSamePart(
    / from input i where ((?:(?! returning).)*r\.fencing_token = i\.fencing_token and r\.state = 1 .*?) returning/g,
    names,
  );
  expect(condition).toContain("r.fencing_token = i.fencing_token and r.state = 1 ");
});

test("an administrator's resolution sets the columns that the batched operation sets", () => {
  const completed = / set (state = 2 .*?result_metadata = i\.result_metadata)/g;
  expectSamePart(completed, ["complete_records", "resolve_as_completed"]);
});

test("statements that end an attempt keep the same fields and as many attempts as are shown", () => {
  const names = ["take_over_records", "resolve_as_released", "resolve_as_completed"];
  expectSamePart(/jsonb_strip_nulls\(jsonb_object\( (array\['attempt'.*? 'reason')/g, names);
  expectSamePart(/ (array\[r\.attempt::text.*? r\.checkpoint_name,)/g, names);
  const limits = partsMatching(/jsonb_array_length\(r\.past_attempts\) >= (\d+)/g);
  expect(limits.map(([name]) => name).sort()).toEqual([...names].sort());
  expect(new Set(limits.map(([, limit]) => Number(limit)))).toEqual(new Set([MAX_ATTEMPTS_SHOWN]));
  const reasons = partsMatching(/left\([^,]+, (\d+)\)/g);
  expect(reasons.map(([name]) => name).sort()).toEqual([...names].sort());
  expect(new Set(reasons.map(([, length]) => Number(length)))).toEqual(new Set([MAX_REASON_CHARACTERS]));
});

test("a claim and a completion keep no attempts: they cost what they cost without", () => {
  const keeping = [...STATEMENTS].filter(([, text]) => text.includes("past_attempts")).map(([name]) => name);
  expect(keeping.sort()).toEqual(
    [
      ...["forget_record", "forget_records", "scan_ambiguous_records", "scan_records"],
      ...["read_past_attempts", "resolve_as_completed"],
      ...["resolve_as_released", "take_over_records"],
    ].sort(),
  );
});

test("statements on a page select the same page", () => {
  const names = ["forget_records", "remove_records", "restamp_records", "preview_restamp"];
  expectSamePart(/with page as materialized \( select [\w, ]+ (from .*?) \), /g, names);
});

test("sweep statements free the bytes that tenants' totals count", () => {
  const freed = expectSamePart(/returning r\.tenant_id, r\.namespace, (\(.*?\)) as freed_bytes/g, [
    "delete_ended_records",
    "delete_overdue_records",
  ]);
  expect(freed).toBe(STORED_BYTES.replaceAll(/\s+/g, " "));
});

test("statements that join rows by their keys have conditions for the primary key", () => {
  const joins = partsMatching(/r\.key = ([a-z])\.key/g);
  expect(joins.length).toBeGreaterThanOrEqual(10);
  for (const [name, input] of joins) {
    const text = textOf(name);
    expect(text, name).toContain(
      `r.tenant_id = ${input}.tenant_id and r.namespace = ${input}.namespace and r.key = ${input}.key and r.key >= ${input}.key`,
    );
    expect(text, name).toContain(`(${input}.tenant_id % 1, ${input}.tenant_id % -1) = (0, 0)`);
  }
});
