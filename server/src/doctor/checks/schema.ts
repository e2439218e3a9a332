import { configuredPeppers, isPepperKnown, pepperMark } from "../../access/pepper.ts";
import { readUnsupportedEngine } from "../../database/engine.ts";
import { readSchemaState } from "../../database/migrate.ts";
import { countKeysUnderOtherPepper } from "../../database/pepper-check.ts";
import type { Check } from "../findings.ts";

/** Recognises engines that speak Postgres' protocol and break a promise of the service. */
export const engineCheck: Check = {
  name: "engine",
  async examine({ config }) {
    const engine = await readUnsupportedEngine(config.DATABASE_URL);
    if (engine === undefined) return [];
    return [
      {
        id: "engine_unsupported",
        summary: `The database is ${engine.name}, which is not supported. ${engine.reason}`,
      },
    ];
  },
};

/** Compares the database's migrations with this server's. */
export const schemaCheck: Check = {
  name: "schema",
  async examine({ config }) {
    const schema = await readSchemaState(config.DATABASE_DIRECT_URL ?? config.DATABASE_URL);
    if (schema.kind === "current") return [];
    if (schema.kind === "behind")
      return [{ id: "schema_behind", summary: `The schema lacks ${schema.missing.join(", ")}.` }];
    const summary = `The schema has ${schema.unknown.join(", ")}, which this server does not know.`;
    return [{ id: "schema_ahead", summary }];
  },
};

/**
 * Compares the configured peppers with the installation's, and counts the API keys that need the second one.
 */
export const pepperCheck: Check = {
  name: "pepper",
  async examine({ config, runner }) {
    const peppers = configuredPeppers(config);
    if (!(await isPepperKnown(runner, peppers))) {
      return [
        { id: "pepper_wrong", summary: "ONCEWARD_API_KEY_PEPPER is not the pepper of this installation." },
      ];
    }
    if (peppers.second === undefined) return [];
    const keys = await countKeysUnderOtherPepper(runner, pepperMark(peppers.current));
    const summary = `${keys} API keys are not yet stored under ONCEWARD_API_KEY_PEPPER, and may need ONCEWARD_API_KEY_SECOND_PEPPER.`;
    return [{ id: "second_pepper", summary }];
  },
};
