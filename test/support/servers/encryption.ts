import { createHash } from "node:crypto";
import { inject } from "vitest";

/**
 * Returns the setting with these encryption keys: the first id encrypts, all decrypt. `"none"` as the first stops
 * encryption. An id has the same key in all tests.
 */
export function encryptionKeys(...ids: readonly (number | "none")[]): Readonly<Record<string, string>> {
  return { ONCEWARD_ENCRYPTION_KEYS: ids.map((id) => (id === "none" ? id : keyText(id))).join(",") };
}

/** Returns a key in the form of the setting; `secret` replaces the usual key of the id. */
export function keyText(id: number, secret = `the tests' key ${id}`): string {
  return `${id}:${createHash("sha256").update(secret).digest("base64")}`;
}

/** Returns whether the contract is tested with encryption at rest: the project "encrypted" of vitest.config.ts. */
export function isEncryptedRun(): boolean {
  return Boolean(inject("encrypted"));
}

declare module "vitest" {
  export interface ProvidedContext {
    readonly encrypted: boolean;
  }
}
