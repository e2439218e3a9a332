import { createOnceward, type Onceward } from "@onceward/client";
import { createTestingOnceward } from "@onceward/client/testing";
import { onTestFinished, vi } from "vitest";
import type { Delivery } from "../../../clients/typescript/src/consumers/delivery.ts";
import type { TestDatabase } from "../../support/database/database.ts";
import { startTcpProxy } from "../../support/network/tcp-proxy.ts";
import type { TestServer } from "../../support/servers/server.ts";
import { createTenant, setNamespacePolicy, type TestTenant } from "../../support/servers/tenants.ts";
import { useServer } from "../../support/servers/use-server.ts";

/** A client of a new tenant, and the deliveries that its consumers reported. */
export interface Guarded extends AsyncDisposable {
  readonly onceward: Onceward;
  readonly tenant: TestTenant;
  readonly address: string;
  readonly deliveries: Delivery[];
  /** Options of every adapter. */
  readonly options: { readonly namespace: string; readonly onDelivery: (delivery: Delivery) => void };
  /** The kinds of deliveries so far. */
  kinds(): string[];
  /** Lets another holder claim the key; resolves to a function that completes the claim. */
  holdElsewhere(key: string): Promise<() => Promise<void>>;
  /** Ends the lease of every claim. */
  endLeases(): Promise<void>;
  /** From now on, a claim whose lease has expired is ambiguous. */
  holdExpired(): Promise<void>;
  /** From now on, keys that are too old are refused. */
  refuseLateKeys(): Promise<void>;
}

/** Starts a server for the test file; each call of the returned function creates a tenant. */
export function useGuards(): () => Promise<Guarded> {
  const { database, server } = useServer();
  return async () => guardOf(database, server);
}

const NAMESPACE = "charges";

async function guardOf(database: TestDatabase, server: TestServer): Promise<Guarded> {
  const tenant = await createTenant(database);
  const address = `http://127.0.0.1:${server.grpcPort}`;
  const onceward = createOnceward({ address, apiKey: tenant.apiKey });
  const deliveries: Delivery[] = [];
  const holds: (() => void)[] = [];
  return {
    onceward,
    tenant,
    address,
    deliveries,
    options: { namespace: NAMESPACE, onDelivery: (delivery) => deliveries.push(delivery) },
    kinds: () => deliveries.map(({ kind }) => kind),
    async holdElsewhere(key) {
      const begun = Promise.withResolvers<void>();
      const held = Promise.withResolvers<void>();
      const run = onceward.run({ namespace: NAMESPACE, key, owner: "elsewhere" }, async () => {
        begun.resolve();
        await held.promise;
      });
      holds.push(held.resolve);
      await begun.promise;
      return async () => {
        held.resolve();
        await run;
      };
    },
    async endLeases() {
      await database.query(
        "update records set lease_expires_at = now() - interval '1 s' where tenant_id = $1",
        [tenant.id],
      );
    },
    holdExpired: () => setNamespacePolicy(database, tenant, NAMESPACE, { on_lease_expiry: "HOLD" }),
    refuseLateKeys: () => setNamespacePolicy(database, tenant, NAMESPACE, { late_keys: "REFUSE" }),
    async [Symbol.asyncDispose]() {
      for (const end of holds) end();
      await onceward.close();
    },
  };
}

/**
 * Creates a service in memory that remembers keys for a minute, and refuses those whose time is unknown: a message with the key
 * of an order is processed only if the adapter reads the message's own time.
 */
export function newTimedGuard(): Pick<Guarded, "onceward" | "options" | "kinds"> {
  const { onceward } = createTestingOnceward({ policy: { lateKeys: "REQUIRE_TIME", keyRetentionS: 60 } });
  onTestFinished(() => onceward.close());
  const kinds: string[] = [];
  const options = { namespace: NAMESPACE, onDelivery: ({ kind }: Delivery) => kinds.push(kind) };
  return { onceward, options, kinds: () => kinds };
}

/** Creates a client of the guard's tenant that cannot reach the service until `heal`. */
export async function cutOff({ address, tenant }: Guarded): Promise<{ onceward: Onceward; heal(): void }> {
  const proxy = await startTcpProxy(Number(new URL(address).port));
  proxy.setMode("refuse");
  const { apiKey } = tenant;
  const onceward = createOnceward({ address: `http://127.0.0.1:${proxy.port}`, apiKey, timeoutMs: 100 });
  onTestFinished(async () => {
    await onceward.close();
    await proxy.close();
  });
  return { onceward, heal: () => proxy.setMode("forward") };
}

/** Creates a function that runs until `end` is called, and counts how often it runs at once. */
export function newCrowd(): { work(): Promise<void>; end(): void; most(): number } {
  const ended = Promise.withResolvers<void>();
  let running = 0;
  let most = 0;
  return {
    async work() {
      most = Math.max(most, ++running);
      await ended.promise;
      running--;
    },
    end: ended.resolve,
    most: () => most,
  };
}

/** Waits until an assertion about a broker or a consumer holds. */
export function eventually<T>(assertion: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(assertion, { timeout: 30_000 });
}

/** Returns the warnings of the process during a test: their codes, or else their messages. */
export function collectWarnings(): string[] {
  const warnings: string[] = [];
  const spy = vi.spyOn(process, "emitWarning");
  spy.mockImplementation((warning: string | Error, options?: unknown) => {
    const { code } = (options ?? {}) as { code?: string };
    warnings.push(code ?? (warning instanceof Error ? warning.message : warning));
  });
  onTestFinished(() => spy.mockRestore());
  return warnings;
}
