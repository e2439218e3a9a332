import { readBacklog } from "../../../server/src/doctor/checks/backlog.ts";
import { measureClockOffset } from "../../../server/src/doctor/checks/clocks.ts";
import { readConnectionLimits } from "../../../server/src/doctor/checks/connections.ts";
import { readPrivileges } from "../../../server/src/doctor/checks/privileges.ts";
import { readPostgresSettings } from "../../../server/src/doctor/checks/settings.ts";
import { readStandbys } from "../../../server/src/doctor/checks/standbys.ts";
import { readTableCounts } from "../../../server/src/doctor/checks/tables.ts";
import type { ExplainedWork } from "./explained-work.ts";

/** Statements of what `doctor` reads. */
export const DOCTOR_WORK: ExplainedWork = {
  byKeys: {
    "read Postgres' settings, counts and limits": async (pool) => {
      await readPostgresSettings(pool);
      await readTableCounts(pool);
      await readConnectionLimits(pool);
      await readPrivileges(pool);
      await readStandbys(pool);
      await measureClockOffset(pool);
    },
  },
  overARange: {
    "read overdue work": (pool) => readBacklog(pool),
  },
  onOneRow: ["try_write", "read_export_slots"],
};
