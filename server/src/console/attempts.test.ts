import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Refusal } from "../domain/refusal.ts";
import { type Attempts, createAttempts } from "./attempts.ts";

const fail = () => Promise.reject(new Refusal("CREDENTIAL_INVALID", "The credential is not valid."));
const succeed = () => Promise.resolve("signed in");
const reasonOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => "none",
    (error: Refusal) => error.reason,
  );
const addressOf = (n: number) => `10.0.${n >> 8}.${n & 255}`;

// The time of a test does not pass: no attempt comes back.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
});

afterEach(() => {
  vi.useRealTimers();
});

/** Lets attempts fail until the next failure of their addresses is one too many. */
async function exhaust(attempts: Attempts, failures: number, peerOf: (n: number) => string): Promise<void> {
  for (let n = 0; n < failures; n++)
    expect(await reasonOf(attempts.run(peerOf(n), fail))).toBe("CREDENTIAL_INVALID");
}

test("20 attempts of an address may fail; only that address's next failure is refused", async () => {
  const attempts = createAttempts();
  await exhaust(attempts, 20, () => "10.0.0.1");
  expect(await reasonOf(attempts.run("10.0.0.1", fail))).toBe("QUOTA_RATE");
  expect(await reasonOf(attempts.run("10.0.0.2", fail))).toBe("CREDENTIAL_INVALID");
});

test("a right credential signs in despite failures of its address; the issuer is not asked", async () => {
  const attempts = createAttempts();
  await exhaust(attempts, 20, () => "10.0.0.1");
  for (let n = 0; n < 30; n++) expect(await attempts.run("10.0.0.1", succeed)).toBe("signed in");
  const ask = vi.fn(succeed);
  expect(await reasonOf(attempts.runAtIssuer("10.0.0.1", ask))).toBe("QUOTA_RATE");
  expect(ask).not.toHaveBeenCalled();
  expect(await attempts.runAtIssuer("10.0.0.2", ask)).toBe("signed in");
});

test("200 attempts may fail at once on a replica; successful ones don't count", async () => {
  const attempts = createAttempts();
  for (let n = 0; n < 300; n++) await attempts.run(addressOf(n), succeed);
  await exhaust(attempts, 200, addressOf);
  expect(await reasonOf(attempts.run("10.9.9.9", fail))).toBe("QUOTA_RATE");
  expect(await reasonOf(attempts.runAtIssuer("10.9.9.9", succeed))).toBe("QUOTA_RATE");
  expect(await attempts.run("10.9.9.9", succeed)).toBe("signed in");
});

test("a failing address has 4 attempts in progress, and leaves other places to others", async () => {
  const attempts = createAttempts();
  await exhaust(attempts, 20, () => "10.0.0.1");
  const held = Promise.withResolvers<void>();
  const running = Array.from({ length: 4 }, () => attempts.run("10.0.0.1", () => held.promise));
  expect(await reasonOf(attempts.run("10.0.0.1", succeed))).toBe("QUOTA_RATE");
  expect(await attempts.run("10.0.0.2", succeed)).toBe("signed in");
  held.resolve();
  await Promise.all(running);
  expect(await attempts.run("10.0.0.1", succeed)).toBe("signed in");
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
