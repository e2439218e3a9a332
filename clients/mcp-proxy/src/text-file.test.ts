import { expect, test } from "vitest";
import { readTextFile } from "./text-file.ts";

test("no more of a file is read than it may have", async () => {
  await expect(readTextFile("/dev/zero", "policy", 1024)).rejects.toThrow(
    "The policy must have at most 1024 bytes.",
  );
});
