import { setTimeout as delay } from "node:timers/promises";
import { type Deadline, isOver } from "../../domain/deadline.ts";
import { Refusal } from "../../domain/refusal.ts";
import { createFairQueue } from "./fair-queue.ts";

/** Work that has to wait for its turn: a bounded number at once, one of each lane, lanes one after another. */
export interface Turns {
  /**
   * Does work of a lane when its turn comes.
   *
   * @throws Refusal OVERLOADED if too much waits, or DEADLINE_EXCEEDED if the deadline has passed when the turn comes;
   *   either way the work was not begun. And whatever the work throws.
   */
  take<Result>(lane: number, deadline: Deadline, work: () => Promise<Result>): Promise<Result>;
  /** How much work waits for its turn. */
  readonly waiting: number;
}

export interface TurnsOptions {
  /** How much work is done at once. */
  readonly width: number;
}

/** Of all lanes together; a lane alone may have half of it. A call has one piece of work waiting at a time. */
const MAX_WAITING = 2000;
/** Shorter rests are saved up: a timer is no more precise. */
const MIN_REST_MS = 5;
/** Work that waited for a lock cost the database little, and the next one does not wait for as long once more. */
const MAX_REST_MS = 50;
const RETRY_AFTER_MS = 1000;

interface Turn {
  readonly lane: number;
  readonly isOver: boolean;
  readonly begin: () => Promise<void>;
  readonly refuse: (refusal: Refusal) => void;
}

/** Each place rests for as long as its work took, so that the database has half of the time for other work. */
export function createTurns({ width }: TurnsOptions): Turns {
  const queue = createFairQueue<Turn>({ maxItems: MAX_WAITING, weightOf: () => 1, maxInFlightOf: () => 1 });
  let taken = 0;
  let owedMs = 0;

  function next(): void {
    if (taken >= width || queue.size === 0) return;
    const begun: Turn[] = [];
    queue.take((turn) => {
      if (turn.isOver) {
        turn.refuse(expired());
        return "free";
      }
      if (taken >= width) return "stays";
      taken++;
      begun.push(turn);
      return "taken";
    });
    for (const turn of begun) void occupy(turn);
  }

  async function occupy(turn: Turn): Promise<void> {
    const begunAtMs = performance.now();
    await turn.begin();
    owedMs += performance.now() - begunAtMs;
    if (owedMs >= MIN_REST_MS) {
      const restMs = Math.min(owedMs, MAX_REST_MS);
      owedMs = 0;
      await delay(restMs);
    }
    taken--;
    queue.done(turn.lane);
    next();
  }

  return {
    take(lane, deadline, work) {
      return new Promise((resolve, reject) => {
        const turn: Turn = {
          lane,
          get isOver() {
            return isOver(deadline);
          },
          begin: () => work().then(resolve, reject),
          refuse: reject,
        };
        if (queue.push(lane, turn)) next();
        else reject(overloaded());
      });
    },
    get waiting() {
      return queue.size;
    },
  };
}

function expired(): Refusal {
  return new Refusal("DEADLINE_EXCEEDED", "The deadline passed before the database was reached.");
}

function overloaded(): Refusal {
  return new Refusal("OVERLOADED", "This replica has more administration queued than it takes on.", {
    retryAfterMs: RETRY_AFTER_MS,
  });
}
