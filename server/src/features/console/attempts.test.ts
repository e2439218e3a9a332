import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Refusal } from "../../core/domain/refusal.ts";
import { createAttempts } from "./attempts.ts";

const fail = () => Promise.reject(new Refusal("CREDENTIAL_INVALID", "The credential is not valid."));
const succeed = () => Promise.resolve("signed in");
const reasonOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => "none",
    (error: Refusal) => error.reason,
  );
const addressOf = (n: number) => `10.0.${n >> 8}.${n & 255}`;

// The time of a test stands still: no attempt comes back.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
});

afterEach(() => {
  vi.useRealTimers();
});

test("20 attempts of an address may fail; the next is refused without being made, and other addresses are not", async () => {
  const attempts = createAttempts();
  for (let each = 0; each < 20; each++)
    expect(await reasonOf(attempts.run("10.0.0.1", fail))).toBe("CREDENTIAL_INVALID");
  expect(await reasonOf(attempts.run("10.0.0.1", succeed))).toBe("QUOTA_RATE");
  expect(await attempts.run("10.0.0.2", succeed)).toBe("signed in");
});

test("200 attempts of all addresses may fail at once on a replica; attempts that succeed don't count", async () => {
  const attempts = createAttempts();
  for (let each = 0; each < 300; each++) await attempts.run(addressOf(each), succeed);
  for (let each = 0; each < 200; each++)
    expect(await reasonOf(attempts.run(addressOf(each), fail))).toBe("CREDENTIAL_INVALID");
  expect(await reasonOf(attempts.run("10.9.9.9", succeed))).toBe("QUOTA_RATE");
});

test("32 attempts are in progress at once; the next is refused until one has ended", async () => {
  const attempts = createAttempts();
  const ends: (() => void)[] = [];
  const wait = () => new Promise<void>((resolve) => ends.push(resolve));
  const running = Array.from({ length: 32 }, (_, n) => attempts.run(addressOf(n), wait));
  expect(await reasonOf(attempts.run("10.9.9.9", succeed))).toBe("OVERLOADED");
  ends.shift()?.();
  await running[0];
  expect(await attempts.run("10.9.9.9", succeed)).toBe("signed in");
  for (const end of ends) end();
  await Promise.all(running);
});
