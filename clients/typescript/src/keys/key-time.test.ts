import { expect, test } from "vitest";
import { keyTime } from "./key-time.ts";
import { newKey } from "./new-key.ts";

// The UUIDs are the test vectors of RFC 9562, appendix A; the ULID is that of https://github.com/ulid/spec.
test.each([
  ["a UUID of version 1", "C232AB00-9414-11EC-B3C8-9F6BDECED846", "2022-02-22T19:22:22.000Z"],
  ["a UUID of version 6", "1EC9414C-232A-6B00-B3C8-9F6BDECED846", "2022-02-22T19:22:22.000Z"],
  ["a UUID of version 7", "017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "2022-02-22T19:22:22.000Z"],
  ["a UUID in lower case", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "2022-02-22T19:22:22.000Z"],
  [
    "a UUID of version 1 from before 1970",
    "00000000-0000-1000-b3c8-9f6bdeced846",
    "1582-10-15T00:00:00.000Z",
  ],
  ["a ULID", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "2016-07-30T23:54:10.259Z"],
  ["a ULID in lower case", "01arz3ndektsv4rrffq69g5fav", "2016-07-30T23:54:10.259Z"],
])("the time of %s is read", (_, key, time) => {
  expect(keyTime(key)).toEqual(new Date(time));
});

test.each([
  ["a random UUID", "919108f7-52d1-4320-9bac-f847db4148a8"],
  ["an order's number", "order-1042"],
  ["a UUID within a longer key", "refund:017f22e2-79b0-7cc3-98c4-dc0c0c07398f"],
  ["a UUID of another variant", "017f22e2-79b0-7cc3-c8c4-dc0c0c07398f"],
  ["a ULID beyond the largest", "8ARZ3NDEKTSV4RRFFQ69G5FAVX"],
  ["26 characters with a letter that ULIDs don't have", "01ARZ3NDEKTSV4RRFFQ69G5FAU"],
  ["a ULID from beyond the year 9999", "7ZZZZZZZZZTSV4RRFFQ69G5FAV"],
])("%s has no time", (_, key) => {
  expect(keyTime(key)).toBeUndefined();
});

test("a key of newKey has the time at which it was made", () => {
  const beforeMs = Date.now();
  const ms = keyTime(newKey())?.getTime();
  expect(ms).toBeGreaterThanOrEqual(beforeMs);
});
