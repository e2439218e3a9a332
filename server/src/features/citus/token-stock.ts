import { MAX_NUMBER_AGE_MS } from "../../core/store/batching/shards.ts";
import type { Runner } from "../../core/store/pool.ts";

/** Numbers of the sequence of fencing tokens, drawn from the coordinator for statements on other nodes. */
export interface TokenStock {
  /**
   * Returns a number for a statement that only inserts rows. It arrived at most MAX_NUMBER_AGE_MS ago and took less than the
   * pool's limit of 6 s, so it is higher than that of every row of the same key that was swept: a row stays for two
   * minutes after its end.
   */
  forNewRows(): Promise<bigint>;
  /**
   * Returns a number that is drawn now, for a statement that changes rows. Its token is the next one after the row's
   * if the row's is higher, and only numbers that are drawn late leave room for all of them.
   */
  forExistingRows(): Promise<bigint>;
}

/** Statements of a node that one drawing serves, so that the coordinator works for few of them. */
export const NUMBERS_PER_DRAWING = 256;

const drawTokens = {
  name: "draw_tokens",
  text: "select nextval('fencing_tokens')::text as token from generate_series(1, $1::int)",
};

/** @param runner runs statements on the coordinator. */
export function createTokenStock(runner: Runner): TokenStock {
  let numbers: bigint[] = [];
  let drawnAtMs = Number.NEGATIVE_INFINITY;
  let drawing: Promise<void> | undefined;

  async function draw(count: number): Promise<bigint[]> {
    const rows = await runner.run<{ token: string }>(drawTokens, [count]);
    return rows.map(({ token }) => BigInt(token));
  }

  async function refill(): Promise<void> {
    numbers = (await draw(NUMBERS_PER_DRAWING)).reverse();
    drawnAtMs = performance.now();
  }

  return {
    async forNewRows() {
      for (;;) {
        const number = performance.now() - drawnAtMs < MAX_NUMBER_AGE_MS ? numbers.pop() : undefined;
        if (number !== undefined) return number;
        drawing ??= refill().finally(() => {
          drawing = undefined;
        });
        await drawing;
      }
    },
    async forExistingRows() {
      const [number] = await draw(1);
      if (number === undefined) throw new Error("draw_tokens returned no row");
      return number;
    },
  };
}
