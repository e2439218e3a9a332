import { pino } from "pino";
import { expect, test, vi } from "vitest";
import { UnansweredLog } from "./unanswered.ts";

test("refused calls of one cause are one line a second, with their number and without a stack", () => {
  const lines: Readonly<Record<string, unknown>>[] = [];
  const log = pino({ base: null, timestamp: false }, { write: (line) => void lines.push(JSON.parse(line)) });
  let nowMs = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  const unanswered = new UnansweredLog(log);
  const full = Object.assign(new Error("No space left"), { code: "53100" });
  for (const requestId of ["a", "b", "c"]) unanswered.note(full, { requestId });
  unanswered.note(Object.assign(new Error("refused"), { code: "ECONNREFUSED" }), { requestId: "d" });
  nowMs = 1000;
  unanswered.note(full, { requestId: "e" });
  clock.mockRestore();
  const msg = "the database did not answer";
  expect(lines).toEqual([
    { level: 40, cause: "No space left", code: "53100", calls: 1, requestId: "a", msg },
    { level: 40, cause: "refused", code: "ECONNREFUSED", calls: 1, requestId: "d", msg },
    { level: 40, cause: "No space left", code: "53100", calls: 3, requestId: "e", msg },
  ]);
});
