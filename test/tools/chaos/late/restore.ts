import type { ChaosPostgres } from "../../../helpers/database/chaos-postgres.ts";
import { nowMs } from "../../history/operation.ts";
import { type Fault, last } from "../faults/fault.ts";

/**
 * What deploy/recovery.md says to do before the first replica connects to a restored database: keys that were created before
 * this moment, and have no record, are refused.
 */
const LIMITS = "retention_lengthened_at = now() - interval '10 minutes', retention_before_s = 0";

/**
 * The database is copied, works on, and is replaced by the copy. The replicas are stopped meanwhile, because they know the
 * policies of before for some seconds.
 */
export const POSTGRES_RESTORE: Fault = {
  name: "postgres-restore",
  target: "postgres",
  async inject(scene) {
    const { postgres, replicas } = scene.rig;
    const copiedFromMs = nowMs();
    const copy = await postgres.copy();
    const copiedToMs = nowMs();
    await last(scene, 2000, 8000);
    const restoredFromMs = nowMs();
    await Promise.all(replicas.map((replica) => replica.kill()));
    try {
      await postgres.restore(copy);
      await refuseKeysFromBefore(postgres);
    } finally {
      scene.onVictim({ restore: { copiedFromMs, copiedToMs, restoredFromMs, restoredToMs: nowMs() } });
      await Promise.all(replicas.map((replica) => replica.restart()));
    }
  },
};

async function refuseKeysFromBefore(postgres: ChaosPostgres): Promise<void> {
  await postgres.query(`update tenants set ${LIMITS}`);
  await postgres.query(`update namespaces set ${LIMITS}`);
}
