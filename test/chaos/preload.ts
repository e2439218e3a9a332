/**
 * Loaded into a replica before its program (`node --import`): gives it another clock, and lets it be stalled. It exists in
 * the test tree only.
 *
 * - `CHAOS_CLOCK_OFFSET_MS`: how far its `Date` is off; SIGWINCH makes it as far off to the other side.
 * - SIGUSR2: its event loop does nothing else for 5 s.
 */
const STALL_MS = 5000;
const RealDate = Date;
let offsetMs = Number(process.env.CHAOS_CLOCK_OFFSET_MS ?? 0);

class WrongDate extends RealDate {
  constructor(...fields: unknown[]) {
    if (fields.length === 0) super(WrongDate.now());
    else super(...(fields as [number]));
  }

  static override now(): number {
    return RealDate.now() + offsetMs;
  }
}

globalThis.Date = WrongDate as DateConstructor;
process.on("SIGWINCH", () => {
  offsetMs = -offsetMs;
});
process.on("SIGUSR2", () => {
  const untilMs = performance.now() + STALL_MS;
  while (performance.now() < untilMs);
});
