import type { Random } from "../../support/random.ts";
import type { Transcript } from "./corpus.ts";
import { http1Mutations } from "./http1-mutations.ts";
import { http2Mutations } from "./http2-mutations.ts";
import { anyBytes, FLOOD_FRAMES, type Mutation, pick, withOne } from "./mutation.ts";

/** Returns one of the mutations that fit the protocol. */
export function anyMutation(random: Random, { isHttp2 }: Transcript): Mutation {
  const own = isHttp2 ? http2Mutations : http1Mutations;
  // A protocol's own mutations get deeper into the server than noise does.
  return pick(random, random.below(3) === 0 ? GENERAL : own);
}

/** Returns a changed copy of a buffer, because other frames may share its bytes. */
function changed(buffer: Buffer, change: (copy: Buffer) => void): Buffer {
  const copy = Buffer.from(buffer);
  if (copy.byteLength > 0) change(copy);
  return copy;
}

const GENERAL: readonly Mutation[] = [
  {
    name: "bits flipped",
    mutate: (frames, random) =>
      withOne(frames, random, (frame) =>
        changed(frame, (copy) => {
          for (let i = 0; i <= random.below(4); i++) {
            const at = random.below(copy.byteLength);
            copy[at] = (copy[at] ?? 0) ^ (1 << random.below(8));
          }
        }),
      ),
  },
  {
    name: "bytes replaced",
    mutate: (frames, random) =>
      withOne(frames, random, (frame) =>
        changed(frame, (copy) => {
          for (let i = 0; i <= random.below(8); i++) copy[random.below(copy.byteLength)] = random.below(256);
        }),
      ),
  },
  {
    name: "bytes put in",
    mutate: (frames, random) =>
      withOne(frames, random, (frame) => {
        const at = random.below(frame.byteLength + 1);
        return Buffer.concat([
          frame.subarray(0, at),
          anyBytes(random, 1 + random.below(64)),
          frame.subarray(at),
        ]);
      }),
  },
  {
    name: "frame cut off",
    mutate: (frames, random) =>
      withOne(frames, random, (frame) => frame.subarray(0, random.below(frame.byteLength + 1))),
  },
  {
    name: "connection cut off",
    mutate: (frames, random) => frames.slice(0, 1 + random.below(frames.length)),
  },
  { name: "frame dropped", mutate: (frames, random) => withOne(frames, random, () => []) },
  {
    name: "frame sent twice",
    mutate: (frames, random) => withOne(frames, random, (frame) => [frame, frame]),
  },
  {
    name: "frame sent over and over",
    mutate: (frames, random) => {
      const times = random.below(FLOOD_FRAMES);
      return withOne(frames, random, (frame) => new Array<Buffer>(times).fill(frame));
    },
  },
  { name: "frames in another order", mutate: (frames, random) => random.shuffle(frames) },
  {
    name: "frames after the first in another order",
    mutate: ([first = Buffer.alloc(0), ...rest], random) => [first, ...random.shuffle(rest)],
  },
  { name: "garbage", mutate: (frames, random) => frames.map((frame) => anyBytes(random, frame.byteLength)) },
  {
    name: "garbage at the end",
    mutate: (frames, random) => [...frames, anyBytes(random, random.below(5000))],
  },
];
