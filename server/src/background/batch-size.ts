/** How many rows a background task takes in a batch. */
export interface BatchSize {
  /** Runs a batch with the present size. The size is halved if it fails, and grows again while batches succeed. */
  use<Result>(batch: (rows: number) => Promise<Result>): Promise<Result>;
}

/** Batches that succeed from the smallest size to the largest: a size that just failed is not tried at once. */
const STEPS_OF_GROWTH = 10;

/** Returns a size that begins at `maxRows` and stays from 1 to `maxRows`. */
export function createBatchSize(maxRows: number): BatchSize {
  let rows = maxRows;
  return {
    async use(batch) {
      try {
        const result = await batch(rows);
        rows = Math.min(maxRows, rows + Math.ceil(maxRows / STEPS_OF_GROWTH));
        return result;
      } catch (error) {
        rows = Math.ceil(rows / 2);
        throw error;
      }
    },
  };
}
