import { createReadStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import type { TenantAdmin } from "@onceward/client/admin";
import { ListRecordsRequest_Order, Record_State, type RecordMessage } from "@onceward/client/proto";
import {
  type Answered,
  type Answers,
  MAX_ANSWERS_BYTES,
  type Matched,
  matchAnswers,
  readAnswers,
  reconciliationFile,
} from "#words/answers";
import { readText } from "./bounded-text.ts";
import { confirm } from "./confirm.ts";
import { EXIT, messageOf, Outcome, ServiceFailure, UsageError } from "./failure.ts";
import type { Host } from "./host.ts";
import { collectPages } from "./pages.ts";
import { readResolution, resolutionMessage } from "./resolution.ts";
import type { ResolveMatchingOptions } from "./resolve-matching.ts";
import { asFailure, type Session } from "./session.ts";
import { renderFacts } from "./table.ts";

/** Calls at a time: decisions must not use up the tenant's rate of calls. */
const PARALLEL = 4;
/** Problems of a file that are shown; a file with more is probably another one. */
const SHOWN = 10;
/** Why a record is left alone: it was claimed, resolved or completed, or has ended, since it was read. */
const CHANGED = new Set(["CLAIM_SUPERSEDED", "ALREADY_COMPLETED", "RECORD_NOT_FOUND"]);

/**
 * Writes the file in which a person says which effects happened, readable by its owner only. It is a file, and not the output, which
 * shows some characters of keys as U+FFFD. @throws UsageError if it exists, because it may hold answers, or can't be written.
 */
export async function writeKeys(
  file: string,
  records: readonly RecordMessage[],
  links: ReadonlyMap<string, string>,
): Promise<void> {
  const options = { flag: "wx", mode: 0o600 } as const;
  await writeFile(file, reconciliationFile(records, links), options).catch((error) => {
    throw new UsageError(`--csv: ${messageOf(error)}.`);
  });
}

/**
 * Resolves the ambiguous records that a file of answers names: completes those whose effect happened, and releases the others, or
 * forgets them with `--forget`, each only if its newest claim is still the one that was read. Shows the numbers and asks first; with
 * `--dry-run`, only shows them.
 */
export async function resolveAnswers(
  session: Session<TenantAdmin>,
  host: Host,
  namespace: string | undefined,
  file: string,
  options: ResolveMatchingOptions,
): Promise<void> {
  const { output } = session;
  const { expect, dryRun, reason, forget, release, ...results } = options;
  if (forget && release) throw new UsageError("Give --release or --forget for what did not happen.");
  const undone = forget ? ("forget" as const) : ("release" as const);
  const answers = await readFileOf(host, file);
  const matched = matchAnswers(answers.answers, await findAmbiguous(session, namespace, answers));
  const { answered } = matched;
  const happened = answered.filter((each) => each.happened).length;
  const needsResult = answered.some((each) => each.happened && each.result === "");
  const notHappened = answered.length - happened;
  const numbers = { complete: happened, [undone]: notHappened, ...skippedOf(answers, matched) };
  if (dryRun || answered.length === 0) {
    return output.value(numbers, () => `${describeNumbers(numbers)}Nothing was changed.\n`);
  }
  if (expect !== undefined && expect !== answered.length) {
    throw new Outcome(EXIT.refused, `${answered.length} records match, and --expect is ${expect}.`);
  }
  const isGiven = results.complete !== undefined || results.failure !== undefined;
  if (needsResult && !isGiven) {
    throw new UsageError(
      `${happened} effects happened: give --complete or --failure, the result that their duplicates get, or fill in the column "result".`,
    );
  }
  const shared = needsResult ? await readResolution(results) : undefined;
  const completionOf = async ({ result }: Answered) =>
    (result === "" && shared) ||
    (await readResolution({ ...results, [results.failure === undefined ? "complete" : "failure"]: result }));
  const where = namespace === undefined ? "" : ` in ${namespace}`;
  const question = `Complete ${happened} and ${undone} ${notHappened} ambiguous records${where}?`;
  await confirm(session, options, { effect: describeNumbers(numbers), question });
  const changed = await resolveEach(session, answered, async (each) => ({
    resolution: resolutionMessage(each.happened ? await completionOf(each) : { case: undone }),
    reason,
  }));
  const resolved = answered.length - changed.length;
  output.value({ ...numbers, resolved, changedMeanwhile: changed.map(nameOf) }, () =>
    [
      `Resolved ${resolved} records; every replica follows within 10 s.\n`,
      ...changed.map((each) => `Not resolved, because it changed meanwhile: ${nameOf(each)}\n`),
    ].join(""),
  );
}

/** Reads the answers. @throws UsageError with each line and column that can't be read. */
async function readFileOf(host: Host, file: string): Promise<Answers> {
  const isInput = file === "-";
  const text = isInput
    ? await host.readInput(MAX_ANSWERS_BYTES)
    : await readText(file, createReadStream(file), MAX_ANSWERS_BYTES).catch((error) => {
        throw error instanceof UsageError ? error : new UsageError(`--answers: ${messageOf(error)}.`);
      });
  const name = isInput ? "Standard input" : file;
  if (text.trim() === "") throw new UsageError(`${name} has no answers.`);
  const answers = readAnswers(text);
  const { problems } = answers;
  if (problems.length === 0) return answers;
  const more = problems.length > SHOWN ? [`and ${problems.length - SHOWN} more`] : [];
  const lines = [`${name} can't be used; nothing was changed.`, ...problems.slice(0, SHOWN), ...more];
  throw new UsageError(lines.join("\n"));
}

/** Returns the ambiguous records whose keys have answers. */
async function findAmbiguous(
  { client, call }: Session<TenantAdmin>,
  namespace: string | undefined,
  { answers }: Answers,
): Promise<readonly RecordMessage[]> {
  const keys = new Set(answers.map(({ key }) => key));
  const filter = {
    namespace: namespace ?? "",
    state: Record_State.AMBIGUOUS,
    order: ListRecordsRequest_Order.LEASE_EXPIRY,
  };
  const { items } = await collectPages(Number.MAX_SAFE_INTEGER, "records", async (page) => {
    const { records, nextPageToken } = await client.listRecords({ ...filter, ...page }, call);
    return { records: records.filter(({ key }) => keys.has(key)), nextPageToken };
  });
  return items;
}

/** Resolves records. Resolves with those that changed since they were read; any other error ends it. */
async function resolveEach(
  { client, call, output }: Session<TenantAdmin>,
  answered: readonly Answered[],
  requestOf: (
    each: Answered,
  ) => Promise<Pick<Parameters<TenantAdmin["resolveRecord"]>[0], "resolution" | "reason">>,
): Promise<readonly Answered[]> {
  const waiting = answered.values();
  const changed: Answered[] = [];
  const failures: unknown[] = [];
  let resolved = 0;
  async function work(): Promise<void> {
    for (const each of waiting) {
      if (failures.length > 0) return;
      const { namespace, key, fencingToken } = each.record;
      try {
        await client.resolveRecord({ ...(await requestOf(each)), namespace, key, fencingToken }, call);
        resolved += 1;
      } catch (error) {
        const failure = await asFailure(error, "");
        const isChanged = failure instanceof ServiceFailure && CHANGED.has(failure.cause.reason);
        (isChanged ? changed : failures).push(isChanged ? each : error);
      }
    }
  }
  await Promise.all(Array.from({ length: PARALLEL }, work));
  if (failures.length === 0) return changed;
  output.remark(
    `Resolved ${resolved} of ${answered.length} records. The same command resolves the others.\n`,
  );
  throw failures[0];
}

/** The answers that change nothing, by why. */
function skippedOf({ open }: Answers, { settled, unclear }: Matched) {
  return { unanswered: open.length, notAmbiguous: settled.length, inSeveralNamespaces: unclear.length };
}

function describeNumbers(numbers: Readonly<Record<string, number>>): string {
  const { complete, release, forget, unanswered = 0, notAmbiguous = 0, inSeveralNamespaces = 0 } = numbers;
  const skipped = [
    ["skipped: no answer", unanswered],
    ["skipped: not ambiguous", notAmbiguous],
    ["skipped: in several namespaces; name one", inSeveralNamespaces],
  ] as const;
  return renderFacts([
    ["happened: complete", `${complete}`],
    [`did not happen: ${forget === undefined ? "release" : "forget"}`, `${forget ?? release}`],
    ...skipped.filter(([, count]) => count > 0).map(([why, count]) => [why, `${count}`] as const),
  ]);
}

function nameOf({ record: { namespace, key } }: Answered): string {
  return `${namespace} ${key}`;
}
