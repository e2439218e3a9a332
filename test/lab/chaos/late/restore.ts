import { setTimeout as pause } from "node:timers/promises";
import type { ChaosPostgres } from "../../../support/database/chaos-postgres.ts";
import { nowMs } from "../../history/operation.ts";
import { type Fault, last, type Scene } from "../faults/fault.ts";

/** What deploy/recovery.md says to do before the first replica connects to a restored database. */
const RECORDS_LOST = "update installation set records_lost_at = now()";
/** Longer than two heartbeats: every replica that is connected has read a floor of tokens that the copy lacks. */
const NOTICEABLE_MS = 8000;
const NOTICED_WITHIN_MS = 30_000;

/** The database is copied, works on, and is replaced by the copy. The replicas are stopped meanwhile. */
const POSTGRES_RESTORE: Fault = {
  name: "postgres-restore",
  target: "postgres",
  async inject(scene) {
    const { postgres, replicas } = scene.rig;
    try {
      await replaced(scene, 2000, async (copy) => {
        await Promise.all(replicas.map((replica) => replica.kill()));
        await postgres.restore(copy);
        await postgres.query(RECORDS_LOST);
      });
    } finally {
      await Promise.all(replicas.map((replica) => replica.restart()));
    }
  },
};

/** The same while the replicas serve: nothing is typed, they have to notice it. */
const POSTGRES_RESTORE_SERVING: Fault = {
  name: "postgres-restore-serving",
  target: "postgres",
  async inject(scene) {
    const { postgres } = scene.rig;
    const lostBefore = await lostAt(postgres);
    await replaced(scene, NOTICEABLE_MS, async (copy) => {
      await postgres.restore(copy);
      const deadlineMs = nowMs() + NOTICED_WITHIN_MS;
      while ((await lostAt(postgres)) === lostBefore) {
        if (nowMs() > deadlineMs) throw new Error("no replica noticed that the database was restored");
        await pause(20, undefined, { signal: scene.signal });
      }
    });
  },
};

/** The faults that take the database back. */
export const RESTORES: readonly Fault[] = [POSTGRES_RESTORE, POSTGRES_RESTORE_SERVING];

/** Copies the database, lets it work on, and reports when `restore` has replaced it by the copy. */
async function replaced(
  scene: Scene,
  atLeastMs: number,
  restore: (copy: Awaited<ReturnType<ChaosPostgres["copy"]>>) => Promise<void>,
): Promise<void> {
  const copiedFromMs = nowMs();
  const copy = await scene.rig.postgres.copy();
  const copiedToMs = nowMs();
  await last(scene, atLeastMs, atLeastMs + 6000);
  const restoredFromMs = nowMs();
  try {
    await restore(copy);
  } finally {
    scene.onVictim({ restore: { copiedFromMs, copiedToMs, restoredFromMs, restoredToMs: nowMs() } });
  }
}

async function lostAt(postgres: ChaosPostgres): Promise<string | null | undefined> {
  const [row] = await postgres.query<{ at: string | null }>(
    "select records_lost_at::text as at from installation",
  );
  return row?.at;
}
