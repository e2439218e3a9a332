import { create } from "@bufbuild/protobuf";
import { GetKeyHistoryResponseSchema } from "@onceward/client/proto";
import { expect, test } from "vitest";
import { keyHistoryOf } from "./key-history.ts";

test("a key's duplicates and refusals are one sentence, and what became of them", () => {
  const of = (counts: object) => keyHistoryOf(create(GetKeyHistoryResponseSchema, counts));
  expect(of({ replayed: 12n, inProgress: 1n, mismatched: 1n })).toEqual({
    answer: "At least 13 duplicates and 1 refusal.",
    parts: [
      "12 got the result",
      "1 came while another caller held the key",
      "1 refused: a different request with this key",
    ],
  });
  expect(of({ overQuota: 1_200n })).toEqual({
    answer: "At least 1,200 refusals.",
    parts: ["1,200 refused: beyond a limit of the tenant"],
  });
  expect(of({})).toEqual({ answer: undefined, parts: [] });
});
