import fc from "fast-check";
import { expect, test } from "vitest";
import { sha256 } from "./bytes.ts";
import { sha256OfBytes as nodeSha256 } from "./sha256-node.ts";
import { sha256OfBytes as portableSha256 } from "./sha256-portable.ts";

test.each([
  // FIPS 180-4's examples, as NIST publishes them beside it.
  ["abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
  [
    "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
  ],
  ["", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
])("the hash of %j is the standard's, in Node and in a browser", (text, expected) => {
  const bytes = new TextEncoder().encode(text);
  for (const hash of [sha256(text), nodeSha256(bytes), portableSha256(bytes)])
    expect(Buffer.from(hash).toString("hex")).toBe(expected);
});

test("a browser's hash equals Node's", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      expect(Buffer.from(portableSha256(bytes))).toEqual(Buffer.from(nodeSha256(bytes)));
    }),
  );
});
