import { expect, it } from "vitest";
import { describeSignInError } from "./sign-in-errors.ts";

it("a sign-in that took too long says so, and an unknown reason is only a name", () => {
  expect(describeSignInError("SIGN_IN_EXPIRED")).toContain("took too long");
  expect(describeSignInError("QUOTA_RATE")).toBe("The sign-in failed (QUOTA_RATE).");
  expect(describeSignInError("Call 555-0100 now")).toBe("The sign-in failed.");
  expect(describeSignInError(null)).toBeUndefined();
});
