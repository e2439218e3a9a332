import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { durationFromMs, durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { TenantAdmin } from "@onceward/client/admin";
import { ApiKey_Role, RecordJob_State, type Tenant } from "@onceward/client/proto";
import { EXIT, Outcome } from "../failure.ts";
import type { Session } from "../session.ts";

/** How the names of namespaces of benches begin. */
export const BENCH_PREFIX = "onceward-bench-";

/** Records of a bench that was killed end automatically after this time. */
const RETENTION_MS = 60 * 60_000;
/** The API key outlasts the bench by this, for a service whose clock is ahead. */
const KEY_MARGIN_MS = 10 * 60_000;
const JOB_POLL_MS = 250;
/** Records are forgotten faster than they are made. */
const MAX_JOB_MS = 120_000;

/** Returns the shortest retention that the tenant's bounds allow. */
function shortestRetentionMs(tenant: Tenant | undefined): number {
  const shortest = tenant?.policyBounds?.minKeyRetention;
  return shortest === undefined ? 0 : durationMs(shortest);
}

/** A namespace and an API key of a bench's own. */
export interface Site {
  readonly namespace: string;
  readonly apiKey: string;
  /** Revokes the key, deletes the namespace, and waits until its records are forgotten. @throws Outcome if something is left. */
  remove(): Promise<void>;
}

/**
 * Creates a namespace with a short retention, and an API key for it that expires.
 *
 * @throws ConnectError, after it has removed what it made.
 */
export async function makeSite(
  { client, call }: Pick<Session<TenantAdmin>, "client" | "call">,
  tenant: Tenant | undefined,
  benchMs: number,
): Promise<Site> {
  const namespace = `${BENCH_PREFIX}${randomBytes(6).toString("hex")}`;
  let keyId: string | undefined;
  const remove = async () => {
    const results = await Promise.allSettled([revoke(), deleteNamespace()]);
    const failures = results.flatMap((result) => (result.status === "rejected" ? [`${result.reason}`] : []));
    if (failures.length === 0) return;
    const byHand = `onceward namespaces delete ${namespace} --force --yes`;
    throw new Outcome(
      EXIT.refused,
      `The bench's namespace may be left: ${byHand} removes it. ${failures.join("; ")}`,
    );
  };
  try {
    const retention = durationFromMs(Math.max(RETENTION_MS, shortestRetentionMs(tenant)));
    const policy = { keyRetention: retention, resultRetention: retention };
    const updateMask = { paths: ["policy.key_retention", "policy.result_retention"] };
    await client.updateNamespace(
      { namespace: { name: namespace, policy }, updateMask, allowMissing: true },
      call,
    );
    const expiresAt = timestampFromMs(Date.now() + benchMs + KEY_MARGIN_MS);
    const apiKey = { role: ApiKey_Role.CALLER, label: "onceward bench", namespaces: [namespace], expiresAt };
    const created = await client.createApiKey({ apiKey }, call);
    keyId = created.apiKey?.id;
    return { namespace, apiKey: created.secret, remove };
  } catch (error) {
    await remove().catch(() => {});
    throw error;
  }

  async function revoke() {
    if (keyId !== undefined) await client.revokeApiKey({ id: keyId }, call);
  }

  async function deleteNamespace() {
    const { job } = await client.deleteNamespace({ name: namespace, force: true }, call);
    if (job === undefined) return;
    const { id } = job;
    const endMs = performance.now() + MAX_JOB_MS;
    for (let { state } = job; state !== RecordJob_State.DONE; ) {
      if (performance.now() > endMs) throw new Error(`job ${id} still forgets records`);
      await sleep(JOB_POLL_MS);
      state = (await client.getRecordJob({ id }, call)).job?.state ?? RecordJob_State.UNSPECIFIED;
    }
  }
}
