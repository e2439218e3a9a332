import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import * as published from "../admin.ts";
import { errorOf } from "./error-of.ts";
import { OncewardError } from "./errors.ts";

const PROTO = new URL("../../../../proto/onceward/v1/errors.proto", import.meta.url);

const reasons = [...readFileSync(PROTO, "utf8").matchAll(/^ {2}ERROR_REASON_(\w+) = [1-9]\d*;/gm)].map(
  ([, reason]) => reason ?? "",
);

test("errors.proto has reasons", () => {
  expect(reasons).toContain("FINGERPRINT_MISMATCH");
});

test.each(reasons)("%s has a class of its own that is published", (reason) => {
  const cause = new Error("beneath");
  const error = errorOf(reason, "refused", { cause, retryDelayMs: 5 });
  expect(error).toBeInstanceOf(OncewardError);
  expect(error).toMatchObject({ reason, message: "refused", cause, retryDelayMs: 5 });
  const published_ = published as unknown as Record<string, unknown>;
  expect(error.constructor).toBe(published_[error.name]);
  expect(error.name.toUpperCase()).toBe(`${reason.replaceAll("_", "")}ERROR`);
});

test("a newer service's reason is passed on", () => {
  expect(errorOf("MOON_PHASE", "not tonight", {})).toMatchObject({
    name: "OncewardError",
    reason: "MOON_PHASE",
  });
});
