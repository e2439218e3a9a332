import { expect, test } from "vitest";
import { createDatabaseClockWatch } from "./database-clock.ts";

const HOUR_MS = 3_600_000;
const STARTED_MS = 1_700_000_000_000;

/** Creates a watch whose uptime and database's clock a test moves. */
function newWatch() {
  const events: string[] = [];
  let nowMs = 0;
  let aheadMs = 0;
  const watch = createDatabaseClockWatch({
    onMoved: () => events.push("moved"),
    onAccepted: () => events.push("accepted"),
    nowMs: () => nowMs,
  });
  return {
    watch,
    events,
    /** Passes time on the uptime, moves the database's clock, and looks. */
    look(
      passedMs: number,
      movedMs = 0,
      options: { othersMovedMs?: number | undefined; tookMs?: number; ownAheadMs?: number } = {},
    ) {
      const { othersMovedMs, tookMs, ownAheadMs } = {
        othersMovedMs: 0,
        tookMs: 10,
        ownAheadMs: 0,
        ...options,
      };
      nowMs += passedMs;
      aheadMs += movedMs;
      const databaseMs = STARTED_MS + nowMs + aheadMs;
      watch.see(
        { startedAtMs: nowMs - tookMs / 2, endedAtMs: nowMs + tookMs / 2, databaseMs },
        othersMovedMs,
        ownAheadMs,
      );
    },
    /** Returns the bound, counted from the time on the course that the clock had first. */
    boundMs: () => (watch.latestMs() ?? Number.NaN) - STARTED_MS - nowMs,
  };
}

test("a clock that is slewed stays trusted", () => {
  const { watch, look, events } = newWatch();
  for (let looks = 0; looks < 100; looks++) look(3000, 100);
  expect([watch.hasMoved(), events]).toEqual([false, []]);
});

test.each([600_000, 80 * HOUR_MS, -600_000])(
  "a clock that moves by %d ms is not trusted until it is back",
  (ms) => {
    const { watch, look, events, boundMs } = newWatch();
    look(0);
    look(3000, ms);
    expect([watch.movedMs(), watch.hasMoved()]).toEqual([ms, true]);
    expect(boundMs()).toBe(1005);
    look(8000, -ms);
    expect([watch.movedMs(), watch.hasMoved(), events]).toEqual([0, false, ["moved", "accepted"]]);
  },
);

test("a new course is accepted after an hour on it", () => {
  const { watch, look } = newWatch();
  look(0);
  look(3000, 600_000);
  look(HOUR_MS / 2, -300_000);
  look(HOUR_MS - 1);
  expect(watch.movedMs()).toBe(300_000);
  look(1);
  expect([watch.movedMs(), watch.hasMoved()]).toEqual([0, false]);
});

test("a slow reading is not a move, and its error is part of the bound", () => {
  const { watch, look, boundMs } = newWatch();
  look(0, 2000, { tookMs: 5000 });
  look(3000, -2000);
  expect(watch.hasMoved()).toBe(false);
  expect(boundMs()).toBe(1005);
});

test("a replica that starts while the clock is ahead takes the course from the others", () => {
  const { watch, look, boundMs } = newWatch();
  look(0, 600_000, { othersMovedMs: 600_000 });
  expect([watch.movedMs(), watch.hasMoved(), boundMs()]).toEqual([600_000, true, 1005]);
});

test("a replica that took an old course from others follows them when they see the clock set", () => {
  const { watch, look, boundMs } = newWatch();
  look(0, 0, { othersMovedMs: 600_000 });
  expect([watch.movedMs(), boundMs()]).toEqual([600_000, 1005 - 600_000]);
  look(3000);
  expect([watch.movedMs(), watch.hasMoved(), boundMs()]).toEqual([0, false, 1005]);
});

test("a replica keeps the course of others that have stopped, also when the clock is set again", () => {
  const { watch, look } = newWatch();
  look(0, 600_000, { othersMovedMs: 600_000 });
  look(3000, 0, { othersMovedMs: undefined });
  expect(watch.movedMs()).toBe(600_000);
  look(3000, 60_000);
  expect(watch.movedMs()).toBe(660_000);
});

test("a replica that did not see the clock move bounds its time by the others that did", () => {
  const { watch, look, boundMs } = newWatch();
  look(0, 600_000);
  look(3000, 0, { othersMovedMs: 600_000 });
  expect([watch.movedMs(), watch.hasMoved(), boundMs()]).toEqual([0, true, 1005]);
});

const DAYS_MS = 30 * 24 * HOUR_MS;
const MINUTES_MS = 15 * 60_000;
const ALONE = { othersMovedMs: undefined };

test("a first reading that is ahead of this machine's clock is not trusted for an hour", () => {
  const { watch, look, boundMs } = newWatch();
  look(0, DAYS_MS, { ...ALONE, ownAheadMs: -DAYS_MS });
  expect([watch.movedMs(), watch.hasMoved(), boundMs()]).toEqual([DAYS_MS, true, MINUTES_MS + 1000]);
  look(HOUR_MS - 1, 0, { ...ALONE, ownAheadMs: -DAYS_MS });
  expect(watch.hasMoved()).toBe(true);
  look(1, 0, { ...ALONE, ownAheadMs: -DAYS_MS });
  expect([watch.hasMoved(), boundMs()]).toEqual([false, DAYS_MS + 1005]);
});

test("after such a reading, a clock that is set right is trusted at once, and exactly", () => {
  const { watch, look, boundMs } = newWatch();
  look(0, DAYS_MS, { ...ALONE, ownAheadMs: -DAYS_MS + 120_000 });
  look(3000, -DAYS_MS, { ...ALONE, ownAheadMs: 120_000 });
  expect([watch.movedMs(), watch.hasMoved(), boundMs()]).toEqual([0, false, 1005]);
});

test("replicas that started by a machine's fast clock follow one that is set right", () => {
  const [one, other] = [newWatch(), newWatch()];
  const fastMs = 600_000;
  const toldMs = DAYS_MS - fastMs;
  for (const { look } of [one, other]) look(0, DAYS_MS, { othersMovedMs: toldMs });
  for (const { look } of [one, other]) look(3000, -DAYS_MS, { othersMovedMs: toldMs });
  for (let looks = 0; looks < 2; looks++) {
    const [tells, hears] = [one.watch.movedMs(), other.watch.movedMs()];
    one.look(3000, 0, { othersMovedMs: hears });
    other.look(3000, 0, { othersMovedMs: tells });
  }
  for (const { watch, boundMs } of [one, other]) {
    expect([watch.movedMs(), watch.hasMoved(), boundMs()]).toEqual([0, false, 1005]);
  }
});

test("a first reading is trusted if another replica or this machine's clock agrees", () => {
  for (const options of [
    { othersMovedMs: 0, ownAheadMs: -DAYS_MS },
    { ...ALONE, ownAheadMs: DAYS_MS },
    { ...ALONE, ownAheadMs: -MINUTES_MS },
  ]) {
    const { watch, look, boundMs } = newWatch();
    look(0, 0, options);
    expect([watch.hasMoved(), boundMs()]).toEqual([false, 1005]);
  }
});
