import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { RecordMessage } from "@onceward/client/proto";
import { csvLine, parseCsv } from "./csv.ts";

/** More would be a file that no spreadsheet opens well; the server has 1,000 records on a page. */
export const MAX_RECONCILED = 10_000;
/** Enough for as many keys of the greatest length, without their other columns. */
export const MAX_ANSWERS_BYTES = 3 * 1_024 * 1_024;

/** The answer about one key. */
export interface Answer {
  /** In the file. */
  readonly line: number;
  /** Empty: the file does not say. */
  readonly namespace: string;
  readonly key: string;
  readonly happened: boolean;
  /** JSON for the duplicates of this key; empty: they get the result that is given for all. */
  readonly result: string;
}

/** What a file says. */
export interface Answers {
  readonly answers: readonly Answer[];
  /** Those without an answer yet. */
  readonly open: readonly Pick<Answer, "namespace" | "key">[];
  /** What cannot be read, by line. A file with problems is not used at all. */
  readonly problems: readonly string[];
}

const QUESTION = "happened?";
const YES = new Set(["yes", "y", "true", "1"]);
const NO = new Set(["no", "n", "false", "0"]);

/**
 * Returns the file of keys to reconcile: a person fills in the column "happened?" with yes or no, and "result" where
 * results differ, and imports it.
 */
export function reconciliationFile(
  records: readonly RecordMessage[],
  links: ReadonlyMap<string, string>,
): string {
  const lines = records.map((record) => {
    const { namespace, key, owner, checkpoint, leaseExpiresAt } = record;
    const since = leaseExpiresAt === undefined ? "" : timestampDate(leaseExpiresAt).toISOString();
    const link = lookupHref(links.get(namespace), record) ?? "";
    return [key, "", "", namespace, owner, checkpoint?.name ?? "", since, link];
  });
  const head = ["key", QUESTION, "result", "namespace", "owner", "checkpoint", "ambiguous_since", "provider"];
  return [head, ...lines].map(csvLine).join("");
}

/** Reads the answers of a file with the columns "key" and "happened?", and "result" and "namespace" if it has them. */
export function readAnswers(text: string): Answers {
  const [head, ...rows] = parseCsv(text);
  const names = head?.cells.map((cell) => cell.trim().toLowerCase()) ?? [];
  const [keyAt, happenedAt, namespaceAt, resultAt] = [
    names.indexOf("key"),
    names.findIndex((name) => name === QUESTION || name === "happened"),
    names.indexOf("namespace"),
    names.indexOf("result"),
  ] as const;
  if (keyAt < 0 || happenedAt < 0)
    return { answers: [], open: [], problems: [`Line 1 has to name the columns "key" and "${QUESTION}".`] };
  if (rows.length > MAX_RECONCILED)
    return {
      answers: [],
      open: [],
      problems: [`At most ${MAX_RECONCILED} keys; this file has ${rows.length}.`],
    };
  const problems: string[] = [];
  const seen = new Map<string, Answer>();
  const open: Pick<Answer, "namespace" | "key">[] = [];
  for (const { line, cells } of rows) {
    const answer = (cells[happenedAt] ?? "").trim().toLowerCase();
    const key = cells[keyAt] ?? "";
    const namespace = (cells[namespaceAt] ?? "").trim();
    const result = (cells[resultAt] ?? "").trim();
    const name = JSON.stringify([namespace, key]);
    const before = seen.get(name);
    if (key === "") problems.push(`Line ${line}, column "key": empty.`);
    else if (answer === "") open.push({ namespace, key });
    else if (!YES.has(answer) && !NO.has(answer))
      problems.push(`Line ${line}, column "${QUESTION}": "${answer.slice(0, 40)}" is not yes or no.`);
    else if (before !== undefined)
      problems.push(`Line ${line}, column "key": the key of line ${before.line} again.`);
    else if (result !== "" && !(YES.has(answer) && isJson(result)))
      problems.push(`Line ${line}, column "result": JSON, and only beside yes.`);
    else seen.set(name, { line, namespace, key, happened: YES.has(answer), result });
  }
  return { answers: [...seen.values()], open, problems };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** A record with the answer about it. */
export interface Answered extends Pick<Answer, "happened" | "result"> {
  readonly record: RecordMessage;
}

/** What answers do to the ambiguous records. */
export interface Matched {
  readonly answered: readonly Answered[];
  /** Answers about keys that are not ambiguous. */
  readonly settled: readonly Answer[];
  /** Answers without a namespace about keys that several namespaces have. */
  readonly unclear: readonly Answer[];
}

/** Finds the record of each answer among the ambiguous ones. */
export function matchAnswers(answers: readonly Answer[], records: readonly RecordMessage[]): Matched {
  const byKey = new Map<string, RecordMessage[]>();
  for (const record of records) byKey.set(record.key, [...(byKey.get(record.key) ?? []), record]);
  const matched = answers.map((answer) => ({
    answer,
    found: (byKey.get(answer.key) ?? []).filter(
      ({ namespace }) => answer.namespace === "" || answer.namespace === namespace,
    ),
  }));
  return {
    answered: matched.flatMap(({ answer: { happened, result }, found: [record, ...others] }) =>
      record === undefined || others.length > 0 ? [] : [{ record, happened, result }],
    ),
    settled: matched.flatMap(({ answer, found }) => (found.length === 0 ? [answer] : [])),
    unclear: matched.flatMap(({ answer, found }) => (found.length > 1 ? [answer] : [])),
  };
}

/** Returns the address at the provider for a record, of a policy's template; undefined without one. The server allows only https. */
export function lookupHref(
  template: string | undefined,
  { key, owner }: Pick<RecordMessage, "key" | "owner">,
): string | undefined {
  if (template === undefined || !template.startsWith("https://")) return undefined;
  const values: Readonly<Record<string, string>> = { "{key}": key, "{owner}": owner };
  return template.replace(/\{(?:key|owner)\}/g, (name) => encodeURIComponent(values[name] ?? ""));
}
