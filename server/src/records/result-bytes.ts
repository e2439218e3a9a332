import type { Result } from "./record.ts";

/**
 * Returns the size of a result in bytes: its payload, and its metadata as JSON. The only definition of that size: for the
 * policy's limit, quotas, statements, caches and replies. SQL counts the same in `result_payload` and `result_metadata`.
 */
export function resultBytes({ payload, metadataJson }: Pick<Result, "payload" | "metadataJson">): number {
  return payload.byteLength + (metadataJson === "" ? 0 : Buffer.byteLength(metadataJson));
}

/** Returns metadata as JSON, the form in which it is stored and cached; an empty string if there is none. */
export function encodeMetadata(metadata: Readonly<Record<string, string>>): string {
  for (const _ in metadata) return JSON.stringify(metadata);
  return "";
}

/** Returns the metadata that `encodeMetadata` encoded. Costs time by its size: only for a reply that contains it. */
export function decodeMetadata(metadataJson: string): Record<string, string> {
  return metadataJson === "" ? {} : JSON.parse(metadataJson);
}
