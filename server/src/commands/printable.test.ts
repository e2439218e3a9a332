import { expect, test } from "vitest";
import { printable } from "./printable.ts";

test("a text for a terminal has no character that controls it, but its lines and tabs", () => {
  const hostile = "a\u001b[2J\u009b2J\u202e\u2067\u2028\u007f\u0085\rb\n\tc";
  expect(printable(hostile)).toBe("a\ufffd[2J\ufffd2J\ufffd\ufffd\ufffd\ufffd\ufffd\ufffdb\n\tc");
});
