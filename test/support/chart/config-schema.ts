import { factsOf, VARIABLES } from "../../../server/src/config/variables.ts";
import type { JsonSchema } from "./json-schema.ts";

/** Settings that the chart gives to the server itself, by where they come from. */
export const SET_BY_CHART: Readonly<Record<string, string>> = {
  ONCEWARD_TLS_CERT: "tls.existingSecret",
  ONCEWARD_TLS_KEY: "tls.existingSecret",
  ONCEWARD_TLS_CLIENT_CA: "tls.clientCa",
  // Containers, probes and Services have the server's default ports.
  ONCEWARD_GRPC_PORT: "its default",
  ONCEWARD_HTTP_PORT: "its default",
  ONCEWARD_MANAGEMENT_PORT: "its default",
  // The server refuses it on an address that others reach.
  ONCEWARD_ANONYMOUS_TENANT: "nothing",
};

/** Returns the schema of `config`: every setting that is neither secret nor set by the chart. */
export function configSchema(): JsonSchema {
  const settings = Object.entries(VARIABLES).flatMap(([name, schema]): [string, JsonSchema][] => {
    const { format, fallback, secret, description } = factsOf(schema);
    if (secret || name in SET_BY_CHART) return [];
    const byDefault = fallback === undefined ? "" : ` Default: ${fallback}.`;
    return [[name, { description: `${description} Value: ${format}.${byDefault}`, ...valueSchema(format) }]];
  });
  return { type: "object", additionalProperties: false, properties: Object.fromEntries(settings) };
}

/** Returns the schema of a setting's value; null removes a default of the chart. */
function valueSchema(format: string): JsonSchema {
  const [, min, max] = /^a whole number from (\d+) to (\d+)$/.exec(format) ?? [];
  if (max !== undefined) {
    return {
      type: ["integer", "string", "null"],
      minimum: Number(min),
      maximum: Number(max),
      pattern: "^[0-9]{1,9}$",
    };
  }
  if (format.startsWith("a duration"))
    return { type: ["string", "null"], pattern: "^[0-9]{1,9}(ms|s|m|h|d)$" };
  if (format === "true or false") return { enum: [true, false, "true", "false", null] };
  const [, choices] = /^one of (.*)$/.exec(format) ?? [];
  if (choices !== undefined) return { enum: [...choices.split(", "), null] };
  return { type: ["string", "null"] };
}
