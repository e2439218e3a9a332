import { Code, ConnectError, type Transport, type UnaryResponse } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Replicas } from "./replicas.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
});

afterEach(() => {
  vi.useRealTimers();
});

/** A replica that answers, or does not, and can be connected to, or not. */
class FakeReplica {
  calls = 0;
  answers = true;
  reachable = true;
  failure = new ConnectError("connect ECONNREFUSED", Code.Unavailable);
  readonly close = vi.fn();
  readonly isReachable = vi.fn(async () => this.reachable);

  readonly transport: Transport = {
    unary: async () => {
      this.calls++;
      if (!this.answers) throw this.failure;
      return {} as UnaryResponse<never, never>;
    },
    stream: () => Promise.reject(new Error("no streams")),
  };
}

type Call = Parameters<Transport["unary"]>;

/** So many calls, one after another; those that fail are of no interest. */
async function call(replicas: Replicas, times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    await Promise.allSettled([replicas.unary(...([] as unknown as Call))]);
  }
}

function newReplicas(count: number) {
  const fakes = Array.from({ length: count }, () => new FakeReplica());
  return { replicas: new Replicas(fakes), fakes, calls: () => fakes.map(({ calls }) => calls) };
}

test("each call goes to the next replica", async () => {
  const { replicas, calls } = newReplicas(3);
  await call(replicas, 9);
  expect(calls()).toEqual([3, 3, 3]);
});

test("a replica that did not answer gets no calls while others are up", async () => {
  const { replicas, fakes, calls } = newReplicas(2);
  for (const fake of fakes.slice(0, 1)) Object.assign(fake, { answers: false, reachable: false });
  await call(replicas, 10);
  expect(calls()).toEqual([1, 9]);
  vi.advanceTimersByTime(60_000);
  await call(replicas, 10);
  expect(calls()).toEqual([1, 19]);
});

test("a replica that is up again gets its share after the next probe", async () => {
  const { replicas, fakes, calls } = newReplicas(2);
  for (const fake of fakes.slice(0, 1)) fake.answers = false;
  await call(replicas, 2);
  for (const fake of fakes) fake.answers = true;
  await call(replicas, 10);
  expect(calls()).toEqual([1, 11]);
  vi.advanceTimersByTime(500);
  await call(replicas, 10);
  expect(calls()[0]).toBeGreaterThanOrEqual(5);
});

test("a replica that stays down is probed at growing intervals, up to 30 s", async () => {
  const { replicas, fakes } = newReplicas(2);
  const [away] = fakes;
  Object.assign(away ?? {}, { answers: false, reachable: false });
  await call(replicas, 2);
  for (let second = 0; second < 300; second++) {
    vi.advanceTimersByTime(1000);
    await call(replicas, 1);
  }
  const looks = away?.isReachable.mock.calls.length ?? 0;
  expect(looks).toBeGreaterThanOrEqual(10);
  expect(looks).toBeLessThanOrEqual(20);
});

test("with all replicas down, calls go to all", async () => {
  const { replicas, fakes, calls } = newReplicas(2);
  for (const fake of fakes) Object.assign(fake, { answers: false, reachable: false });
  await call(replicas, 10);
  expect(calls()).toEqual([5, 5]);
});

test("a refusal is an answer", async () => {
  const { replicas, fakes, calls } = newReplicas(2);
  for (const fake of fakes.slice(0, 1)) {
    Object.assign(fake, { answers: false, failure: new ConnectError("no", Code.InvalidArgument) });
  }
  await call(replicas, 10);
  expect(calls()).toEqual([5, 5]);
});

test("closing closes every replica's connection", () => {
  const { replicas, fakes } = newReplicas(2);
  replicas.close();
  for (const { close } of fakes) expect(close).toHaveBeenCalledOnce();
});
