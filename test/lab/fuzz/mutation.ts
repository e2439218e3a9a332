import type { Random } from "../../support/random.ts";

/** Breaks a conversation. */
export interface Mutation {
  readonly name: string;
  mutate(frames: readonly Buffer[], random: Random): readonly Buffer[];
}

/** The most frames that a flood adds. */
export const FLOOD_FRAMES = 300;

/** Changes one of the frames. */
export function withOne(
  frames: readonly Buffer[],
  random: Random,
  change: (frame: Buffer) => Buffer | readonly Buffer[],
): readonly Buffer[] {
  const at = random.below(frames.length);
  return frames.flatMap((frame, index) => (index === at ? change(frame) : frame));
}

export function anyBytes(random: Random, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => random.below(256)));
}

/** Returns a random element. */
export function pick<Item>(random: Random, items: readonly Item[]): Item {
  return items[random.below(items.length)] as Item;
}
