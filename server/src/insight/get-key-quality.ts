import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { administeredPart } from "../admin/own-tenant.ts";
import { pageSize, replyPage } from "../admin/pages.ts";
import type { TenantRpc } from "../admin/services.ts";
import type { Runner } from "../database/pool.ts";
import { timestamp, Violations } from "../domain/violations.ts";
import {
  GetKeyQualityResponseSchema,
  KeyDefect,
  type KeyExample,
  KeyExampleSchema,
  type KeyQuality,
  KeyQualitySchema,
  type KeySuspicionSchema,
} from "../gen/onceward/v1/tenant_admin_pb.ts";
import type { UsedNamespace } from "../records/after-operation.ts";
import { createKeyHashes, type KeyHashes } from "./domain/key-hashes.ts";
import { judgeKeys, type SuspicionKind } from "./domain/key-quality.ts";
import { type ExampleRecord, readExamples, signOf } from "./key-examples.ts";
import { readKeyObservations } from "./key-observations.ts";

/** The defects of keys as the contract names them. */
const DEFECTS: Readonly<Record<SuspicionKind, KeyDefect>> = {
  newKeyPerRetry: KeyDefect.NEW_KEY_PER_RETRY,
  timeInKey: KeyDefect.TIME_IN_KEY,
  attemptInKey: KeyDefect.ATTEMPT_IN_KEY,
  uuidPerClaim: KeyDefect.UUID_PER_CLAIM,
  noFingerprints: KeyDefect.NO_FINGERPRINTS,
  repeatsAfterExpiry: KeyDefect.REPEATS_AFTER_EXPIRY,
  randomOrder: KeyDefect.RANDOM_ORDER,
};

/** What to do about each defect. */
const ADVICE: Readonly<Record<SuspicionKind, string>> = {
  newKeyPerRetry:
    "Make the key once, before the first attempt, from what identifies the operation (such as the order's id), and send the same key with every retry. Two equal operations within minutes look the same: compare the examples with the caller's log.",
  timeInKey:
    "Leave the time of the attempt out of the key. If the operation has a time of its own, such as the time of the order, store it with the order and use the stored one in retries.",
  attemptInKey:
    "Leave the number of the attempt out of the key: all attempts of one operation must have one key. The claim's reply counts the attempts.",
  uuidPerClaim:
    "Make the UUID when the operation is created, store it with the operation, and send the stored one with every retry. If callers never retry, nothing is wrong, and nothing is protected either.",
  noFingerprints:
    "Send a fingerprint of the request, such as SHA-256 over its canonical form. Then a key that is used for a different request is refused instead of replayed.",
  repeatsAfterExpiry:
    "Use a longer key retention: the retention advice says how long. If a key is used again on purpose, such as once a day, put the day into the key.",
  randomOrder:
    "Make UUIDs of version 7, as newKey() of the clients does: new records then lie next to each other in Postgres' indexes. The keys are right, but each claim writes 3 times the log and takes 1.5 times the processor time.",
};

/** Namespaces of a page: each takes some statements. */
const MAX_NAMESPACES = 20;

/** Existing records of a suspicion: enough to recognise the caller. */
const MAX_EXAMPLES = 5;
/** Rows that are read for examples: some milliseconds. */
const MAX_ROWS = 2000;

/** Returns a page of namespaces with what is wrong with their keys. */
export const getKeyQuality: TenantRpc<"getKeyQuality"> = async (request, call, parts) => {
  const { pool, pageTokens, pepper } = parts;
  const hashes = createKeyHashes(pepper);
  const { namespace } = request;
  const violations = new Violations();
  const { id } = administeredPart(call, namespace, violations);
  const limit = Math.min(MAX_NAMESPACES, pageSize(request.pageSize, violations));
  const scope = [id, "GetKeyQuality", namespace];
  const [lastName = ""] = pageTokens.read(scope, request.pageToken, violations) ?? [];
  violations.throwIfAny();

  const runner = pool.of(call);
  const names =
    namespace === "" ? await findObservedNamespaces(runner, id, lastName, limit + 1) : [namespace];
  const items: KeyQuality[] = [];
  for (const name of names.slice(0, limit)) {
    items.push(await qualityOf(runner, { tenantId: id, namespace: name }, hashes));
  }
  const page = replyPage(items, limit, KeyQualitySchema, (item) => item);
  const last = page.last ?? (names.length > limit ? page.messages.at(-1) : undefined);
  return create(GetKeyQualityResponseSchema, {
    namespaces: page.messages,
    ...(last && { nextPageToken: pageTokens.write(scope, [last.namespace]) }),
  });
};

/** Finds namespaces by one search of the primary key for each, however many days it has. */
const listObserved = {
  name: "list_observed_namespaces",
  text: `
with recursive observed (name) as (
  (select d.namespace
     from insight_key_days d
    where d.tenant_id = $1::int
      and d.namespace > $2::text
    order by d.tenant_id, d.namespace
    limit 1)
  union all
  select (select d.namespace
            from insight_key_days d
           where d.tenant_id = $1::int
             and d.namespace > observed.name
           order by d.tenant_id, d.namespace
           limit 1)
    from observed
   where observed.name is not null
)
select name from observed where name is not null limit $3::int`,
};

/** Returns at most `limit` of a tenant's namespaces whose keys were observed, by name, after `afterName`. */
export async function findObservedNamespaces(
  runner: Runner,
  tenantId: number,
  afterName: string,
  limit: number,
): Promise<readonly string[]> {
  const rows = await runner.run<{ name: string }>(listObserved, [tenantId, afterName, limit]);
  return rows.map(({ name }) => name);
}

async function qualityOf(runner: Runner, of: UsedNamespace, hashes: KeyHashes): Promise<KeyQuality> {
  const { sinceMs, ...seen } = await readKeyObservations(runner, of.tenantId, of.namespace);
  const findings = judgeKeys(seen);
  const suspected = findings.filter((finding) => finding.verdict === "suspected");
  const undecided = findings.filter((finding) => finding.verdict === "insufficient");
  const records = suspected.length === 0 ? [] : await readExamples(runner, of, MAX_ROWS);
  const suspicions: MessageInitShape<typeof KeySuspicionSchema>[] = [];
  for (const { kind, evidence } of suspected) {
    const examples = records.filter(await signOf(kind, runner, of, hashes)).slice(0, MAX_EXAMPLES);
    suspicions.push({
      defect: DEFECTS[kind],
      evidence: evidence.map(({ interval: { low, high }, ...counted }) => {
        return { ...counted, shareLow: low, shareHigh: high };
      }),
      examples: examples.map(exampleMessage),
      advice: ADVICE[kind],
    });
  }
  return create(KeyQualitySchema, {
    namespace: of.namespace,
    ...(sinceMs !== undefined && { observedSince: timestamp(sinceMs) }),
    claims: BigInt(seen.claims),
    suspicions,
    undecided: undecided.map(({ kind, missing }) => ({
      defect: DEFECTS[kind],
      insufficient: { ...missing, missingClaims: BigInt(missing.missingClaims) },
    })),
  });
}

function exampleMessage({ key, fingerprint, firstClaimedAtMs }: ExampleRecord): KeyExample {
  return create(KeyExampleSchema, {
    key,
    firstClaimedAt: timestamp(firstClaimedAtMs),
    ...(fingerprint && { fingerprint }),
  });
}
