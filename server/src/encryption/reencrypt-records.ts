import type { Runner } from "../database/pool.ts";
import { bigintArray, byteaArray, textArray } from "../database/sql-arrays.ts";
import { isRefusal } from "../domain/refusal.ts";
import { type IdRow, idColumns } from "../records/engine/record-row.ts";
import { equalKeys } from "../records/engine/record-sql.ts";
import type { RecordValues, ValuesRow } from "../records/engine/record-values.ts";
import type { RecordId } from "../records/record.ts";
import type { PassPage } from "./encryption-pass.ts";

/** Maximum records that a page examines: some milliseconds, if none has to be encrypted. */
const MAX_EXAMINED = 2000;
/** A page that has this many bytes to encrypt takes no more records. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024;

/**
 * Returns the records behind a position whose result or checkpoint is not stored under a key (null: not in plain
 * form), up to a number and a size, and the last examined record, from which the next page continues.
 */
const findSealed = {
  name: "find_records_to_encrypt",
  text: `
with examined as materialized (
  select r.tenant_id, r.namespace, r.key,
         (r.result_digest is not null and r.result_key_id is distinct from $4::smallint)
           or (r.checkpoint_state is not null and r.checkpoint_key_id is distinct from $4::smallint) as is_due,
         coalesce(octet_length(r.result_payload), 0) + coalesce(octet_length(r.result_metadata), 0)
           + coalesce(octet_length(r.checkpoint_state), 0) as bytes
    from records r
   where (r.tenant_id, r.namespace, r.key) > ($1::int, $2::text collate "C", $3::text collate "C")
   order by r.tenant_id, r.namespace, r.key
   limit $5::int
), counted as (
  select e.*, row_number() over behind as ordinal,
         count(*) filter (where is_due) over behind as due,
         coalesce(sum(bytes) filter (where is_due) over behind, 0) as due_bytes
    from examined e
  window behind as (order by e.tenant_id, e.namespace, e.key rows unbounded preceding)
), page as (
  select c.* from counted c
   where c.due <= $6::int and (c.due_bytes <= $7::int or c.due <= 1)
)
select p.tenant_id, p.namespace, p.key, p.is_due, p.ordinal::int as ordinal,
       (select count(*) from examined)::int as examined
  from page p
 where p.is_due or p.ordinal = (select max(ordinal) from page)
 order by p.ordinal`,
};

interface FoundRow extends IdRow {
  readonly is_due: boolean;
  readonly ordinal: number;
  readonly examined: number;
}

const readSealed = {
  name: "read_values_to_encrypt",
  text: `
select r.tenant_id, r.namespace, r.key, r.fencing_token::text as fencing_token, r.result_key_id,
       r.checkpoint_key_id, encode(r.result_digest, 'hex') as result_digest, r.result_payload, r.result_metadata,
       r.checkpoint_state
  from unnest($1::int[], $2::text[], $3::text[]) as i (tenant_id, namespace, key)
  join records r
    on ${equalKeys("r", "i")}`,
};

type SealedValues = ValuesRow & { readonly fencing_token: string };

/**
 * Replaces the values of rows that still hold the values that were read. Rows are not locked while their values
 * are encrypted, so that no claim waits for that. A payload that the sweep has dropped in between stays dropped.
 */
const storeSealed = {
  name: "store_encrypted_values",
  text: `
with new_values as materialized (
  select *
    from unnest($1::int[], $2::text[], $3::text[], $4::bigint[], $5::bytea[], $6::bytea[], $7::bytea[], $8::bytea[],
                $9::text[], $10::bytea[])
           as n (tenant_id, namespace, key, fencing_token, old_digest, old_state, result_digest, result_payload,
                 result_metadata, checkpoint_state)
   order by n.tenant_id, n.namespace collate "C", n.key collate "C"
), changed as (
  update records r set
    result_key_id = case when n.result_digest is not null then $11::smallint end,
    checkpoint_key_id = case when n.checkpoint_state is not null then $11::smallint end,
    result_digest = n.result_digest,
    result_payload = case when r.result_payload is not null then n.result_payload end,
    result_metadata = case when r.result_metadata is not null then n.result_metadata end,
    checkpoint_state = n.checkpoint_state
  from new_values n
   where ${equalKeys("r", "n")}
     and r.fencing_token = n.fencing_token
     and r.result_digest is not distinct from n.old_digest
     and r.checkpoint_state is not distinct from n.old_state
  returning 1
)
select count(*)::int as changed from changed`,
};

