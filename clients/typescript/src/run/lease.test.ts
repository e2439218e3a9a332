import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { OncewardError } from "../errors/errors.ts";
import { type ExtendLeaseResponse, ExtendLeaseResponseSchema } from "../gen/onceward/v1/idempotency_pb.ts";
import { Lease } from "./lease.ts";
import { leaseNowMs } from "./lease-clock.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "Date"] });
});

afterEach(() => {
  vi.useRealTimers();
});

const LEASE_MS = 3000;

/**
 * A lease of 3 s that was just granted. `sentAtMs` of each heartbeat is kept; `reply` is the answer to it.
 */
function grantedLease(reply: () => Promise<ExtendLeaseResponse>) {
  const heartbeatsAtMs: number[] = [];
  const startMs = performance.now();
  const lease = new Lease(() => {
    heartbeatsAtMs.push(performance.now() - startMs);
    return reply();
  });
  lease.granted(leaseNowMs(), LEASE_MS);
  return { lease, heartbeatsAtMs };
}

function extended(): Promise<ExtendLeaseResponse> {
  return Promise.resolve(create(ExtendLeaseResponseSchema, { leaseRemaining: durationFromMs(LEASE_MS) }));
}

function refused(reason: string): Promise<ExtendLeaseResponse> {
  return Promise.reject(new OncewardError(reason, "refused"));
}

test("a heartbeat is sent at every third of the lease, and the signal does not abort", async () => {
  const { lease, heartbeatsAtMs } = grantedLease(extended);
  const { signal } = lease;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(heartbeatsAtMs).toEqual([1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10_000]);
  expect(signal.aborted).toBe(false);
  lease.end();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(heartbeatsAtMs).toHaveLength(10);
});

test("after a takeover, a signal is aborted when it is read, and no heartbeat follows", async () => {
  const { lease, heartbeatsAtMs } = grantedLease(() => refused("CLAIM_SUPERSEDED"));
  await vi.advanceTimersByTimeAsync(10_000);
  expect(lease.signal.reason).toMatchObject({ reason: "CLAIM_SUPERSEDED" });
  expect(heartbeatsAtMs).toEqual([1000]);
});

test("after a suspension the loss is noticed within a second, with any lease", async () => {
  const lease = new Lease(() => new Promise(() => {}));
  lease.granted(leaseNowMs(), 60_000);
  const { signal } = lease;
  // The timers had stopped.
  vi.setSystemTime(Date.now() + 60_000);
  await vi.advanceTimersByTimeAsync(1000);
  expect(signal.reason).toMatchObject({ reason: "LEASE_LOST" });
});

test("after a stall the loss is noticed on the first turn; a heartbeat renews the lease", async () => {
  const { lease, heartbeatsAtMs } = grantedLease(extended);
  const { signal } = lease;
  const stalled = vi.spyOn(performance, "now").mockReturnValue(performance.now() + 60_000);
  await vi.advanceTimersByTimeAsync(1000);
  stalled.mockRestore();
  expect(signal.reason).toMatchObject({ reason: "LEASE_LOST" });
  expect(heartbeatsAtMs).toHaveLength(1);
  lease.end();
});
