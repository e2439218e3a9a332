import { setImmediate as nextTurn } from "node:timers/promises";
import pino from "pino";
import { expect, test } from "vitest";
import { NO_QUOTAS } from "../domain/quotas.ts";
import { Refusal } from "../domain/refusal.ts";
import { makeTenant, type Principal } from "../domain/tenant.ts";
import { TenantAdminService } from "../gen/onceward/v1/tenant_admin_pb.ts";
import { BUDGET_SHARE } from "./bounds/memory-limit.ts";
import { createPipeline, type IncomingCall } from "./pipeline.ts";
import type { Route } from "./route.ts";

function administrator(id: number): Principal {
  const tenant = makeTenant({
    id,
    name: `tenant-${id}`,
    suspended: false,
    uid: "",
    cacheEpoch: { scope: "", askedAtMs: 0, databaseTimeMs: 0 },
    overrides: {},
    quotas: NO_QUOTAS,
  });
  return { role: "TENANT_ADMIN", actor: "a key", tenant, namespaces: undefined, goodUntilMs: Infinity };
}

/** A route whose calls are refused by a quota. */
const ROUTE: Route = {
  path: "/onceward.v1.TenantAdminService/GetTenant",
  method: TenantAdminService.method.getTenant,
  role: "TENANT_ADMIN",
  handle() {
    throw new Refusal("QUOTA_RATE", "The tenant may make 1 operations a second.");
  },
};

/** Returns a call from an address of a tenant; the credential is the tenant's id, or empty. */
function incomingCall(tenant: number, credential: string): IncomingCall {
  return {
    peer: `10.0.0.${tenant}`,
    header: (name) => (name === "authorization" ? credential : undefined),
    sessionCookie: undefined,
    cancelled: false,
    timeoutMs: undefined,
    receive: () => ({ bytes: Buffer.alloc(0), format: "binary", compression: undefined }),
    signal: new AbortController().signal,
  };
}

/** Returns a function that makes calls of a tenant, and a list of the tenants of answered calls. */
function startPipeline(replaced: { readonly authenticate?: () => Promise<Principal> } = {}) {
  const answered: number[] = [];
  const pipeline = createPipeline({
    authenticator: {
      cachedPrincipal: (credential) => (credential === "" ? undefined : administrator(Number(credential))),
      authenticate: () => Promise.reject(new Refusal("CREDENTIAL_MISSING", "none")),
      ...replaced,
      authenticateSession: () => Promise.reject(new Refusal("CREDENTIAL_MISSING", "none")),
    },
    admission: { startCall: () => undefined, countMessage() {}, admitBatch() {} },
    defaultTimeoutMs: 60_000,
    denials: { note() {} },
    log: pino({ level: "silent" }),
    metrics: { rpcDuration: { observe() {} } as never },
  });
  function call(tenant: number, calls: number, credential = String(tenant)): void {
    const incoming = incomingCall(tenant, credential);
    for (let each = 0; each < calls; each++) {
      pipeline.answer(ROUTE, incoming, () => undefined).catch(() => answered.push(tenant));
    }
  }
  /** Opens streams without a credential. */
  function open(tenant: number, streams: number): void {
    const head = incomingCall(tenant, "");
    for (let each = 0; each < streams; each++)
      pipeline.authenticate(ROUTE, head).catch(() => answered.push(tenant));
  }
  return { call, open, answered, answer: pipeline.answer, callsInFlight: pipeline.callsInFlight };
}

test("8 refused calls of a tenant are answered in a turn; another tenant's are not delayed", async () => {
  const { call, answered, callsInFlight } = startPipeline();
  call(1, 60);
  call(2, 1);
  await nextTurn();
  // The turn in which they arrived, and the one after it.
  expect(answered.filter((tenant) => tenant === 1).length).toBeLessThanOrEqual(16);
  expect(answered.indexOf(2)).toBeLessThanOrEqual(8);
  for (let turn = 0; turn < 7; turn++) await nextTurn();
  expect(answered).toHaveLength(61);
  expect(callsInFlight()).toBe(0);
});

test("refused calls of callers who are not known are counted for their address", async () => {
  const { call, answered } = startPipeline();
  call(1, 60, "");
  call(2, 1, "");
  await nextTurn();
  expect(answered.indexOf(2)).toBeLessThanOrEqual(8);
});

test("refused streams take the same turns as refused calls", async () => {
  const { call, open, answered } = startPipeline();
  open(1, 60);
  call(1, 60, "");
  open(2, 1);
  await nextTurn();
  expect(answered.filter((tenant) => tenant === 1).length).toBeLessThanOrEqual(16);
  expect(answered.indexOf(2)).toBeLessThanOrEqual(8);
});

test("a refused call whose caller leaves waits for no turn, and leaves its place to others", async () => {
  const { answer, call, answered, callsInFlight } = startPipeline();
  call(1, 8);
  const leaving = new AbortController();
  const incoming = { ...incomingCall(1, "1"), signal: leaving.signal };
  const left = Promise.allSettled(Array.from({ length: 8 }, () => answer(ROUTE, incoming, () => undefined)));
  call(1, 8);
  leaving.abort();
  let turns = 0;
  for (; callsInFlight() > 0; turns++) await nextTurn();
  await left;
  // As if those who left had never called.
  expect([turns, answered.length]).toEqual([2, 16]);
});

test("16,384 credentials are looked up at once; the next call is refused", async () => {
  const { answer } = startPipeline({ authenticate: () => new Promise(() => {}) });
  const lookUp = () => answer(ROUTE, incomingCall(1, ""), () => undefined);
  for (let each = 0; each < 16_384; each++) lookUp().catch(() => {});
  await expect(lookUp()).rejects.toThrow("more callers to look up");
});

test("128 MiB of large messages are in progress at once; the next one is refused", async () => {
  const { answer } = startPipeline();
  const route = { ...ROUTE, handle: () => new Promise<never>(() => {}) };
  // One unknown field that fills 16 MiB.
  const bytes = Buffer.alloc(16 * 1024 * 1024);
  bytes.set([0x82, 0x7d, 0xfa, 0xff, 0xff, 0x07]);
  const call = {
    ...incomingCall(1, "1"),
    receive: () => ({ bytes, format: "binary", compression: undefined }),
  };
  const send = () => answer(route, call as IncomingCall, () => undefined);
  for (let each = 0; each < Math.floor(8 * BUDGET_SHARE); each++) send().catch(() => {});
  await expect(send()).rejects.toThrow("more large messages in flight");
});
