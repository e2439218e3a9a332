import { type Claim, createOnceward, type Onceward, type OncewardOptions } from "@onceward/client";
import { onTestFinished } from "vitest";
import type { HttpOptions } from "../../../clients/typescript/src/http.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database/database.ts";
import { startTestServer, type TestServer } from "../../support/servers/server.ts";
import { createTenant, type PolicyColumns } from "../../support/servers/tenants.ts";
import { type HttpAnswer, type HttpRequest, send } from "./http-client.ts";

/** The answer of a test's handler, for any framework. */
export interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cookies?: readonly string[];
  readonly body?: Uint8Array;
}

/** The effect of a handler: its calls are counted. */
export type Effect = (claim: Claim | undefined) => Promise<Reply> | Reply;

/** The options with the same meaning in every framework; the caller is the request's `x-account` header. */
export type CommonOptions = Omit<HttpOptions<object>, "caller">;

/** A running app, which calls the effect for every method on /charges/:id. */
export interface App {
  readonly port: number;
  /** Resolves when the next of the app's connections closes. */
  connectionClosed(): Promise<void>;
  close(): Promise<void>;
}

export type StartApp = (onceward: Onceward, options: CommonOptions, effect: Effect) => Promise<App>;

/** Starts an app with the test's handlers. */
export type Start = (onceward: Onceward, options: CommonOptions) => Promise<App>;

/** An app whose requests are guarded by a real service, with a new tenant; closed when the test ends. */
export interface World {
  readonly port: number;
  /** Sends a request, by default with an account and the key "order-1"; `key: null` sends no key. */
  send(request?: HttpRequest & { readonly key?: string | null }): Promise<HttpAnswer>;
  /** Applies SQL assignments to the tenant's records, for example to move their timestamps. */
  updateRecords(assignments: string): Promise<void>;
  /** Resolves when the next of the app's connections closes. */
  connectionClosed(): Promise<void>;
}

export interface WorldOptions {
  readonly options?: Partial<CommonOptions>;
  readonly policy?: PolicyColumns;
  /** The service's address in the app's client. Default: the real one. */
  readonly address?: string;
  /** Options of the app's client. */
  readonly client?: Pick<OncewardOptions, "timeoutMs" | "classifyError" | "onEvent">;
}

/** Starts the framework's app with the test's effect. */
export type Begin = (effect: Effect, options?: WorldOptions) => Promise<World>;

/** Creates the worlds of a test file: one service, and an app per test. */
export interface Worlds {
  start(): Promise<void>;
  begin(start: Start, options?: WorldOptions): Promise<World>;
  stop(): Promise<void>;
}

export function createWorlds(): Worlds {
  let database: TestDatabase;
  let server: TestServer;
  return {
    async start() {
      database = await createTestDatabase();
      server = await startTestServer(database.url);
    },
    async begin(start, { options, policy, address = `http://127.0.0.1:${server.grpcPort}`, client } = {}) {
      const tenant = await createTenant(database, policy);
      const onceward = createOnceward({ address, apiKey: tenant.apiKey, ...client });
      const app = await start(onceward, { namespace: "charges", ...options });
      onTestFinished(async () => {
        await app.close();
        await onceward.close();
      });
      return {
        port: app.port,
        send({ key = '"order-1"', headers, ...request } = {}) {
          const keyed = key === null ? {} : { "idempotency-key": key };
          return send(app.port, { ...request, headers: { "x-account": "a-1", ...keyed, ...headers } });
        },
        connectionClosed: () => app.connectionClosed(),
        async updateRecords(assignments) {
          await database.query(`update records set ${assignments} where tenant_id = $1`, [tenant.id]);
        },
      };
    },
    async stop() {
      await server?.stop();
      await database?.drop();
    },
  };
}
