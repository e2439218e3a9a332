import { setTimeout as pause } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { ConnectError, createClient } from "@connectrpc/connect";
import { ResultSchema } from "../../../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { TenantAdminService } from "../../../../clients/typescript/src/gen/onceward/v1/tenant_admin_pb.ts";
import { RecordJob_State } from "../../../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import type { TenantAdminClient } from "../../../support/calls/admin.ts";
import { seconds, success } from "../../../support/calls/verbs.ts";
import type { Random } from "../../../support/random.ts";
import type { Journal } from "../../history/journal.ts";
import { describeError, marked, nameOfResult } from "../../history/messages.ts";
import { type AdminRequest, nowMs, type RetentionChange } from "../../history/operation.ts";
import { recordCall } from "../../history/recorder.ts";
import { grpcTransport } from "../grpc-transport.ts";
import { bearing, type Calls } from "./calls.ts";
import type { ClientPlan } from "./messages.ts";
import { NAMESPACES, pickAdministered, TENANTS } from "./spaces.ts";

const RESOLVE_INTERVAL_MS = 400;
const CHANGE_INTERVAL_MS = 15_000;
const TIMEOUT_MS = 4000;
const CHANGED = "brief";

/** An administrator of the first tenant, which resolves records and changes a namespace's retention. */
export interface Administrator {
  /** Runs until `isStopping`. */
  run(isStopping: () => boolean): Promise<void>;
  /** Returns the changes so far; a change of unknown outcome may have happened. */
  changes(): readonly RetentionChange[];
}

/** @see Administrator */
export function createAdministrator(
  plan: ClientPlan,
  adminKey: string,
  journal: Journal,
  calls: Calls,
  random: Random,
): Administrator {
  const [tenant] = TENANTS;
  const changes: RetentionChange[] = [];
  const clients = plan.replicas.map(({ name, grpcPort }) => ({
    name,
    api: createClient(TenantAdminService, grpcTransport(grpcPort, [bearing(adminKey)])),
  }));
  const anyClient = () => {
    const client = clients[random.below(clients.length)];
    if (client === undefined) throw new Error("there are no replicas");
    return client;
  };

  async function resolveOne(): Promise<void> {
    const target = pickAdministered(random, nowMs() - plan.originMs, plan.round);
    if (calls.isWornOut(target)) return;
    const { namespace, key } = target;
    const { name, api } = anyClient();
    const recording = { journal, client: `${plan.client}-admin`, replica: name, tenant };
    const { request, resolution } = resolutionOf(random, key);
    const call = () =>
      api.resolveRecord({ namespace, key, resolution, reason: "chaos" }, { timeoutMs: TIMEOUT_MS });
    await recordCall(recording, { tenant, namespace, key }, request, call).catch(unlessRefused);
  }

  async function changeRetention(): Promise<void> {
    const initial = NAMESPACES.find(({ namespace }) => namespace === CHANGED);
    if (initial === undefined) return;
    const { resultRetentionMs, failureRetentionMs } = initial;
    const keyRetentionMs = 75_000 + 5000 * random.below(10);
    const retentions = { keyRetentionMs, resultRetentionMs, failureRetentionMs };
    const applyToExisting = random.below(2) === 1;
    const index = changes.length;
    const change = { tenant, namespace: CHANGED, ...retentions, invokedAtMs: nowMs() };
    const note = (more: Pick<RetentionChange, "returnedAtMs" | "appliedToExistingAtMs">) => {
      changes[index] = { ...change, ...more };
    };
    const unapplied = applyToExisting ? { appliedToExistingAtMs: Number.POSITIVE_INFINITY } : {};
    // Until the outcome is known, the change may take effect at any time.
    note({ returnedAtMs: Number.POSITIVE_INFINITY, ...unapplied });
    const update = {
      namespace: { name: CHANGED, policy: { keyRetention: seconds(keyRetentionMs / 1000) } },
      updateMask: { paths: ["policy.key_retention"] },
      applyToExisting,
    };
    try {
      const { job } = await anyClient().api.updateNamespace(update, { timeoutMs: TIMEOUT_MS });
      const returnedAtMs = nowMs();
      note({ returnedAtMs, ...(job && unapplied) });
      if (job !== undefined)
        void followJob(job.id, (doneAtMs) => note({ returnedAtMs, appliedToExistingAtMs: doneAtMs }));
    } catch (error) {
      unlessRefused(error);
      if (describeError(error).kind === "refused") changes.splice(index, 1);
    }
  }

  async function followJob(id: bigint, onDone: (atMs: number) => void): Promise<void> {
    for (let look = 0; look < 60; look++) {
      await pause(1000, undefined, { ref: false });
      const found = await anyClient()
        .api.getRecordJob({ id }, { timeoutMs: TIMEOUT_MS })
        .catch(unlessRefused);
      if (found?.job?.state === RecordJob_State.DONE) return onDone(nowMs());
    }
  }

  return {
    changes: () => changes,
    async run(isStopping) {
      let changedAtMs = nowMs();
      while (!isStopping()) {
        await pause(RESOLVE_INTERVAL_MS * (0.5 + random.next()));
        await resolveOne();
        if (nowMs() - changedAtMs < CHANGE_INTERVAL_MS) continue;
        changedAtMs = nowMs();
        await changeRetention();
      }
    },
  };
}

type ResolveRequest = Parameters<TenantAdminClient["resolveRecord"]>[0];

function resolutionOf(
  random: Random,
  key: string,
): { readonly request: AdminRequest; readonly resolution: NonNullable<ResolveRequest["resolution"]> } {
  const draw = random.next();
  if (draw < 0.6) return { request: { kind: "forget" }, resolution: { case: "forget", value: {} } };
  if (draw < 0.85) return { request: { kind: "adminRelease" }, resolution: { case: "release", value: {} } };
  const result = success(marked(TENANTS[0], `found out about ${key}`));
  return {
    request: { kind: "adminComplete", result: nameOfResult(create(ResultSchema, result)) },
    resolution: { case: "complete", value: { result } },
  };
}

/** Ignores a failed call: the journal has its answer. @throws anything else. */
function unlessRefused(error: unknown): undefined {
  if (!(error instanceof ConnectError)) throw error;
}
