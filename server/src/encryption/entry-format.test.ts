import { expect, test } from "vitest";
import { encryptionKeys } from "../../../test/support/servers/encryption.ts";
import { type Keyring, NO_KEYS, parseKeyring } from "../config/keyring.ts";
import type { EntryFormat } from "../records/replay/entry-format.ts";
import { entryFormat } from "./entry-format.ts";
import { deriveKey, seal } from "./seal.ts";

const SECRET = "a pepper of thirty-two characters";
const NAME = "scope:7:chargesorder-1";
const COMPLETION = Buffer.from("a completion with a canary");

function keyring(...ids: readonly (number | "none")[]): Keyring {
  const parsed = parseKeyring(encryptionKeys(...ids).ONCEWARD_ENCRYPTION_KEYS ?? "");
  if (parsed === undefined) throw new Error("the keys are malformed");
  return parsed;
}

const SIGNED = entryFormat(SECRET, NO_KEYS);
const ENCRYPTED = entryFormat(SECRET, keyring(1));

/** Returns the completion that a replica reads from an entry of another one. */
function read(reader: EntryFormat, name: string, entry: Buffer): Buffer | undefined {
  const held = reader.load(name, entry);
  return held && reader.reveal(name, held);
}

function write(writer: EntryFormat): Buffer {
  return writer.store(NAME, writer.hold(NAME, COMPLETION));
}

test.each([
  ["signed", SIGNED],
  ["encrypted", ENCRYPTED],
])("a %s entry is read from memory and from Redis", (_, format) => {
  expect(format.reveal(NAME, format.hold(NAME, COMPLETION))).toEqual(COMPLETION);
  expect(read(format, NAME, write(format))).toEqual(COMPLETION);
});

test("with keys, neither memory nor Redis holds plain text", () => {
  const held = ENCRYPTED.hold(NAME, COMPLETION);
  expect(held.includes("canary")).toBe(false);
  expect(ENCRYPTED.store(NAME, held).includes("canary")).toBe(false);
  expect(SIGNED.hold(NAME, COMPLETION).includes("canary")).toBe(true);
});

test("replicas with the keys in another order read each other's entries", () => {
  const [one, two] = [entryFormat(SECRET, keyring(1, 2)), entryFormat(SECRET, keyring(2, 1))];
  expect(read(one, NAME, write(two))).toEqual(COMPLETION);
  expect(read(two, NAME, write(one))).toEqual(COMPLETION);
});

/** Returns an entry that is bound to its name alone. */
function earlierEntry(): Buffer {
  const key = keyring(1).current;
  if (key === undefined) throw new Error("there is no key");
  return Buffer.concat([Buffer.from([0, key.id]), seal(deriveKey(key, "entry", NAME), COMPLETION, NAME)]);
}

test.each([
  ["of another name", ENCRYPTED, `${NAME}0`, write(ENCRYPTED)],
  ["that is signed, with keys", ENCRYPTED, NAME, write(SIGNED)],
  ["that is encrypted, without keys", SIGNED, NAME, write(ENCRYPTED)],
  [
    "that is encrypted, once encryption was stopped",
    entryFormat(SECRET, keyring("none", 1)),
    NAME,
    write(ENCRYPTED),
  ],
  ["under a key that is not configured", entryFormat(SECRET, keyring(2)), NAME, write(ENCRYPTED)],
  ["without a version of its format, as earlier servers encrypted it", ENCRYPTED, NAME, earlierEntry()],
  ["that is empty", ENCRYPTED, NAME, Buffer.alloc(0)],
  ["of one byte", ENCRYPTED, NAME, Buffer.alloc(1)],
])("an entry %s is refused", (_, reader, name, entry) => {
  expect(read(reader, name, entry)).toBeUndefined();
});