/**
 * Encrypts the records of one page under the current key, or decrypts them if there is none. Records that cannot
 * be decrypted stay as they are.
 *
 * @param maxRecords is the maximum number of records that change.
 */
export async function reencryptPage(
  transaction: Runner,
  encryption: RecordValues,
  after: RecordId,
  maxRecords: number,
): Promise<PassPage> {
  const found = await transaction.run<FoundRow>(findSealed, [
    ...[after.tenantId, after.namespace, after.key],
    ...[encryption.keyId, MAX_EXAMINED, maxRecords, MAX_PAGE_BYTES],
  ]);
  const last = found.at(-1);
  if (last === undefined) return { examined: 0, changed: 0, skipped: 0, unreadable: 0, after: undefined };
  const isLastPage = last.ordinal === last.examined && last.examined < MAX_EXAMINED;
  const due = found.filter((row) => row.is_due);
  return {
    examined: last.ordinal,
    ...(await reencrypt(transaction, encryption, due)),
    after: isLastPage ? undefined : { tenantId: last.tenant_id, namespace: last.namespace, key: last.key },
  };
}

async function reencrypt(transaction: Runner, encryption: RecordValues, due: readonly IdRow[]) {
  if (due.length === 0) return { changed: 0, skipped: 0, unreadable: 0 };
  const rows = await transaction.run<SealedValues>(readSealed, idColumns(due.map(idOf)));
  const values = rows.map((row) => newValues(row, encryption));
  const readable = values.filter((value) => value !== undefined);
  const unreadable = values.length - readable.length;
  if (readable.length === 0) return { changed: 0, skipped: due.length - unreadable, unreadable };
  const [stored] = await transaction.run<{ changed: number }>(storeSealed, [
    ...idColumns(readable.map(({ row }) => idOf(row))),
    bigintArray(readable.map(({ row }) => BigInt(row.fencing_token))),
    byteaArray(readable.map(({ row }) => bytesOf(row.result_digest))),
    byteaArray(readable.map(({ row }) => row.checkpoint_state ?? undefined)),
    byteaArray(readable.map(({ result }) => result?.digest)),
    byteaArray(readable.map(({ result }) => result?.payload)),
    textArray(readable.map(({ result }) => result?.metadata)),
    byteaArray(readable.map(({ state }) => state)),
    encryption.keyId,
  ]);
  const changed = stored?.changed ?? 0;
  return { changed, skipped: due.length - unreadable - changed, unreadable };
}

/** Returns a row's values as they shall be stored; undefined if they cannot be decrypted. */
function newValues(row: SealedValues, encryption: RecordValues) {
  const id = idOf(row);
  const plain = opened(row, encryption);
  if (plain === undefined) return undefined;
  const digest = bytesOf(plain.result_digest);
  const { result_payload: payload, result_metadata: metadata, checkpoint_state: state } = plain;
  return {
    row,
    result:
      digest &&
      encryption.storedResult(id, {
        digest,
        payload: payload ?? undefined,
        metadata: metadata ?? undefined,
      }),
    state: state === null ? undefined : encryption.storedState(id, state),
  };
}

function opened(row: SealedValues, { openRow }: RecordValues): SealedValues | undefined {
  try {
    return openRow(row);
  } catch (error) {
    if (isRefusal(error, "RECORD_UNREADABLE")) return undefined;
    throw error;
  }
}

function bytesOf(hex: string | null): Buffer | undefined {
  return hex === null ? undefined : Buffer.from(hex, "hex");
}

function idOf({ tenant_id: tenantId, namespace, key }: IdRow): RecordId {
  return { tenantId, namespace, key };
}
