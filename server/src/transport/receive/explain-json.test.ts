import { expect, test } from "vitest";
import type { Refusal } from "../../domain/refusal.ts";
import { IdempotencyService } from "../../gen/onceward/v1/idempotency_pb.ts";
import { readMessage } from "./read-message.ts";

function refusalOf(json: string, method = IdempotencyService.method.claim as never): Refusal | undefined {
  try {
    void readMessage(method, { bytes: Buffer.from(json), format: "json", compression: undefined }, () => {});
  } catch (error) {
    return error as Refusal;
  }
  return undefined;
}

test.each([
  ['{"fingerPrint": "aGVsbG8="}', "fingerPrint", "is unknown; did you mean fingerprint?"],
  ['{"finger_print": "aGVsbG8="}', "finger_print", "is unknown; did you mean fingerprint?"],
  ['{"unrelated": 1}', "unrelated", "is unknown"],
  ['{"lease": "2h"}', "lease", 'must be seconds such as "7200s", is "2h"'],
  ['{"lease": 7200}', "lease", 'must be seconds such as "7200s", is 7200'],
  ['{"fingerprint": "hello!"}', "fingerprint", 'must be base64, is "hello!"'],
  ['{"key": 7}', "key", "must be a string without lone surrogates, is 7"],
  ["[]", "message", "must be an object, is a list"],
])("%s is refused by the name of the field, and its form", (json, field, description) => {
  expect(refusalOf(json)).toMatchObject({ reason: "INVALID_REQUEST", violations: [{ field, description }] });
});

test.each([
  ['{"fencingToken": "99999999999999999999"}', /^fencing_token must be an integer of 64 bits, .*, is "9+"$/],
  [
    '{"result": {"kind": "SUCCESS"}}',
    /^result\.kind must be one of KIND_SUCCESS, KIND_FAILURE, is "SUCCESS"$/,
  ],
])("%s is refused with what the field accepts", (json, message) => {
  expect(refusalOf(json, IdempotencyService.method.complete as never)?.message).toMatch(message);
});

test("a field within a batch is named by its path", () => {
  const json = '{"items": [{"claim": {"key": "a"}}, {"claim": {"key": "b", "leese": "1s"}}]}';
  const refusal = refusalOf(json, IdempotencyService.method.batch as never);
  expect(refusal?.message).toBe("items[1].claim.leese is unknown; did you mean lease?");
});

test("an item of a batch that is not an object is named by its index", () => {
  const refusal = refusalOf('{"items": [null]}', IdempotencyService.method.batch as never);
  expect(refusal?.message).toBe("items[0] must be an object, is null");
});

test("JSON that is broken is refused with its place", () => {
  expect(refusalOf('{"key": "a", lease: 1}')?.message).toMatch(/is not JSON: .*position 13/);
  expect(refusalOf('{"key": hello}')?.message).toContain('"{"key": hello}" is not valid JSON');
  expect(refusalOf('{"key": "a"')?.message).toMatch(/is not JSON: .*(end|position 11)/);
});

test("a name or a value that no header can carry, or a long one, is escaped and cut", () => {
  expect(refusalOf('{"\\ud800": 1}')?.message).toBe('"\\ud800" is unknown');
  expect(refusalOf(`{"lease": "${"x".repeat(1000)}"}`)?.message.length).toBeLessThan(100);
});
