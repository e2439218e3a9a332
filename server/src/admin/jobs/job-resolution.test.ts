import { expect, test } from "vitest";
import { NO_KEYS, parseKeyring } from "../../config/keyring.ts";
import { createRecordEncryption } from "../../encryption/record-encryption.ts";
import { PLAIN_VALUES } from "../../records/engine/record-values.ts";
import { digestResult } from "../../records/result-digest.ts";
import type { Resolution } from "../records/resolution.ts";
import { readJobResolution, writeJobResolution } from "./job-resolution.ts";

const result = {
  kind: "failure",
  payload: Buffer.from("secret payload"),
  contentType: "text/plain",
  metadataJson: '{"status":"secret metadata"}',
} as const;
const COMPLETE: Resolution = { kind: "complete", result, resultDigest: digestResult(result) };
const KEYS = parseKeyring(`1:${Buffer.alloc(32, 7).toString("base64")}`);

test("a resolution that was written is read as it was, with and without keys", () => {
  for (const encryption of [PLAIN_VALUES, createRecordEncryption(KEYS ?? NO_KEYS, () => {})]) {
    const resolutions: Resolution[] = [{ kind: "forget" }, { kind: "release" }, COMPLETE];
    for (const resolution of resolutions) {
      const json = writeJobResolution(resolution, 7, encryption);
      expect(readJobResolution(json, 7, encryption)).toEqual(resolution);
    }
  }
});

test("with keys, no result is stored in plain form, and another tenant's can't be read", () => {
  const encryption = createRecordEncryption(KEYS ?? NO_KEYS, () => {});
  const json = writeJobResolution(COMPLETE, 7, encryption);
  const stored = JSON.parse(json) as Record<string, string>;
  const bytes = Object.values(stored).map(
    (value) => `${value} ${Buffer.from(`${value}`, "base64").toString("latin1")}`,
  );
  expect(bytes.join()).not.toContain("secret");
  expect(() => readJobResolution(json, 8, encryption)).toThrow(/cannot be decrypted/);
});
