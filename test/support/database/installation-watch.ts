import { randomUUID } from "node:crypto";
import { InstallationWatch } from "../../../server/src/background/installation-watch.ts";
import type { RecordLoss } from "../../../server/src/records/late-keys.ts";
import { createTokenFloor } from "../../../server/src/records/token-floor.ts";
import { createLog } from "../../../server/src/telemetry/log.ts";

/** Returns a watch that has not looked yet, the ids that it changed to, the loss that it knows of, and its errors in the log. */
export function createWatch() {
  const changes: string[] = [];
  const errors: string[] = [];
  const recordLoss: RecordLoss = { lastAtMs: undefined };
  const watch = new InstallationWatch({
    replicaId: randomUUID(),
    tokenFloor: createTokenFloor(),
    recordLoss,
    log: createLog("error", { write: (line) => errors.push(line) }),
    onChanged: (id) => changes.push(id),
    onDetected: () => {},
  });
  return { watch, changes, recordLoss, errors };
}
