/**
 * A jump of the wall clock against the monotonic one counts as a suspension from this length on: shorter than the margin
 * of the shortest lease (100 ms of 1 s) together with the next reading, and longer than clocks are slewed between two readings.
 */
const MIN_SUSPENSION_MS = 50;

let suspendedMs = 0;
let lastOffsetMs = offsetMs();

/**
 * Returns the time by which this process judges leases, in milliseconds: that of `performance.now()` plus the time
 * during which the machine was suspended.
 *
 * The monotonic clock stops while a machine sleeps, a virtual machine is paused, or a function's sandbox is
 * frozen (CLOCK_MONOTONIC of clock_gettime(2)), but leases expire at the service. The wall clock shows such a time as a
 * jump forward. So does a clock that somebody sets forward: then a lease that may still last counts as over, which is
 * the safe mistake. A clock that is set back changes nothing.
 */
export function leaseNowMs(): number {
  const offset = offsetMs();
  const jumpMs = offset - lastOffsetMs;
  lastOffsetMs = offset;
  if (jumpMs >= MIN_SUSPENSION_MS) suspendedMs += jumpMs;
  return performance.now() + suspendedMs;
}

function offsetMs(): number {
  return Date.now() - performance.now();
}
