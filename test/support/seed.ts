import { createHash } from "node:crypto";
import { createRandom, type Random } from "./random.ts";

/**
 * The seed of all random values on which the outcome of a test can depend: `ONCEWARD_TEST_SEED`, which
 * `vitest.config.ts` draws for a run and a failed run prints. Names, ids and secrets that only have to be unique
 * come from `node:crypto` instead: two runs beside each other must not share them.
 */
const SEED = process.env.ONCEWARD_TEST_SEED ?? "1";

/** Random values of one test, which repeat with the run's seed. */
export interface TestRandom extends Random {
  /** Returns random bytes. */
  bytes(length: number): Buffer;
  /** Returns a random UUID (RFC 9562, version 4). */
  uuid(): string;
}

/**
 * Returns the random values of one test or file.
 *
 * @param label names them, so that they depend neither on other tests nor on the order of files.
 */
export function randomFor(label: string): TestRandom {
  const random = createRandom(createHash("sha256").update(`${SEED}/${label}`).digest().readUInt32LE());
  const bytes = (length: number) => Buffer.from(Array.from({ length }, () => random.below(256)));
  const uuid = () => {
    const hex = bytes(16).toString("hex");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
  };
  return { ...random, bytes, uuid };
}
