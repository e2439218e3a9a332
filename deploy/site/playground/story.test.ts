import { expect, test } from "vitest";
import { type Choices, tellStory } from "./story.ts";

const CALM: Choices = {
  crashAtS: undefined,
  leaseS: 30,
  onLeaseExpiry: "RECLAIM",
  lateAfterH: undefined,
  lateKeys: "RUN",
};

async function effectsOf(choices: Partial<Choices>): Promise<number> {
  return (await tellStory({ ...CALM, ...choices })).effects;
}

test("without a crash, the second delivery gets the result of the first", async () => {
  const { effects, events } = await tellStory(CALM);
  expect(effects).toBe(1);
  expect(events.at(-1)).toMatchObject({
    who: "second worker",
    text: expect.stringContaining("stored result"),
    record: "completed",
  });
});

test.each([
  { crashAtS: 1, onLeaseExpiry: "RECLAIM", effects: 1, last: "completed" },
  { crashAtS: 3, onLeaseExpiry: "RECLAIM", effects: 2, last: "completed" },
  { crashAtS: 1, onLeaseExpiry: "HOLD", effects: 0, last: "ambiguous" },
  { crashAtS: 3, onLeaseExpiry: "HOLD", effects: 1, last: "ambiguous" },
] as const)(
  "a crash after $crashAtS s with $onLeaseExpiry: $effects effects",
  async ({ effects, last, ...choices }) => {
    const story = await tellStory({ ...CALM, ...choices });
    expect(story.effects).toBe(effects);
    expect(story.events.at(-1)?.record).toBe(last);
  },
);

test("a lease that is shorter than the work lets a second worker begin", async () => {
  const { effects, events } = await tellStory({ ...CALM, leaseS: 1 });
  expect(effects).toBe(2);
  expect(events).toContainEqual(
    expect.objectContaining({
      who: "first worker",
      kind: "refused",
      text: expect.stringMatching(/^Complete: refused/),
    }),
  );
});

test("a delivery within the retention is answered; a later one charges again unless refused", async () => {
  expect(await effectsOf({ lateAfterH: 71 })).toBe(1);
  expect(await effectsOf({ lateAfterH: 100 })).toBe(2);
  expect(await effectsOf({ lateAfterH: 100, lateKeys: "REFUSE" })).toBe(1);
});
