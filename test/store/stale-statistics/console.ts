import { createHash } from "node:crypto";
import {
  endSessions,
  findSessions,
  storeSession,
} from "../../../server/src/console/store/console-sessions.ts";
import { pruneRows } from "../../../server/src/database/prune.ts";
import { CROWDED_TENANT } from "../../support/database/crowded-tables.ts";
import type { ExplainedWork } from "./explained-work.ts";
import { BATCH, BATCH_ROWS, ROWS } from "./rows.ts";

function sessionDigest(n: number): Buffer {
  return createHash("sha256").update(String(n)).digest();
}

/** Statements of sessions of the console. */
export const CONSOLE_WORK: ExplainedWork = {
  byKeys: {
    "read sessions of the console": (pool) =>
      findSessions(
        pool,
        BATCH.map((n) => sessionDigest(n).toString("base64")),
      ),
    "start a session of the console": (pool) =>
      pool.transaction((transaction) =>
        storeSession(transaction, {
          digest: sessionDigest(0),
          tenantId: CROWDED_TENANT,
          credential: { kind: "API_KEY", actor: "key-7", keyDigest: sessionDigest(0) },
          expiresAtMs: undefined,
        }),
      ),
    "end sessions of the console": (pool) =>
      pool.transaction(async (transaction) => {
        await endSessions(transaction, sessionDigest(1), "this");
        await endSessions(transaction, sessionDigest(2), "all");
      }),
  },
  overARange: {
    "prune sessions of the console": (pool) => pruneRows(pool, "console_sessions", -ROWS * 1000, BATCH_ROWS),
  },
};
