import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, onTestFinished, test, vi } from "vitest";
import { sha256 } from "./bytes.ts";

/** Hides Node's own SHA-256, as in a browser. */
function hideNodeCrypto(): void {
  const spy = vi.spyOn(process, "getBuiltinModule").mockReturnValue(undefined as never);
  onTestFinished(() => spy.mockRestore());
}

test.each([
  // FIPS 180-4's examples, as NIST publishes them beside it.
  ["abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
  [
    "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
  ],
  ["", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
])("the hash of %j is the standard's, in Node and in a browser", (text, expected) => {
  expect(Buffer.from(sha256(text)).toString("hex")).toBe(expected);
  hideNodeCrypto();
  expect(Buffer.from(sha256(text)).toString("hex")).toBe(expected);
});

test("a browser's hash equals Node's", () => {
  hideNodeCrypto();
  const data = fc.oneof(fc.uint8Array({ maxLength: 300 }), fc.string({ unit: "binary", maxLength: 100 }));
  fc.assert(
    fc.property(data, (bytes) => {
      const expected = createHash("sha256").update(bytes).digest("hex");
      expect(Buffer.from(sha256(bytes)).toString("hex")).toBe(expected);
    }),
  );
});
