import { randomBytes } from "node:crypto";
import { vi } from "vitest";
import type { AdministeredTenant, AdminWorld } from "../calls/admin.ts";
import { grant, success } from "../calls/verbs.ts";

/** All names of a tenant's data that a request can contain. */
export interface Names {
  readonly tenant: string;
  /** A declared namespace that has records. */
  readonly namespace: string;
  readonly completedKey: string;
  /** The key of a record in progress. */
  readonly heldKey: string;
  readonly fencingToken: bigint;
  readonly claimId: string;
  readonly tenantEtag: string;
  readonly namespaceEtag: string;
  readonly apiKeyId: string;
  readonly recordJobId: bigint;
  /** The token of each list's second page, by RPC. */
  readonly pageTokens: Readonly<Record<List, string>>;
}

const LISTS = {
  listNamespaces: true,
  listRecords: true,
  listRecordJobs: true,
  listApiKeys: true,
  listAuditEvents: true,
  getUsage: true,
  getKeyQuality: true,
};
type List = keyof typeof LISTS;

/** Creates data of every kind for a tenant, and returns its names. The server must flush usage often. */
export async function tenantFixture(world: AdminWorld, theirs: AdministeredTenant): Promise<Names> {
  const { admin, caller, tenant } = theirs;
  const namespace = `ns-${randomHex(12)}`;
  const completedKey = `completed-${randomHex(12)}`;
  const heldKey = `held-${randomHex(12)}`;
  const claimId = `claim-${randomHex(12)}`;
  const policy = { keyRetention: { seconds: 100_000n, nanos: 0 } };
  const update = (name: string) =>
    admin.updateNamespace({ namespace: { name, policy }, allowMissing: true, applyToExisting: true });
  const { namespace: declared, job } = await update(namespace);
  await update(`${namespace}-2`);
  const { apiKey } = await admin.createApiKey({ apiKey: { role: 1, label: "theirs" } });

  const completed = { namespace, key: completedKey };
  const { fencingToken } = await grant(caller, completed);
  await caller.complete({ ...completed, fencingToken, result: success("theirs") });
  await caller.claim(completed);
  const held = await grant(caller, { namespace, key: heldKey, claimId });
  await grant(caller, { namespace: `${namespace}-2` });
  for (const table of ["usage_hours", "insight_key_days"]) {
    const rows = () => world.database.query(`select 1 from ${table} where tenant_id = $1`, [tenant.id]);
    await vi.waitUntil(async () => (await rows()).length === 2, { timeout: 30_000, interval: 20 });
  }

  const { tenant: self } = await admin.getTenant({});
  const tokenOf = async (list: List) => {
    const request = list === "listRecords" ? { namespace, pageSize: 1 } : { pageSize: 1 };
    return (await admin[list](request)).nextPageToken;
  };
  const tokens = await Promise.all(
    (Object.keys(LISTS) as List[]).map(async (list) => [list, await tokenOf(list)]),
  );
  return {
    tenant: tenant.name,
    namespace,
    completedKey,
    heldKey,
    fencingToken: held.fencingToken,
    claimId,
    tenantEtag: self?.etag ?? "",
    namespaceEtag: declared?.etag ?? "",
    apiKeyId: apiKey?.id ?? "",
    recordJobId: job?.id ?? 0n,
    pageTokens: Object.fromEntries(tokens),
  };
}

/** Returns names of the same sizes that nothing has. */
export function nobodys(names: Names): Names {
  const token = (theirs: string) =>
    randomBytes(Buffer.from(theirs, "base64url").byteLength).toString("base64url");
  const { fencingToken, recordJobId, pageTokens, ...texts } = names;
  const other = Object.entries(texts).map(([name, text]) => [name, randomHex(text.length)]);
  return {
    ...(Object.fromEntries(other) as typeof texts),
    fencingToken: fencingToken + 50n,
    recordJobId: recordJobId + 50n,
    pageTokens: {
      listNamespaces: token(pageTokens.listNamespaces),
      listRecords: token(pageTokens.listRecords),
      listRecordJobs: token(pageTokens.listRecordJobs),
      listApiKeys: token(pageTokens.listApiKeys),
      listAuditEvents: token(pageTokens.listAuditEvents),
      getUsage: token(pageTokens.getUsage),
      getKeyQuality: token(pageTokens.getKeyQuality),
    },
  };
}

function randomHex(length: number): string {
  return randomBytes(length).toString("hex").slice(0, length);
}
