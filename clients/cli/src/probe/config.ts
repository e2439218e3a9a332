import { parse } from "yaml";
import type { z } from "zod";
import { UsageError } from "../failure.ts";
import { configSchema, type Endpoint, endpointSchema } from "./endpoint.ts";

/** Large enough for a hundred endpoints. */
export const MAX_CONFIG_BYTES = 1024 * 1024;

/** Parses a configuration in YAML or JSON. @throws UsageError with the fields that are wrong. */
export function parseConfig(text: string): readonly Endpoint[] {
  if (Buffer.byteLength(text) > MAX_CONFIG_BYTES)
    throw new UsageError(`The configuration must have at most ${MAX_CONFIG_BYTES} bytes.`);
  return checked(configSchema, parsed(text)).endpoints;
}

/** Returns the endpoint that options describe. @throws UsageError with the fields that are wrong. */
export function endpointOf(options: object): Endpoint {
  return checked(endpointSchema, options);
}

function parsed(text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    throw new UsageError(`The configuration is no YAML: ${error instanceof Error ? error.message : error}`);
  }
}

function checked<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const mistakes = result.error.issues.map(({ path, message }) => `${path.join(".") || "it"}: ${message}`);
  throw new UsageError(`The configuration is wrong: ${mistakes.join("; ")}`);
}
