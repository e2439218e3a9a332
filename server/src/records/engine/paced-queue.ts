import { setTimeout as delay } from "node:timers/promises";
import { type Deadline, isExpired } from "../../domain/operation.ts";
import { deadlinePassed, Refusal } from "../../domain/refusal.ts";
import { FairQueue } from "./fair-queue.ts";

/** Maximum queued tasks. A single lane may queue half of it. A call has one task queued at a time. */
const MAX_WAITING = 2000;
/** Shorter rests are added up before they are taken, because timers are no more precise. */
const MIN_REST_MS = 5;
/** A task that waited for a lock cost the database little, so the rest after it is limited. */
const MAX_REST_MS = 50;
const RETRY_AFTER_MS = 1000;

interface QueuedTask {
  readonly lane: number;
  readonly isExpired: boolean;
  readonly start: () => Promise<void>;
  readonly refuse: (refusal: Refusal) => void;
}

/**
 * Runs queued work: a bounded number of tasks at once, one of each lane, lanes in round-robin. Each slot rests for as long as its
 * task ran, so that the database has half of the time for other work.
 */
export function createPacedQueue({
  width,
}: {
  /** Maximum tasks at once. */
  readonly width: number;
}) {
  const queue = new FairQueue<QueuedTask>({
    maxItems: MAX_WAITING,
    weightOf: () => 1,
    maxInFlightOf: () => 1,
  });
  let busySlots = 0;
  let owedRestMs = 0;

  function startNext(): void {
    if (busySlots >= width || queue.size === 0) return;
    const started: QueuedTask[] = [];
    queue.take((task) => {
      if (task.isExpired) {
        task.refuse(deadlinePassed());
        return "remove";
      }
      if (busySlots >= width) return "keep";
      busySlots++;
      started.push(task);
      return "take";
    });
    for (const task of started) void runAndRest(task);
  }

  async function runAndRest(task: QueuedTask): Promise<void> {
    const startedAtMs = performance.now();
    await task.start();
    owedRestMs += performance.now() - startedAtMs;
    if (owedRestMs >= MIN_REST_MS) {
      const restMs = Math.min(owedRestMs, MAX_REST_MS);
      owedRestMs = 0;
      await delay(restMs);
    }
    busySlots--;
    queue.release(task.lane);
    startNext();
  }

  return {
    /**
     * Runs a task of a lane when its turn comes.
     *
     * @throws Refusal OVERLOADED if the queue is full, or DEADLINE_EXCEEDED if the deadline has passed when the
     *   turn comes: in both cases the task was not started. Otherwise the error that the task throws.
     */
    run<Result>(lane: number, deadline: Deadline, task: () => Promise<Result>): Promise<Result> {
      return new Promise((resolve, reject) => {
        const queued: QueuedTask = {
          lane,
          get isExpired() {
            return isExpired(deadline);
          },
          start: () => task().then(resolve, reject),
          refuse: reject,
        };
        if (queue.push(lane, queued)) return startNext();
        const overloaded = "This replica has too many queued administrative calls.";
        reject(new Refusal("OVERLOADED", overloaded, { retryAfterMs: RETRY_AFTER_MS }));
      });
    },
    /** Number of queued tasks that have not started. */
    get waiting(): number {
      return queue.size;
    },
  };
}
