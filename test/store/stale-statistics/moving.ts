import {
  exportPlainRows,
  exportRecords,
  findMovingTenant,
} from "../../../server/src/moving/export-tenant.ts";
import { PLAIN_VALUES, type RecordValues } from "../../../server/src/records/engine/record-values.ts";
import { CROWDED_TENANT } from "../../support/database/crowded-tables.ts";
import type { ExplainedWork } from "./explained-work.ts";

/** The rows name keys that do not exist. */
const READS_ALL: RecordValues = { ...PLAIN_VALUES, openRow: (row) => row };

async function readAll(lines: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of lines);
}

/** Statements of a tenant that moves. */
export const MOVING_WORK: ExplainedWork = {
  byKeys: {
    "export records": (pool) => readAll(exportRecords(pool, CROWDED_TENANT, READS_ALL)),
    "export other rows": (pool) => readAll(exportPlainRows(pool, CROWDED_TENANT)),
  },
  overARange: {
    "read a tenant that moves": (pool) => findMovingTenant(pool, CROWDED_TENANT),
  },
};
