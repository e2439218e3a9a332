import pino from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Call } from "../access/call.ts";
import { NO_QUOTAS } from "../domain/quotas.ts";
import { makeTenant } from "../domain/tenant.ts";
import { createOperationLog } from "./after-operation.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
});

afterEach(() => {
  vi.useRealTimers();
});

function callOf(id: number): Call {
  const tenant = makeTenant({
    id,
    name: `tenant-${id}`,
    suspended: false,
    uid: "",
    cacheEpoch: { scope: "", askedAtMs: 0, databaseTimeMs: 0 },
    overrides: {},
    quotas: NO_QUOTAS,
  });
  return { principal: { role: "CALLER", tenant }, requestId: "request-1" } as Call;
}

/** Returns a function that refuses operations of a tenant, and the lines of the log. */
function startLog() {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => lines.push(JSON.parse(line)) });
  const note = createOperationLog({ count() {}, log, recordTarget: () => "a record" });
  return {
    lines,
    refuse(tenant: number, operations: number) {
      for (let n = 0; n < operations; n++) note("claim", "quota_rate", 1, undefined, callOf(tenant));
    },
  };
}

test("a tenant's refusals have 5 log lines a second; the next says how many are missing", () => {
  const { lines, refuse } = startLog();
  refuse(1, 60);
  expect(lines).toHaveLength(5);
  refuse(2, 1);
  expect(lines.at(-1)).toMatchObject({ tenant: "tenant-2", unlogged: 55 });
  vi.advanceTimersByTime(1000);
  refuse(1, 1);
  expect(lines).toHaveLength(7);
});

test("a second has 100 lines of all tenants' refused operations", () => {
  const { lines, refuse } = startLog();
  for (let tenant = 0; tenant < 300; tenant++) refuse(tenant, 4);
  expect(lines).toHaveLength(100);
});
