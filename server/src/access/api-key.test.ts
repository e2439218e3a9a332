import { describe, expect, test } from "vitest";
import { digestSecret, formatApiKey, generateApiKey, parseApiKey, sameDigest } from "./api-key.ts";

const PEPPER = "a pepper of thirty-two characters";

describe("an API key", () => {
  test("is parsed from its formatted text", () => {
    const key = generateApiKey();
    expect(parseApiKey(formatApiKey(key))).toEqual(key);
  });

  test("has a random secret of 256 bits", () => {
    const keys = Array.from({ length: 100 }, generateApiKey);
    expect(new Set(keys.map((key) => key.id)).size).toBe(100);
    expect(new Set(keys.map((key) => key.secret)).size).toBe(100);
    for (const { secret } of keys) expect(Buffer.from(secret, "base64url")).toHaveLength(32);
  });

  test("begins with the prefix for secret scanners", () => {
    expect(formatApiKey(generateApiKey())).toMatch(/^ow_[0-9a-f]{16}_/);
  });

  test("of another format is refused", () => {
    const { id, secret } = generateApiKey();
    for (const text of [
      "",
      "ow_",
      `${id}_${secret}`,
      `OW_${id}_${secret}`,
      `ow_${id}_${secret.slice(1)}`,
      `ow_${id}_${secret}=`,
      `ow_${id.slice(1)}_${secret}`,
      `ow_${id}_${secret}\n`,
      ` ow_${id}_${secret}`,
      `ow_${id}_${`.${secret.slice(1)}`}`,
    ]) {
      expect(parseApiKey(text)).toBeUndefined();
    }
  });

  test("has a digest that depends on its secret and on the pepper", () => {
    const { secret } = generateApiKey();
    const digest = digestSecret(secret, PEPPER);
    expect(digest).toHaveLength(32);
    expect(digest.includes(secret)).toBe(false);
    expect(sameDigest(digest, digestSecret(secret, PEPPER))).toBe(true);
    expect(sameDigest(digest, digestSecret(secret, `${PEPPER}!`))).toBe(false);
    expect(sameDigest(digest, digestSecret(generateApiKey().secret, PEPPER))).toBe(false);
  });

  test("differs from a digest of another length", () => {
    expect(sameDigest(Buffer.alloc(32), Buffer.alloc(31))).toBe(false);
  });
});
