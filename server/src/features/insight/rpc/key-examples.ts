import type { UsedNamespace } from "../../../core/claims/after-operation.ts";
import type { Runner } from "../../../core/store/pool.ts";
import type { KeyHashes } from "../domain/key-hashes.ts";
import type { SuspicionKind } from "../domain/key-quality.ts";
import { keyShape } from "../domain/key-shape.ts";
import {
  type ExampleRecord,
  findPromptFingerprints,
  findReturnedKeys,
  readExamples,
} from "../store/key-observations.ts";

/** Examples of a suspicion: enough to recognise the caller. */
const MAX_EXAMPLES = 5;
/** Rows that are read for examples: some milliseconds. */
const MAX_ROWS = 2000;
/** Hashes that are compared with these rows. */
const MAX_HASHES = 1000;

/** Whether a record shows the sign of a defect. */
type Shows = (record: ExampleRecord) => boolean;

/** Returns up to 5 existing records for each suspected defect, among some of the namespace's. */
export async function findExamples(
  runner: Runner,
  of: UsedNamespace,
  { kinds, hashes }: { readonly kinds: readonly SuspicionKind[]; readonly hashes: KeyHashes },
): Promise<ReadonlyMap<SuspicionKind, readonly ExampleRecord[]>> {
  const examples = new Map<SuspicionKind, readonly ExampleRecord[]>();
  if (kinds.length === 0) return examples;
  const records = await readExamples(runner, of, MAX_ROWS);
  for (const kind of kinds) {
    const shows = await signOf(kind, runner, of, hashes);
    examples.set(kind, records.filter(shows).slice(0, MAX_EXAMPLES));
  }
  return examples;
}

async function signOf(
  kind: SuspicionKind,
  runner: Runner,
  of: UsedNamespace,
  hashes: KeyHashes,
): Promise<Shows> {
  switch (kind) {
    case "newKeyPerRetry":
      return promptFingerprint(runner, of, hashes, false);
    case "attemptInKey": {
      const isCounted = await promptFingerprint(runner, of, hashes, true);
      return (record) => shapeOf(record).isAttempt || isCounted(record);
    }
    case "timeInKey":
      return (record) => shapeOf(record).isTime;
    case "uuidPerClaim":
      return (record) => ["random", "prompt"].includes(shapeOf(record).uuid);
    case "noFingerprints":
      return ({ fingerprint }) => fingerprint === undefined;
    case "repeatsAfterExpiry": {
      const returned = asSet(await findReturnedKeys(runner, of, MAX_HASHES));
      return ({ key }) => returned.has(hashes.ofKey(of, key).toString("hex"));
    }
  }
}

async function promptFingerprint(
  runner: Runner,
  of: UsedNamespace,
  hashes: KeyHashes,
  isCounted: boolean,
): Promise<Shows> {
  const found = asSet(await findPromptFingerprints(runner, of, { isCounted, limit: MAX_HASHES }));
  return ({ fingerprint }) =>
    fingerprint !== undefined && found.has(hashes.ofFingerprint(of, fingerprint).toString("hex"));
}

function shapeOf({ key, firstClaimedAtMs }: ExampleRecord) {
  return keyShape(key, firstClaimedAtMs);
}

function asSet(found: readonly Buffer[]): ReadonlySet<string> {
  return new Set(found.map((hash) => hash.toString("hex")));
}
