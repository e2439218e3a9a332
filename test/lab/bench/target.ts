import { randomBytes } from "node:crypto";
import type { Violations } from "./violations.ts";

/** A service, or DIY, that grants keys once and replays results; a token names a grant. */
export interface Target<Token> {
  readonly name: string;
  /** Claims a key; undefined: another caller has it. */
  claim(key: string): Promise<Token | undefined>;
  complete(key: string, token: Token, payload: Uint8Array): Promise<void>;
  /** Returns the stored result; undefined: there is none. */
  replay(key: string): Promise<Uint8Array | undefined>;
  /** Counts the stored keys that were claimed through this target. */
  countKeys(): Promise<number>;
}

/** A SHA-256, as a caller's request would have. */
export const FINGERPRINT = new Uint8Array(randomBytes(32));
/** Longer than any measurement: a key that is claimed again for verification must still be held. */
export const LEASE = { seconds: 600n };
/** The size of a small JSON reply. */
const PAYLOAD_BYTES = 200;
/** The length of every key, so that all messages have one length. */
export const KEY_LENGTH = 24;

/**
 * Returns a source of new keys: unique and in random order, like UUIDs, so that inserts hit the whole index.
 */
export function freshKeys(): () => string {
  const run = randomBytes(8)
    .toString("hex")
    .slice(0, KEY_LENGTH - 9);
  let count = 0;
  // Multiplying by an odd number modulo 2^32 gives each number once. (Knuth, TAOCP 6.4: multiplicative
  // hashing.)
  return () => `${(Math.imul(++count, 0x9e3779b1) >>> 0).toString(16).padStart(8, "0")}-${run}`;
}

/** Returns the share, of `count`, that a key belongs to. */
export function shareOf(key: string, shares: number): number {
  return Number.parseInt(key.slice(0, 8), 16) % shares;
}

/** Returns the result that is stored for a key and must be replayed. */
export function payloadOf(key: string, bytes = PAYLOAD_BYTES): Buffer {
  return Buffer.from(JSON.stringify({ key, status: "done", note: "" }).padEnd(bytes, " "));
}

/** How many of the claimed keys are claimed again afterwards. */
const REPEATED = 200;
/** The distance between keys that are claimed again. */
const REPEAT_EVERY = 97;

/** Claims of fresh keys on a target; each must be granted, once. */
export class FreshClaims<Token> {
  readonly #target: Target<Token>;
  readonly #violations: Violations;
  readonly #nextKey: () => string;
  readonly #repeated: string[] = [];
  #granted = 0;

  /** @param nextKey is the source of the keys. */
  constructor(target: Target<Token>, violations: Violations, nextKey = freshKeys()) {
    this.#target = target;
    this.#violations = violations;
    this.#nextKey = nextKey;
  }

  /** Claims a fresh key. */
  readonly claim = async (): Promise<void> => {
    await this.#claim(this.#nextKey());
  };

  /** Claims a fresh key and completes it. */
  readonly pair = async (): Promise<void> => {
    await this.pairOf(PAYLOAD_BYTES);
  };

  /** Claims a fresh key and completes it with a payload of `bytes` bytes. */
  async pairOf(payloadBytes: number): Promise<void> {
    const key = this.#nextKey();
    const token = await this.#claim(key);
    if (token !== undefined) await this.#target.complete(key, token, payloadOf(key, payloadBytes));
  }

  /** Verifies, untimed, that each grant has a row and that a granted key isn't granted again. */
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

/**
 * Completes `count` keys through a target, and returns steps that replay a random one and compare its bytes.
 */
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
