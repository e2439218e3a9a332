import { readUnsupportedEngine } from "../../../core/store/engine.ts";
import type { Check } from "../check.ts";

/** Recognises engines that speak Postgres' protocol and break a promise of the service. */
export const engineCheck: Check = {
  name: "engine",
  needsPostgres: true,
  async examine({ config }) {
    const engine = await readUnsupportedEngine(config.DATABASE_URL);
    if (engine === undefined) return [];
    return [
      { id: "engine_unsupported", summary: `The database is ${engine.name}, not Postgres. ${engine.reason}` },
    ];
  },
};
