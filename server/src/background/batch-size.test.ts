import { expect, test } from "vitest";
import { type BatchSize, createBatchSize } from "./batch-size.ts";

const succeed = (size: BatchSize) => size.use(async (rows) => rows);

async function fail(size: BatchSize): Promise<void> {
  await expect(size.use(() => Promise.reject(new Error("timed out")))).rejects.toThrow("timed out");
}

test("each failure halves the batch, down to one row", async () => {
  const size = createBatchSize(1000);
  const sizes: number[] = [];
  for (let failures = 0; failures < 12; failures++) {
    await size.use((rows) => Promise.reject(rows)).catch((rows: number) => sizes.push(rows));
  }
  expect(sizes).toEqual([1000, 500, 250, 125, 63, 32, 16, 8, 4, 2, 1, 1]);
});

test("each success makes a halved batch a tenth of the largest larger, up to that", async () => {
  const size = createBatchSize(100);
  await fail(size);
  await fail(size);
  const sizes: number[] = [];
  for (let successes = 0; successes < 10; successes++) sizes.push(await succeed(size));
  expect(sizes).toEqual([25, 35, 45, 55, 65, 75, 85, 95, 100, 100]);
});
