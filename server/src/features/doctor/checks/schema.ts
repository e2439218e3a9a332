import { readSchemaState } from "../../../core/store/migrate.ts";
import type { Check } from "../check.ts";

/** Compares the database's migrations with this server's. */
export const schemaCheck: Check = {
  name: "schema",
  needsPostgres: true,
  async examine({ config }) {
    const schema = await readSchemaState(config.DATABASE_DIRECT_URL ?? config.DATABASE_URL);
    switch (schema.kind) {
      case "current":
        return [];
      case "behind":
        return [{ id: "schema_behind", summary: `The schema lacks ${schema.missing.join(", ")}.` }];
      case "ahead":
        return [
          {
            id: "schema_ahead",
            summary: `The schema has ${schema.unknown.join(", ")}, which this server does not know.`,
          },
        ];
    }
  },
};
