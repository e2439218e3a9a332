import { createOnceward, KeyTooOldError, type Onceward } from "@onceward/client";
import type { Operation } from "./operations.ts";
import type { Provider } from "./provider.ts";
import type { Service } from "./service.ts";

/** From Friday to the Tuesday after a long weekend: longer than the 72 hours of the default retention. */
const DAYS = 4;
const DAY_MS = 86_400_000;

/** What happened to one more delivery of each operation, after its key was forgotten. */
export interface LateOutcome {
  readonly redelivered: number;
  /** Effects of these deliveries: each operation had its effect on Friday. */
  readonly effects: number;
  /** Deliveries that were refused with KEY_TOO_OLD. */
  readonly refused: number;
}

/** The outcomes with the policy RUN, and with REQUIRE_TIME. */
export type LateOutcomes = Readonly<Record<"run" | "refuse", LateOutcome>>;

interface LateSetup {
  readonly operations: readonly Operation[];
  readonly provider: Provider;
  readonly service: Service;
  readonly signal: AbortSignal;
}

/**
 * Delivers each operation on a Friday, and once more after the weekend, when Onceward and the provider have forgotten the keys.
 * The weekend passes by making the rows older, and the time that Friday's messages carry.
 */
export async function redeliverLate({
  operations,
  provider,
  service,
  signal,
}: LateSetup): Promise<LateOutcomes> {
  await using onceward = createOnceward(service.guard);
  const namespaces = { run: "late-keys-run", refuse: "late-keys-refused" } as const;
  await service.declare(namespaces.run, "RUN");
  await service.declare(namespaces.refuse, "REQUIRE_TIME");
  const fridayMs = Date.now();
  for (const namespace of Object.values(namespaces)) {
    await deliver(onceward, provider, namespace, operations, new Date(fridayMs));
  }
  await service.letDaysPass(DAYS);
  provider.forgetKeys();
  await provider.takeCounts();
  signal.throwIfAborted();
  const redeliver = async (namespace: string): Promise<LateOutcome> => {
    const sentAt = new Date(fridayMs - DAYS * DAY_MS);
    const refused = await deliver(onceward, provider, namespace, operations, sentAt);
    const { calls, absorbed } = await provider.takeCounts();
    return { redelivered: operations.length, effects: calls - absorbed, refused };
  };
  return { run: await redeliver(namespaces.run), refuse: await redeliver(namespaces.refuse) };
}

/** Delivers all operations, with the time that their messages carry. Returns how many were refused as too old. */
async function deliver(
  onceward: Onceward,
  provider: Provider,
  namespace: string,
  operations: readonly Operation[],
  keyCreatedAt: Date,
): Promise<number> {
  const refused = await Promise.all(
    operations.map(async ({ id }) => {
      try {
        await onceward.run({ namespace, key: id, keyCreatedAt }, async (claim) => {
          const headers = { "idempotency-key": claim.deriveKey("provider") };
          const response = await fetch(provider.url, { method: "POST", body: id, headers });
          return await response.text();
        });
        return 0;
      } catch (error) {
        if (error instanceof KeyTooOldError) return 1;
        throw error;
      }
    }),
  );
  return refused.reduce<number>((sum, count) => sum + count, 0);
}
