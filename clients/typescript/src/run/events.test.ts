import { expect, onTestFinished, test, vi } from "vitest";
import { warn } from "./events.ts";

test("a warning with a key or an error of others controls no terminal", () => {
  const emit = vi.spyOn(process, "emitWarning").mockReturnValue();
  onTestFinished(() => emit.mockRestore());
  warn('The key "a\u001b[2J\u009b\u202e" is refused:\n\tno\u2028\r', "ONCEWARD_TEST");
  const options = { type: "OncewardWarning", code: "ONCEWARD_TEST" };
  const shown = 'The key "a\u{fffd}[2J\u{fffd}\u{fffd}" is refused:\n\tno\u{fffd}\u{fffd}';
  expect(emit).toHaveBeenCalledExactlyOnceWith(shown, options);
});
