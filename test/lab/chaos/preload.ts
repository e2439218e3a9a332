/**
 * Loaded into a replica before its program (`node --import`): shifts its clock, and stalls it on a signal. It
 * exists in the test tree only.
 *
 * - `CHAOS_CLOCK_OFFSET_MS`: the offset of its `Date`; SIGWINCH negates it.
 * - SIGUSR2: blocks its event loop for 5 s.
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
