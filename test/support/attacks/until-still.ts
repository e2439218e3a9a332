/** After so many round trips without a change, none follows, on a busy machine too. */
const STILL_ROUND_TRIPS = 50;

/**
 * Reads a number again after each round trip to the server until it has not changed for 50 of them, and returns it. Every
 * round trip gives the server time to continue the counted work.
 */
export async function untilStill(read: () => number, roundTrip: () => Promise<unknown>): Promise<number> {
  let last = read();
  for (let still = 0; still < STILL_ROUND_TRIPS; still++) {
    await roundTrip();
    const now = read();
    if (now !== last) still = 0;
    last = now;
  }
  return last;
}
