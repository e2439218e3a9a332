import type { OncewardEvent } from "@onceward/client";
import express from "express";
import Fastify from "fastify";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { expressWays } from "./express-ways.ts";
import { fastifyWays } from "./fastify-ways.ts";
import { fetchWays, honoWays } from "./fetch-ways.ts";
import { type CommonOptions, createWorlds, type World } from "./http-world.ts";
import { type Moment, Steps } from "./steps.ts";
import { type Ending, pathOf, type WaysToAnswer } from "./ways-to-answer.ts";

const FRAMEWORKS: Record<string, WaysToAnswer> = {
  Express: expressWays(express),
  Fastify: fastifyWays(Fastify),
  Hono: honoWays,
  fetch: fetchWays,
};

const MOMENTS: readonly Moment[] = ["claimed", "begun", "written", "answered"];

/** Returns every way to answer with this ending, with every step at which the client can disconnect early. */
function cells({ ways }: WaysToAnswer, ending: Ending): [way: string, moment: Moment][] {
  return Object.entries(ways)
    .filter(([, way]) => way.ending === ending)
    .flatMap(([name, { inParts }]) =>
      MOMENTS.filter((moment) => inParts || moment !== "written").map((moment): [string, Moment] => [
        name,
        moment,
      ]),
    );
}

/** Enough for a claim that is released too late to be found: without order, a third of the repeats find it. */
const REPEATS = 20;

const worlds = createWorlds();
beforeAll(() => worlds.start());
afterAll(() => worlds.stop());

describe.each(Object.entries(FRAMEWORKS))("%s", (_, framework) => {
  /** Starts an app that stops at a step; `told` resolves once the client has reported an event of a type. */
  async function begin(moment: Moment | undefined, more: Partial<CommonOptions> = {}) {
    const steps = new Steps(moment);
    const events: OncewardEvent[] = [];
    const world = await worlds.begin(
      (onceward, options) => framework.start(steps.runner(onceward), options, steps),
      {
        options: { waitMs: 10_000, ...more },
        client: { onEvent: (event) => events.push(event) },
      },
    );
    onTestFinished(steps.resume);
    const told = (type: OncewardEvent["type"]) =>
      vi.waitFor(() => expect(events).toContainEqual(expect.objectContaining({ type })), { timeout: 30_000 });
    return { steps, world, events, told };
  }

  test.each(cells(framework, "answers").filter(([, moment]) => moment === "claimed"))(
    "%s is replayed as answered to a client that stays connected",
    async (way) => {
      const { steps, world } = await begin(undefined);
      const first = await world.send({ path: pathOf(way) });
      const repeat = await world.send({ path: pathOf(way) });
      expect(first.status).toBeLessThan(500);
      expect(repeat).toMatchObject({ status: first.status, body: first.body });
      expect(repeat.headers["content-type"]).toBe(first.headers["content-type"]);
      expect(repeat.headers["idempotency-replayed"]).toBe("true");
      expect(steps.effects).toBe(1);
    },
  );

  test.each(cells(framework, "answers"))(
    "%s is replayed if its client disconnects when %s",
    async (way, moment) => {
      const { steps, world, told } = await begin(moment);
      await leave(world, way, steps.stopped);
      const repeat = world.send({ path: pathOf(way) });
      // A repeat waits for the first request, unless that one has claimed nothing yet.
      if (moment !== "claimed") await Promise.race([told("waiting"), repeat]);
      steps.resume();
      expect((await repeat).status).toBeLessThan(409);
      if (moment !== "claimed") expect((await repeat).headers["idempotency-replayed"]).toBe("true");
      expect(steps.effects).toBe(1);
    },
  );

  test.each(cells(framework, "fails"))(
    "%s runs again if its client disconnects when %s",
    async (way, moment) => {
      const { steps, world, told } = await begin(moment);
      await leave(world, way, steps.stopped);
      const repeat = world.send({ path: pathOf(way) });
      repeat.catch(() => {});
      if (moment !== "claimed") await Promise.race([told("waiting"), repeat]);
      steps.resume();
      await vi.waitFor(() => expect(steps.effects).toBe(2), { timeout: 30_000 });
      await Promise.allSettled([repeat]);
      expect(steps.concurrentEffects).toBe(1);
    },
  );

  test.each(cells(framework, "fails").filter(([, moment]) => moment === "claimed"))(
    "%s runs again for a repeat that does not wait, as soon as its client has the answer",
    async (way) => {
      const { steps, world } = await begin(undefined, { waitMs: 0 });
      const statuses: (number | "cut short")[] = [];
      for (let count = 1; count <= REPEATS; count++) {
        statuses.push(
          await world.send({ path: pathOf(way) }).then(
            ({ status }) => status,
            () => "cut short" as const,
          ),
        );
      }
      expect(statuses).not.toContain(409);
      expect(steps.effects).toBe(REPEATS);
    },
  );

  test.each(cells(framework, "breaks"))(
    "%s is left to the policy if its client disconnects when %s",
    async (way, moment) => {
      const { steps, world, told } = await begin(moment);
      await leave(world, way, steps.stopped);
      steps.resume();
      await told("abandoned");
      expect(steps.effects).toBe(1);
    },
  );

  test.each(cells(framework, "never ends").filter(([, moment]) => moment !== "answered"))(
    "%s is abandoned if its client disconnects when %s",
    async (way, moment) => {
      const { steps, world, events, told } = await begin(moment, { abandonAfterMs: 50 });
      await leave(world, way, steps.stopped);
      steps.resume();
      await told("abandoned");
      expect(steps.claims[0]?.signal.aborted).toBe(true);
      expect(events.map(({ type }) => type)).not.toContain("released");
      // Nothing else runs until the lease expires; then the policy decides.
      const repeat = world.send({ path: pathOf(way) });
      repeat.catch(() => {});
      await told("waiting");
      expect(steps.effects).toBe(1);
      await world.updateRecords("lease_expires_at = now() - interval '1 s'");
      await vi.waitFor(() => expect(steps.effects).toBe(2), { timeout: 30_000 });
    },
  );
});

/** Sends a request, and disconnects at a step; resolves when the server has noticed. */
async function leave(world: World, way: string, moment: Promise<void>): Promise<void> {
  const leaving = new AbortController();
  const left = world.send({ path: pathOf(way), signal: leaving.signal });
  const closed = world.connectionClosed();
  await Promise.race([moment, left]);
  leaving.abort();
  await expect(left).rejects.toThrow();
  await closed;
}
