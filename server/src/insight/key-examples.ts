import type { Runner } from "../database/pool.ts";
import { fromRow, type RowOf } from "../database/rows.ts";
import type { UsedNamespace } from "../records/after-operation.ts";
import { STATE } from "../records/engine/record-row.ts";
import type { KeyHashes } from "./domain/key-hashes.ts";
import { PROMPT_MS, type SuspicionKind } from "./domain/key-quality.ts";
import { keyShape } from "./domain/key-shape.ts";

/** A record that may be an example. */
export interface ExampleRecord {
  readonly key: string;
  readonly fingerprint: Uint8Array | undefined;
  /** In milliseconds since the Unix epoch. */
  readonly firstClaimedAtMs: number;
}

/**
 * Returns some of a namespace's records. A forgotten row, or one whose retention has ended, is not a record.
 */
const readExampleRecords = {
  name: "read_example_records",
  text: `
select e.key, e.fingerprint, extract(epoch from e.first_claimed_at) * 1000 as "firstClaimedAtMs"
  from (select r.key, r.fingerprint, r.first_claimed_at, r.state <> ${STATE.forgotten} and r.expires_at > now() as is_live
          from records r
         where r.tenant_id = $1::int
           and r.namespace = $2::text
         order by r.tenant_id, r.namespace, r.key
         limit $3::int) e
 where e.is_live`,
};

/** Returns the live ones among the first `maxRows` rows of a namespace, by key. */
export async function readExamples(
  runner: Runner,
  { tenantId, namespace }: UsedNamespace,
  maxRows: number,
): Promise<readonly ExampleRecord[]> {
  const rows = await runner.run<RowOf<ExampleRecord>>(readExampleRecords, [tenantId, namespace, maxRows]);
  return rows.map((row) => fromRow<ExampleRecord>(row));
}

/** Hashes that are compared with records. */
const MAX_HASHES = 1000;

/** Returns whether a record shows the sign of a defect. */
export async function signOf(
  kind: SuspicionKind,
  runner: Runner,
  of: UsedNamespace,
  hashes: KeyHashes,
): Promise<(record: ExampleRecord) => boolean> {
  const ofPromptFingerprint = async (isCounted: boolean) => {
    const found = asSet(await findPromptFingerprints(runner, of, { isCounted, limit: MAX_HASHES }));
    return ({ fingerprint }: ExampleRecord) =>
      fingerprint !== undefined && found.has(hashes.ofFingerprint(of, fingerprint).toString("hex"));
  };
  const shapeOf = ({ key, firstClaimedAtMs }: ExampleRecord) => keyShape(key, firstClaimedAtMs);
  switch (kind) {
    case "newKeyPerRetry":
      return ofPromptFingerprint(false);
    case "attemptInKey": {
      const isCounted = await ofPromptFingerprint(true);
      return (record) => shapeOf(record).isAttempt || isCounted(record);
    }
    case "timeInKey":
      return (record) => shapeOf(record).isTime;
    case "uuidPerClaim":
      return (record) => ["random", "prompt"].includes(shapeOf(record).uuid);
    case "randomOrder":
      return (record) => shapeOf(record).uuid === "random";
    case "noFingerprints":
      return ({ fingerprint }) => fingerprint === undefined;
    case "repeatsAfterExpiry": {
      const returned = asSet(await findReturnedKeys(runner, of, MAX_HASHES));
      return ({ key }) => returned.has(hashes.ofKey(of, key).toString("hex"));
    }
  }
}

function asSet(found: readonly Buffer[]): ReadonlySet<string> {
  return new Set(found.map((hash) => hash.toString("hex")));
}

/** Fingerprints that came under another key soon after, the newest first. `$4`: whether by a counter. */
const readPromptFingerprints = {
  name: "read_prompt_fingerprints",
  text: `
select g.fingerprint_hash
  from (select k.fingerprint_hash, k.first_claimed_at, k.stem_hash,
               lag(k.stem_hash) over earlier as earlier_stem,
               extract(epoch from k.first_claimed_at - lag(k.first_claimed_at) over earlier) as gap_s
          from insight_sampled_keys k
         where k.tenant_id = $1::int
           and k.namespace = $2::text
           and k.kind = 'fingerprint'
        window earlier as (partition by k.fingerprint_hash order by k.first_claimed_at, k.key_hash)) g
 where g.gap_s <= $3::float8
   and coalesce(g.stem_hash = g.earlier_stem, false) = $4::boolean
 order by g.first_claimed_at desc
 limit $5::int`,
};

/** Returns the hashes of sampled fingerprints that came under another key soon, at most `limit`. */
export async function findPromptFingerprints(
  runner: Runner,
  { tenantId, namespace }: UsedNamespace,
  { isCounted, limit }: { readonly isCounted: boolean; readonly limit: number },
): Promise<readonly Buffer[]> {
  const rows = await runner.run<{ fingerprint_hash: Buffer }>(readPromptFingerprints, [
    ...[tenantId, namespace, PROMPT_MS / 1000, isCounted, limit],
  ]);
  return rows.map(({ fingerprint_hash: hash }) => hash);
}

const readReturnedKeys = {
  name: "read_returned_keys",
  text: `
select t.key_hash
  from insight_sampled_keys t
 where t.tenant_id = $1::int
   and t.namespace = $2::text
   and t.kind = 'key'
   and t.ended_at = 'infinity'
 limit $3::int`,
};

/** Returns the hashes of sampled keys that came back after the end of their record and have a new one, at most `limit`. */
export async function findReturnedKeys(
  runner: Runner,
  { tenantId, namespace }: UsedNamespace,
  limit: number,
): Promise<readonly Buffer[]> {
  const rows = await runner.run<{ key_hash: Buffer }>(readReturnedKeys, [tenantId, namespace, limit]);
  return rows.map(({ key_hash: hash }) => hash);
}
