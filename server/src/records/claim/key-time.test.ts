import { expect, test } from "vitest";
import { timeInKey } from "./key-time.ts";

test.each([
  // The examples of RFC 9562, appendix A, whose time is 2022-02-22T19:22:22Z.
  ["a UUID of version 1", "C232AB00-9414-11EC-B3C8-9F6BDECED846"],
  ["a UUID of version 6", "1EC9414C-232A-6B00-B3C8-9F6BDECED846"],
  ["a UUID of version 7", "017F22E2-79B0-7CC3-98C4-DC0C0C07398F"],
  ["one in lower case", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"],
])("%s says when it was created", (_, key) => {
  expect(timeInKey(key)).toBe(Date.parse("2022-02-22T19:22:22Z"));
});

test.each(["01ARYZ6S41TSV4RRFFQ69G5FAV", "01aryz6s41tsv4rrffq69g5fav"])("a ULID says it: %s", (key) => {
  // The example of the specification of ULIDs.
  expect(timeInKey(key)).toBe(1_469_918_176_385);
});

test("the last moment of a ULID is read exactly", () => {
  expect(timeInKey("7ZZZZZZZZZZZZZZZZZZZZZZZZZ")).toBe(2 ** 48 - 1);
});

test.each([
  ["a random UUID", "919108f7-52d1-4320-9bac-f847db4148a8"],
  ["a UUID made of a name", "5df41881-3aed-3515-88a7-2f4a814cf09e"],
  ["a UUID of another variant", "017f22e2-79b0-7cc3-c8c4-dc0c0c07398f"],
  ["a UUID without hyphens", "017f22e279b07cc398c4dc0c0c07398f"],
  ["a UUID after other text", "order-017f22e2-79b0-7cc3-98c4-dc0c0c07398f"],
  ["a UUID before other text", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f/2"],
  ["26 characters of which one is not a digit of a ULID", "01ARYZ6S41TSV4RRFFQ69G5FAU"],
  ["26 characters that are more than 128 bits", "81ARYZ6S41TSV4RRFFQ69G5FAV"],
  ["a line break behind a ULID's place", "01ARYZ6S41TSV4RRFFQ69G5FA\n"],
  ["other text", "order-1"],
  ["nothing", ""],
])("%s says nothing", (_, key) => {
  expect(timeInKey(key)).toBeUndefined();
});
