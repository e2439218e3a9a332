import { randomUUID } from "node:crypto";
import {
  type Job,
  type JobsOptions,
  type Processor,
  Queue,
  UnrecoverableError,
  Worker,
  type WorkerOptions,
} from "bullmq";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { jobOnce, withKey } from "../../../clients/typescript/src/bullmq.ts";
import { describeConsumerAdapter } from "../../support/adapters/consumer-suite.ts";
import { describeWithRedis, startRedis, type TestRedis } from "../../support/redis/redis.ts";
import { eventually, newTimedGuard, useGuards } from "./fixtures.ts";

const newGuard = useGuards();

describeWithRedis("A worker of BullMQ", () => {
  let redis: TestRedis;

  beforeAll(async () => {
    redis = await startRedis();
  });

  afterAll(() => redis?.stop());

  function newQueue() {
    const connection = { port: redis.port, maxRetriesPerRequest: null };
    const queue = new Queue(`charges-${randomUUID()}`, { connection });
    onTestFinished(() => queue.close());
    return {
      queue,
      connection,
      newWorker(processor: Processor, options: Partial<WorkerOptions> = {}) {
        const worker = new Worker(queue.name, processor, { connection, ...options });
        onTestFinished(() => worker.close());
      },
      ended: (job: Job) =>
        eventually(async () => {
          const found = await queue.getJob(job.id ?? "");
          if (found?.finishedOn === undefined) throw new Error("it has not ended");
          return found;
        }),
    };
  }

  function newConsumer(processor: Processor) {
    const { queue, newWorker, ended } = newQueue();
    newWorker(processor);
    const add = (data: object, options: JobsOptions = {}) => queue.add("charge", data, options);
    return { queue, add, ended };
  }

  describeConsumerAdapter(test, (onceward, options, fn) => {
    const { queue, connection, newWorker } = newQueue();
    const settings = { ...options, redeliverAfterMs: 50, onDelivery: () => {} };
    const processor = jobOnce(onceward, settings, (job: Job<{ body: string }>, claim) =>
      fn(job.data.body, claim),
    );
    let begun = false;
    let told = Promise.withResolvers<"settled" | "kept">();
    const begin = () => {
      begun = true;
      newWorker(
        async (job, token) => {
          const processed = processor(job, token);
          processed.then(
            () => told.resolve("settled"),
            (error) => told.resolve(error instanceof UnrecoverableError ? "settled" : "kept"),
          );
          return await processed;
        },
        { connection },
      );
    };
    return {
      async deliver({ key, body }) {
        told = Promise.withResolvers();
        if (!begun) begin();
        await queue.add("charge", key === undefined ? { body } : withKey(key, { body }), { attempts: 1 });
        return await told.promise;
      },
    };
  });

  test("a key without a time has that at which its job was added", async () => {
    const guard = newTimedGuard();
    const { add, ended } = newConsumer(jobOnce(guard.onceward, guard.options, () => "charged"));
    expect((await ended(await add(withKey("order-1", {})))).returnvalue).toBe("charged");
    const options = { timestamp: Date.now() - 120_000, attempts: 5 };
    const late = await ended(await add(withKey("order-2", {}), options));
    expect(late.failedReason).toContain("repeat it under a new key");
    expect(late.attemptsMade).toBe(1);
    expect(guard.kinds()).toEqual(["processed", "refused"]);
  });

  test("while another holder runs the operation, a job is delayed at the cost of no attempt", async () => {
    await using guard = await newGuard();
    const complete = await guard.holdElsewhere("order-1");
    const fn = vi.fn();
    const processor = jobOnce(guard.onceward, { ...guard.options, redeliverAfterMs: 50 }, fn);
    const { queue, add, ended } = newConsumer(processor);
    const job = await add(withKey("order-1", {}), { attempts: 1 });
    await eventually(() => expect(guard.kinds()).toEqual(["postponed", "postponed"]));
    expect(await queue.getFailedCount()).toBe(0);
    await complete();
    expect((await ended(job)).attemptsMade).toBe(1);
    expect(await job.isCompleted()).toBe(true);
    expect(guard.kinds()).toEqual(["postponed", "postponed", "duplicate"]);
    expect(fn).not.toHaveBeenCalled();
  });

  test("a job whose worker stalled after the effect is not performed again", async () => {
    await using guard = await newGuard();
    const fn = vi.fn(() => "charged");
    const processor = jobOnce(guard.onceward, guard.options, fn);
    const { queue, connection, newWorker, ended } = newQueue();
    const job = await queue.add("charge", withKey("order-1", {}));
    // It takes the job and performs it, but never reports to Redis; its lock expires.
    const silent = new Worker(queue.name, undefined, { connection, lockDuration: 100 });
    onTestFinished(() => silent.close(true));
    const taken = await silent.getNextJob("token");
    await processor(taken as Job, "token");
    newWorker(processor, { stalledInterval: 200 });
    expect((await ended(job)).returnvalue).toBe("charged");
    expect(guard.kinds()).toEqual(["processed", "duplicate"]);
    expect(fn).toHaveBeenCalledOnce();
  });

  test("an invalid key is refused when the job is added", () => {
    expect(() => withKey("", {})).toThrow("key must be 1-255 bytes of UTF-8, is 0");
  });
});
