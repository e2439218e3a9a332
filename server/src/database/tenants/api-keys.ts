import type { Role } from "../../domain/tenant.ts";
import type { Runner } from "../pool.ts";
import { fromRow, type RowOf } from "../rows.ts";
import { textArray } from "../sql-arrays.ts";

/**
 * An API key as it was in the database at one moment: everything but the secret. Instants are in `performance.now()`
 * milliseconds.
 */
export interface KnownApiKey {
  readonly id: string;
  /** Undefined: an operator's. */
  readonly tenantId: number | undefined;
  /** The `uid` of that tenant. */
  readonly tenantUid: string | undefined;
  readonly role: Role;
  /** HMAC-SHA256 of the secret under the deployment's pepper. */
  readonly digest: Buffer;
  /** Tells which pepper that is (access/pepper.ts); undefined: it is not known. */
  readonly pepperMark: Buffer | undefined;
  /** The only namespaces that the key is valid for; undefined: all. */
  readonly namespaces: readonly string[] | undefined;
  /** Just before the database was asked. */
  readonly askedAtMs: number;
  /**
   * When the key expires. Never later than by the database's clock, and earlier by at most the duration of the query.
   * Infinite: it doesn't expire.
   */
  readonly endsAtMs: number;
  /** When the key expires, in milliseconds since the Unix epoch; undefined: it doesn't. */
  readonly expiresAtMs: number | undefined;
}

const readApiKeys = {
  name: "read_api_keys",
  text: `
select id, tenant_id as "tenantId", (select t.uid from tenants t where t.id = tenant_id) as "tenantUid", role, digest,
       pepper_mark as "pepperMark", namespaces, extract(epoch from expires_at) * 1000 as "expiresAtMs",
       (extract(epoch from expires_at) - extract(epoch from now())) * 1000 as "endsInMs"
  from api_keys
 where id = any ($1::text[])
   and revoked_at is null
   and (expires_at is null or expires_at > now())`,
};

type StoredRow = RowOf<Omit<KnownApiKey, "askedAtMs" | "endsAtMs">> & { readonly endsInMs: number | null };

/** Returns the keys that are valid now; one that is unknown, revoked or expired is missing from the map. */
export async function findApiKeys(
  runner: Runner,
  ids: readonly string[],
): Promise<ReadonlyMap<string, KnownApiKey>> {
  const askedAtMs = performance.now();
  const rows = await runner.run<StoredRow>(readApiKeys, [textArray(ids)]);
  return new Map(
    rows.map(({ endsInMs, ...row }) => [
      row.id,
      {
        ...fromRow<Omit<KnownApiKey, "askedAtMs" | "endsAtMs">>(row),
        askedAtMs,
        endsAtMs: endsInMs === null ? Number.POSITIVE_INFINITY : askedAtMs + endsInMs,
      },
    ]),
  );
}

const storeDigestRow = {
  name: "store_key_digest",
  text: `
update api_keys set digest = $3::bytea, pepper_mark = $4::bytea
 where id = $1::text and digest = $2::bytea`,
};

/** Stores a key's digest under another pepper, unless the digest is no longer `replaced`. */
export async function storeKeyDigest(
  runner: Runner,
  id: string,
  replaced: Uint8Array,
  { digest, pepperMark }: { readonly digest: Uint8Array; readonly pepperMark: Uint8Array },
): Promise<void> {
  await runner.run(storeDigestRow, [id, replaced, digest, pepperMark]);
}

const storeKeyUse = {
  name: "store_key_use",
  text: `
update api_keys
   set last_used_at = date_trunc('hour', now(), 'UTC')
 where ctid = any (array (
       select ctid
         from api_keys used
        where used.id = any ($1::text[])
          and (used.last_used_at is null or used.last_used_at < date_trunc('hour', now(), 'UTC'))
        order by used.id
          for update skip locked))`,
};

/**
 * Stores that keys were used in the current hour. A key that another statement has locked is skipped: its next use is
 * stored.
 */
export async function storeApiKeyUse(runner: Runner, ids: readonly string[]): Promise<void> {
  await runner.run(storeKeyUse, [textArray(ids)]);
}
