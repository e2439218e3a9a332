/**
 * Aborts on Ctrl-C, SIGTERM, a closed terminal and uncaught errors, so that a program removes what it started before it ends.
 * Importing this file installs the listeners.
 */
export const interruption = new AbortController();

// A second Ctrl-C is ignored: it would leave a PostgreSQL running.
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(name, () => interruption.abort(new Error(`interrupted by ${name}; everything is removed`)));
}
// An uncaught error must not leave processes behind either.
process.on("uncaughtException", (error) => {
  console.error(error);
  interruption.abort(error);
});

const startedAtMs = performance.now();

/** Prints what a program does, after the seconds since its start. */
export function progress(what: string): void {
  const seconds = Math.round((performance.now() - startedAtMs) / 1000);
  console.log(`${String(seconds).padStart(5)} s  ${what}`);
}

/** Runs a program to its end; an error is printed, with exit code 1, or 130 after an interruption. */
export async function runToEnd(program: () => Promise<void>): Promise<void> {
  try {
    await program();
  } catch (error) {
    const reason = interruption.signal.aborted ? interruption.signal.reason : error;
    console.error(`\n${reason instanceof Error ? reason.message : reason}`);
    process.exitCode = interruption.signal.aborted ? 130 : 1;
  }
}
