import type { Feature } from "../../core/feature.ts";
import { configuredIssuerClient } from "./configured-issuer.ts";
import { openConsole } from "./open.ts";
import { createSessions } from "./sessions.ts";

/** Serves the console: a page for tenant admins and operators, who sign in. */
export const webConsole: Feature = {
  async openPage({ config, log, pool, maxAgeMs, issuer, dir }) {
    if (!config.ONCEWARD_CONSOLE) return undefined;
    const sessions = createSessions({ database: pool, pepper: config.ONCEWARD_API_KEY_PEPPER, maxAgeMs });
    const create = await openConsole(config, {
      sessions,
      issuer: configuredIssuerClient(config, issuer, log),
      log,
      dir,
    });
    return { sessions, createPage: create };
  },
};
