import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { NO_KEYS, parseKeyring } from "./keyring.ts";

const KEY = randomBytes(32).toString("base64");
const OTHER = randomBytes(32).toString("base64");

test("the first key encrypts, and all decrypt", () => {
  const keyring = parseKeyring(`7:${KEY}, 32767:${OTHER}`);
  expect(keyring?.current?.id).toBe(7);
  expect(keyring?.ids).toEqual([7, 32_767]);
  expect(keyring?.find(32_767)?.secret.export()).toEqual(Buffer.from(OTHER, "base64"));
  expect(keyring?.find(8)).toBeUndefined();
});

test("`none` in place of the first key stops encryption, and the others decrypt", () => {
  const keyring = parseKeyring(`none,7:${KEY}`);
  expect(keyring?.current).toBeUndefined();
  expect(keyring?.find(7)?.id).toBe(7);
});

test("without keys there is nothing to encrypt or decrypt with", () => {
  expect(NO_KEYS.current).toBeUndefined();
  expect(NO_KEYS.find(1)).toBeUndefined();
});

test.each([
  ["nothing", ""],
  ["`none` alone", "none"],
  ["`none` behind a key", `1:${KEY},none`],
  ["a key without an id", KEY],
  ["id 0", `0:${KEY}`],
  ["an id that no smallint holds", `32768:${KEY}`],
  ["an id twice", `1:${KEY},1:${OTHER}`],
  ["a short key", `1:${randomBytes(31).toString("base64")}`],
  ["a long key", `1:${randomBytes(33).toString("base64")}`],
  ["a key in base64url", `1:${"-_".repeat(21)}A=`],
  ["an empty part", `1:${KEY},`],
  ["seventeen keys", Array.from({ length: 17 }, (_, id) => `${id + 1}:${KEY}`).join()],
])("refuses %s", (_, text) => {
  expect(parseKeyring(text)).toBeUndefined();
});
