import { randomBytes } from "node:crypto";
import type { Violations } from "./violations.ts";

/** Something that grants keys once and replays results; a token proves a grant. */
export interface Target<Token> {
  readonly name: string;
  /** Undefined: somebody else has the key. */
  claim(key: string): Promise<Token | undefined>;
  complete(key: string, token: Token, payload: Uint8Array): Promise<void>;
  /** The stored result; undefined: there is none. */
  replay(key: string): Promise<Uint8Array | undefined>;
  /** How many keys are stored, of those that were claimed through this target. */
  countKeys(): Promise<number>;
}

/** A SHA-256, as a caller's request would have. */
export const FINGERPRINT = new Uint8Array(randomBytes(32));
/** Longer than anything is measured: a key that is claimed again for verification must not have become free. */
export const LEASE = { seconds: 600n };
/** As JSON of a small reply is. */
const PAYLOAD_BYTES = 200;
/** Of every key, so that a message with one key in it is as long as with another. */
export const KEY_LENGTH = 24;

/** Keys that were never used: unique, and in no order, as UUIDs are, so that inserts go everywhere in the index. */
export function freshKeys(): () => string {
  const run = randomBytes(8)
    .toString("hex")
    .slice(0, KEY_LENGTH - 9);
  let count = 0;
  // Multiplying by an odd number modulo 2^32 gives each number once. (Knuth, TAOCP 6.4: multiplicative hashing.)
  return () => `${(Math.imul(++count, 0x9e3779b1) >>> 0).toString(16).padStart(8, "0")}-${run}`;
}

/** Which of so many shares a key belongs to: always the same one. */
export function shareOf(key: string, shares: number): number {
  return Number.parseInt(key.slice(0, 8), 16) % shares;
}

/** The result that is stored for a key, and has to come back. */
export function payloadOf(key: string, bytes = PAYLOAD_BYTES): Buffer {
  return Buffer.from(JSON.stringify({ key, status: "done", note: "" }).padEnd(bytes, " "));
}

/** How many of the claimed keys are claimed again afterwards. */
const REPEATED = 200;
/** From one key to the next that is claimed again. */
const REPEAT_EVERY = 97;

/** Claims of fresh keys on a target, which all have to be granted, and once. */
export class FreshClaims<Token> {
  readonly #target: Target<Token>;
  readonly #violations: Violations;
  readonly #nextKey = freshKeys();
  readonly #repeated: string[] = [];
  #granted = 0;

  constructor(target: Target<Token>, violations: Violations) {
    this.#target = target;
    this.#violations = violations;
  }

  /** Claims a fresh key. */
  readonly claim = async (): Promise<void> => {
    await this.#claim(this.#nextKey());
  };

  /** Claims a fresh key and completes it. */
  readonly pair = async (): Promise<void> => {
    await this.pairOf(PAYLOAD_BYTES);
  };

  /** Claims a fresh key and completes it with a payload of so many bytes. */
  async pairOf(payloadBytes: number): Promise<void> {
    const key = this.#nextKey();
    const token = await this.#claim(key);
    if (token !== undefined) await this.#target.complete(key, token, payloadOf(key, payloadBytes));
  }

  /** Not timed: each grant has a row besides those of others, and a key that was granted isn't granted again. */
  async verify(othersKeys = 0): Promise<void> {
    const { name } = this.#target;
    const stored = (await this.#target.countKeys()) - othersKeys;
    if (stored !== this.#granted)
      this.#violations.add(`${name}: ${this.#granted} claims granted, ${stored} stored`);
    const again = this.#repeated.map(async (key) => {
      if ((await this.#target.claim(key)) !== undefined)
        this.#violations.add(`${name}: ${key} granted twice`);
    });
    await Promise.all(again);
  }

  async #claim(key: string): Promise<Token | undefined> {
    const token = await this.#target.claim(key);
    if (token === undefined) {
      this.#violations.add(`${this.#target.name}: the fresh key ${key} was not granted`);
      return undefined;
    }
    this.#granted++;
    if (this.#granted % REPEAT_EVERY === 0 && this.#repeated.length < REPEATED) this.#repeated.push(key);
    return token;
  }
}

/** Completes so many keys through a target, and answers what replays one of them at random and compares the bytes. */
export async function prepareReplays<Token>(
  target: Target<Token>,
  keyCount: number,
  violations: Violations,
): Promise<{ readonly among: (count: number) => () => Promise<void> }> {
  const nextKey = freshKeys();
  const keys = Array.from({ length: keyCount }, nextKey);
  const left = keys[Symbol.iterator]();
  const worker = async () => {
    for (const key of left) {
      const token = await target.claim(key);
      if (token === undefined) violations.add(`${target.name}: the fresh key ${key} was not granted`);
      else await target.complete(key, token, payloadOf(key));
    }
  };
  await Promise.all(Array.from({ length: PREPARING_CALLERS }, worker));
  return {
    among: (count) => async () => {
      const key = keys[Math.floor(Math.random() * Math.min(count, keyCount))] ?? "";
      const payload = await target.replay(key);
      if (payload === undefined || !payloadOf(key).equals(payload))
        violations.add(`${target.name}: the replay of ${key} differs`);
    },
  };
}

const PREPARING_CALLERS = 512;
