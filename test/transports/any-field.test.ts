import { type DescMessage, fromJsonString } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  callsOf,
  createCaller,
  expectDefinite,
  type HostileAnswer,
  type HostileCall,
  type HostileCaller,
  RPCS,
} from "../support/attacks/hostile-calls.ts";
import {
  apart,
  type Change,
  type FieldPath,
  fieldPaths,
  nameOf,
  requestWith,
} from "../support/attacks/hostile-requests.ts";
import { hostileFields } from "../support/attacks/hostile-values.ts";
import { useTarget } from "../support/attacks/hostility.ts";
import { runRecordJobs } from "../support/database/jobs.ts";
import { statementsDuring } from "../support/database/statements.ts";
import { openSession } from "../support/network/open-session.ts";

/** Calls in flight at once. */
const AT_ONCE = 16;
/** Requests of each RPC with several invalid fields. */
const COMBINATIONS = 8;

// On a busy machine, these requests may be slow.
const target = useTarget({ ONCEWARD_REQUEST_TIMEOUT: "30s" });

/** A request with one invalid field, and its answer. */
interface Outcome extends Change {
  readonly call: HostileCall;
  readonly answer: HostileAnswer;
}

/** Sets every field to every hostile value, one at a time, and leaves it out. */
async function sendEach(caller: HostileCaller, desc: DescMessage): Promise<readonly Outcome[]> {
  const changes = fieldPaths(desc).flatMap((path): Change[] => {
    const field = path.at(-1);
    const sets = field === undefined ? [] : hostileFields(field);
    return [{ path, set: undefined }, ...sets.map((set) => ({ path, set }))];
  });
  const calls = changes.flatMap((change) =>
    callsOf(requestWith(desc, caller, [change])).map((call) => ({ change, call })),
  );
  return inParallel(calls, async ({ change, call }) => ({
    ...change,
    call,
    answer: await caller.call(call),
  }));
}

async function inParallel<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  let next = 0;
  const worker = async () => {
    for (let at = next++; at < items.length; at = next++) results[at] = await work(items[at] as Item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}

/**
 * Whether a refusal's field is this field, or contains it, or is contained in it. The path of a resource's
 * field begins at the resource, as in its update mask, and that of a batch's item at the item's request.
 */
function means(refused: string, path: FieldPath): boolean {
  return path.some((_field, from) => {
    const name = nameOf(path.slice(from));
    const oneof = path
      .map(({ oneof, name }) => oneof?.name ?? name)
      .slice(from)
      .join(".");
    return [name, oneof].some(
      (named) => named === refused || named.startsWith(`${refused}.`) || refused.startsWith(`${named}.`),
    );
  });
}

/** Whether a request can't be parsed: a refusal names no field, or of JSON only the first one that can't. */
function isUnreadable(desc: DescMessage, { call, answer }: Outcome): boolean {
  if (answer.fields.includes("message")) return true;
  if (call.format !== "json") return false;
  try {
    fromJsonString(desc, call.body.toString());
    return false;
  } catch {
    return true;
  }
}

/** The statement that reads the credential. */
const AUTHENTICATION = ["read_api_keys", "read_tenants", "read_namespaces"];
/** Only the database's clock decides whether it has passed. */
const JUDGED_BY_THE_DATABASE = "api_key.expires_at";

describe.each(RPCS)("%s", (_title, method) => {
  test("every value of every field gets an answer of the catalogue; a refusal names it", {
    timeout: 60_000,
  }, async () => {
    const caller = await createCaller(target, await openSession(target.server.grpcPort), method);
    const outcomes = await sendEach(caller, method.input);
    for (const { path, call, answer } of outcomes) {
      const told = `${nameOf(path)} in ${call.body.toString("latin1").slice(0, 300)}: ${JSON.stringify(answer)}`;
      expect(() => expectDefinite(answer), told).not.toThrow();
      const names = answer.fields.filter((name) => name !== "message");
      expect(
        names.every((name) => means(name.replace(/\[\d+\]/g, ""), path)),
        told,
      ).toBe(true);
    }
    const refused = outcomes.filter((outcome) => isInvalid(method.input, outcome));
    await expectNoStatements(caller, refused);
    await expectAllAtOnce(caller, method.input, refused);
    await target.expectUnharmed();
  });
});

/** Whether a field was the reason of the refusal. */
function isInvalid(desc: DescMessage, outcome: Outcome): boolean {
  const { reason, fields } = outcome.answer;
  return (
    reason === "INVALID_REQUEST" && !fields.includes(JUDGED_BY_THE_DATABASE) && !isUnreadable(desc, outcome)
  );
}

/** Bad input never reaches the database. */
async function expectNoStatements(caller: HostileCaller, refused: readonly Outcome[]): Promise<void> {
  // Jobs that valid requests began examine records.
  await runRecordJobs(target.database);
  const statements = await statementsDuring(target.server, () =>
    inParallel(refused, ({ call }) => caller.call(call)),
  );
  expect(Object.keys(statements).filter((name) => !AUTHENTICATION.includes(name))).toEqual([]);
}

/** A refusal names all invalid fields. */
async function expectAllAtOnce(
  caller: HostileCaller,
  desc: DescMessage,
  refused: readonly Outcome[],
): Promise<void> {
  for (const ofFormat of Map.groupBy(refused, ({ call }) => call.format).values()) {
    const several = fc.shuffledSubarray(ofFormat, { minLength: 1, maxLength: Math.min(20, ofFormat.length) });
    await fc.assert(
      fc.asyncProperty(several.map(apart), async (some) => {
        const together = requestWith(desc, caller, some);
        const [call] = callsOf(together).filter(({ format }) => format === some[0]?.call.format);
        const { fields } = await caller.call(call as HostileCall);
        expect(fields).toEqual(expect.arrayContaining(some.flatMap(({ answer }) => answer.fields)));
      }),
      { numRuns: COMBINATIONS },
    );
  }
}
