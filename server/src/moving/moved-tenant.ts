import * as v from "valibot";

// The lines in which a tenant moves to another installation: one JSON object each. The first describes the tenant, the last
// counts the others, so that an export that was cut off is recognised. Rows are texts of JSON, because a number of JSON in
// JavaScript holds no int64.

/** A line's longest size in bytes: the largest result and checkpoint in base64, attempts, and the other columns. */
export const MAX_LINE_BYTES = 8 * 1024 * 1024;

/** Tables whose rows move as they are, each after those that it refers to. */
export const PLAIN_TABLES = ["namespaces", "usage_hours", "api_keys"] as const;

/** Columns of a tenant that each installation sets itself. With the `uid` of another tenant, its cached results would be found. */
export const OWN_TENANT_COLUMNS = [
  "id",
  "uid",
  "moving_since",
  "moved_to",
  "deleted_at",
  "cache_generation",
  "version",
  "namespaces_version",
] as const;

/** The version of these lines. */
export const FORMAT = "onceward-tenant/1";

const isSafe = (token: string) => Number.isSafeInteger(Number(token));

const tenantLine = v.object({
  kind: v.literal("tenant"),
  format: v.literal(FORMAT, `the first line is not of the format ${FORMAT}`),
  name: v.string(),
  /** The newest migration: both installations need the same. */
  schemaVersion: v.string(),
  /** Equal marks mean equal peppers. */
  pepperMark: v.string(),
  /** A fencing token above every one that the tenant has, as a decimal number. */
  tokenFloor: v.pipe(v.string(), v.regex(/^\d{1,16}$/), v.check(isSafe, "a fencing token is below 2^53")),
  row: v.string(),
});

const plainLine = v.object({
  kind: v.literal("row"),
  table: v.picklist(PLAIN_TABLES),
  row: v.string(),
});

const base64 = v.nullable(v.pipe(v.string(), v.base64()));

const recordLine = v.object({
  kind: v.literal("record"),
  namespace: v.string(),
  key: v.string(),
  /** The columns that are never encrypted. */
  row: v.string(),
  /** The columns that may be encrypted, in plain form. */
  digest: base64,
  payload: base64,
  metadata: v.nullable(v.string()),
  checkpoint: base64,
});

const endLine = v.object({ kind: v.literal("end"), lines: v.number() });

const line = v.variant("kind", [tenantLine, plainLine, recordLine, endLine]);

/** The first line: the tenant itself. */
export type TenantLine = v.InferOutput<typeof tenantLine>;
/** A row that moves as it is. */
export type PlainLine = v.InferOutput<typeof plainLine>;
/** A record, in plain form: the other installation has other encryption keys. */
export type RecordLine = v.InferOutput<typeof recordLine>;
/** One line of a tenant on its way. */
export type MovedLine = v.InferOutput<typeof line>;

/** @throws Error that says what is wrong with the line, without its contents. */
export function parseLine(text: string): MovedLine {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new Error("a line is not JSON");
  }
  const { success, output, issues } = v.safeParse(line, json);
  if (success) return output;
  const [issue] = issues;
  throw new Error(`a line is malformed at ${v.getDotPath(issue) ?? "its top level"}`);
}
