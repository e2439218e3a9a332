import { createHmac } from "node:crypto";
import { findPepperMark, storeMark } from "../database/pepper-check.ts";
import type { Runner } from "../database/pool.ts";
import { digestSecret, sameDigest } from "./api-key.ts";

/** The secrets that key the digests of API keys, the same on every replica. */
export interface Peppers {
  /** Of the digests that are stored. */
  readonly current: string;
  /** Digests under it are accepted, too: the next pepper, or the one before, while peppers are changed. */
  readonly second: string | undefined;
}

/** Returns the configured peppers. */
export function configuredPeppers(settings: {
  readonly ONCEWARD_API_KEY_PEPPER: string;
  readonly ONCEWARD_API_KEY_SECOND_PEPPER?: string | undefined;
}): Peppers {
  const { ONCEWARD_API_KEY_PEPPER: current, ONCEWARD_API_KEY_SECOND_PEPPER: second } = settings;
  return { current, second };
}

/**
 * Returns the mark that shows whether two peppers are the same, 32 bytes. The text is older than its other
 * uses: exports of tenants contain such marks.
 */
export function pepperMark(pepper: string): Buffer {
  return createHmac("sha256", pepper).update("onceward:tenant-move").digest();
}

/** What the database stores of a key's secret. */
export interface StoredSecret {
  readonly digest: Buffer;
  /** Of the pepper of the digest. */
  readonly pepperMark: Buffer;
}

/** Returns what is stored of a secret under a pepper. */
export function storedSecret(secret: string, pepper: string): StoredSecret {
  return { digest: digestSecret(secret, pepper), pepperMark: pepperMark(pepper) };
}

/**
 * Returns whether one of the peppers is the one of the installation; also if none is known of it yet. Changes
 * nothing.
 */
export async function isPepperKnown(runner: Runner, { current, second }: Peppers): Promise<boolean> {
  const mark = await findPepperMark(runner);
  if (mark === undefined) return true;
  return [current, second].some((pepper) => pepper !== undefined && sameDigest(mark, pepperMark(pepper)));
}

/**
 * Returns whether one of the peppers is the one of the installation, and makes the current one the
 * installation's if so. The first replica of an installation decides which one that is.
 */
export async function adoptPepper(runner: Runner, { current, second }: Peppers): Promise<boolean> {
  const mark = await findPepperMark(runner);
  if (mark === undefined || !sameDigest(mark, pepperMark(current))) {
    await storeMark(runner, pepperMark(current), second === undefined ? undefined : pepperMark(second));
  }
  return isPepperKnown(runner, { current, second });
}
