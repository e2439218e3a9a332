import { expect, test } from "vitest";
import { ErrorReasonSchema } from "../gen/onceward/v1/errors_pb.ts";
import * as published from "../index.ts";
import { OncewardError } from "./errors.ts";
import { errorOf } from "./mapping.ts";

const cause = new Error("beneath");

test.each(ErrorReasonSchema.values.slice(1))(
  "an error of $localName is of its published class",
  ({ localName }) => {
    const error = errorOf(localName, "refused", { cause, retryDelayMs: 5 });
    expect(error).toBeInstanceOf(OncewardError);
    expect(error).toMatchObject({ reason: localName, message: "refused", cause, retryDelayMs: 5 });
    expect(error.constructor).toBe((published as unknown as Record<string, unknown>)[error.name]);
  },
);
