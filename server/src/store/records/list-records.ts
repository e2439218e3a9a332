import type { LiveRecord } from "../../domain/record.ts";
import type { Runner } from "../pool.ts";
import { LISTED_COLUMNS, parseRecord, type RecordRow, STATE } from "./record-row.ts";

/** A place in the order of records: namespace, then key, both by bytes. */
export interface RecordPlace {
  readonly namespace: string;
  readonly key: string;
}

/** Which of a tenant's records are wanted. Instants are milliseconds since the Unix epoch. */
export interface RecordFilter {
  readonly tenantId: number;
  /** Undefined: all. */
  readonly namespace: string | undefined;
  readonly state: "inProgress" | "completed" | "released" | "ambiguous" | undefined;
  /** Empty: any. */
  readonly keyPrefix: string;
  readonly claimedAfterMs: number | undefined;
  readonly claimedBeforeMs: number | undefined;
}

/** What was found among a bounded number of records. */
export interface RecordLook {
  /** Without payloads, results' metadata and the states of checkpoints. */
  readonly records: readonly LiveRecord[];
  /** Where the next look begins; undefined: every record was looked at. */
  readonly next: RecordPlace | undefined;
}

/** Some tens of milliseconds for one statement, also where none of them is wanted. */
const MAX_LOOKED_AT = 5000;

const WANTED_STATES = { ...STATE, ambiguous: 4 } as const;

/**
 * The range of the primary key first, then what no index knows: a marker or a record whose retention has ended is no
 * record. The last row that was looked at comes along, so that the next look can begin behind it.
 */
const lookAtRecords = {
  name: "look_at_records",
  text: `
with looked as materialized (
  select r.state <> 0
           and r.expires_at > now()
           and starts_with(r.key, $6::text)
           and r.claimed_at >= coalesce(to_timestamp($7::float8 / 1000), '-infinity')
           and r.claimed_at < coalesce(to_timestamp($8::float8 / 1000), 'infinity')
           and coalesce($9::int, derived.state) = derived.state as wanted,
         ${LISTED_COLUMNS}
    from records r
   cross join lateral (
     select case when r.state = 1 and r.holds_on_lease_expiry and r.lease_expires_at <= now()
                 then ${WANTED_STATES.ambiguous} else r.state end as state
   ) derived
   where r.tenant_id = $1::int
     and (r.namespace, r.key) >= ($2::text, $3::text)
     and (r.namespace, r.key) < ($4::text, $5::text)
   order by r.namespace, r.key
   limit ${MAX_LOOKED_AT}
)
(select *, (select count(*) from looked)::int as looked_at
   from looked where wanted order by namespace, key limit $10::int)
union all
(select *, (select count(*) from looked)::int
   from (select * from looked order by namespace desc, key desc limit 1) last where not wanted)
order by namespace, key`,
};

interface LookedRow extends RecordRow {
  readonly wanted: boolean;
  readonly looked_at: number;
}

/** The first records from a place on that are wanted, up to `limit`; looks at a bounded number. */
export async function findRecords(
  runner: Runner,
  filter: RecordFilter,
  from: RecordPlace,
  limit: number,
): Promise<RecordLook> {
  const until = endOf(filter);
  const rows = await runner.run<LookedRow>(lookAtRecords, [
    filter.tenantId,
    from.namespace,
    from.key,
    until.namespace,
    until.key,
    filter.keyPrefix,
    filter.claimedAfterMs ?? null,
    filter.claimedBeforeMs ?? null,
    filter.state === undefined ? null : WANTED_STATES[filter.state],
    limit,
  ]);
  const wanted = rows.filter((row) => row.wanted);
  const records = wanted.map(parseRecord).filter((record) => record !== undefined);
  const wasFull = wanted.length === limit || rows[0]?.looked_at === MAX_LOOKED_AT;
  const last = wanted.length === limit ? wanted.at(-1) : rows.at(-1);
  return { records, next: wasFull && last !== undefined ? placeBehind(last) : undefined };
}

/** Where the first record that may be wanted is. */
export function startOf({ namespace, keyPrefix }: RecordFilter): RecordPlace {
  return namespace === undefined ? { namespace: "", key: "" } : { namespace, key: keyPrefix };
}

/** Lower than every character that a key or a namespace may hold, and so between a text and all that begin with it. */
const LOWEST = "\u0001";
/** Higher than every namespace. */
const HIGHEST = "~";

/** The first place behind a record. */
export function placeBehind({ namespace, key }: RecordPlace): RecordPlace {
  return { namespace, key: key + LOWEST };
}

/** The first place that is behind every record that may be wanted. */
function endOf({ namespace, keyPrefix }: RecordFilter): RecordPlace {
  if (namespace === undefined) return { namespace: HIGHEST, key: "" };
  const key = behindPrefix(keyPrefix);
  return key === undefined ? { namespace: namespace + LOWEST, key: "" } : { namespace, key };
}

const LAST_CODE_POINT = 0x10ffff;
const FIRST_SURROGATE = 0xd800;
const BEHIND_SURROGATES = 0xe000;

/** The lowest text that is higher than all that begin with the prefix; undefined: there is none. UTF-8 sorts as code points. */
function behindPrefix(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0);
  for (;;) {
    const last = points.pop();
    if (last === undefined) return undefined;
    if (last === LAST_CODE_POINT) continue;
    const next = last + 1 === FIRST_SURROGATE ? BEHIND_SURROGATES : last + 1;
    return String.fromCodePoint(...points, next);
  }
}
