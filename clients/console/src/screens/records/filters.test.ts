import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Record_State } from "@onceward/gen/onceward/v1/record_pb.ts";
import { expect, it } from "vitest";
import {
  commandOf,
  FILTERS,
  type Filters,
  fingerprintProblem,
  jobProblem,
  looksLike,
  requestOf,
} from "./filters.ts";

const NONE = Object.fromEntries(FILTERS.map((name) => [name, ""])) as Filters;

it("no filter lists all records", () => {
  expect(requestOf(NONE)).toEqual({
    namespace: "",
    owner: "",
    keyPrefix: "",
    state: Record_State.UNSPECIFIED,
  });
  expect(commandOf(NONE)).toBe("onceward records list");
});

it("every filter of the address is in the request and in the command", () => {
  const before = "2026-11-23T18:00:00.000Z";
  const filters = {
    ...NONE,
    namespace: "charges",
    state: "released",
    prefix: "a b",
    fingerprint: "0f".repeat(32),
    job: "12",
    before,
  };
  expect(requestOf(filters)).toEqual({
    namespace: "charges",
    owner: "",
    keyPrefix: "a b",
    state: Record_State.RELEASED,
    fingerprint: new Uint8Array(32).fill(15),
    recordJob: 12n,
    claimedBefore: timestampFromDate(new Date(before)),
  });
  expect(commandOf(filters)).toBe(
    `onceward records list --namespace charges --state released --prefix 'a b' --fingerprint ${"0f".repeat(32)} --job 12 --claimed-before ${before}`,
  );
});

it("a fingerprint has 64 hexadecimal digits", () => {
  expect(fingerprintProblem("0F".repeat(32))).toBeUndefined();
  expect(fingerprintProblem("0f".repeat(31))).toBeDefined();
  expect(requestOf({ ...NONE, fingerprint: "zz" })).not.toHaveProperty("fingerprint");
});

it("the id of a job is a positive number", () => {
  expect(jobProblem("12")).toBeUndefined();
  for (const id of ["0", "-1", "1e9", "9".repeat(19)]) expect(jobProblem(id), id).toBeDefined();
  expect(requestOf({ ...NONE, job: "twelve" })).not.toHaveProperty("recordJob");
});

it("a fingerprint and a request id are told from keys by their form", () => {
  expect(looksLike(` ${"0F".repeat(32)}\n`)).toBe("fingerprint");
  expect(looksLike("0f".repeat(31))).toBe("key");
  expect(looksLike("0197f3c8-1d2e-7abc-8def-0123456789ab")).toBe("request id");
  expect(looksLike("order-0197f3c8-1d2e-7abc-8def-0123456789ab")).toBe("key");
});
