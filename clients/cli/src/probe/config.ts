import { parse } from "yaml";
import { messageOf, UsageError } from "../failure.ts";
import { type Endpoint, readEndpoint } from "./endpoint.ts";
import { members } from "./endpoint-fields.ts";

/** Large enough for a hundred endpoints. */
export const MAX_CONFIG_BYTES = 1024 * 1024;
const MAX_ENDPOINTS = 100;

/** Parses a configuration in YAML or JSON. @throws UsageError with the field that is wrong. */
export function parseConfig(text: string): readonly Endpoint[] {
  if (Buffer.byteLength(text) > MAX_CONFIG_BYTES)
    throw new UsageError(`The configuration must have at most ${MAX_CONFIG_BYTES} bytes.`);
  const { endpoints, ...others } = members(parsed(text));
  const [other] = Object.keys(others);
  if (other !== undefined) throw new UsageError(`${other}: is not a member of the configuration`);
  if (!Array.isArray(endpoints) || endpoints.length === 0 || endpoints.length > MAX_ENDPOINTS)
    throw new UsageError(`endpoints: must be a list of 1 to ${MAX_ENDPOINTS} endpoints`);
  return endpoints.map((endpoint, index) => {
    try {
      return readEndpoint(endpoint);
    } catch (error) {
      throw new UsageError(`endpoints[${index}].${messageOf(error)}`);
    }
  });
}

function parsed(text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    throw new UsageError(`The configuration is not valid YAML: ${messageOf(error)}`);
  }
}
