import { createHash } from "node:crypto";
import type { Deadline } from "../../../server/src/domain/operation.ts";

/** Rows in the range of each statement. */
export const ROWS = 20_000;

/** Rows in a page, a batch or a list. */
export const BATCH_ROWS = 1000;

/** No call waits for these statements. */
export const NO_DEADLINE: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };

/** Numbers of the keys of a batch. */
export const BATCH = Array.from({ length: BATCH_ROWS }, (_, index) => index * 10 + 1);

/** The ids of a page of tenants. */
export const TENANTS = Array.from({ length: BATCH_ROWS }, (_, index) => index + 1);

/** Returns the hash of the tombstone with this number. */
export const tombstoneHash = (n: number) => createHash("md5").update(`${n}`).digest();
