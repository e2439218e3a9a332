/**
 * For a program of its own: aborted by Ctrl-C, by SIGTERM, and by what nobody caught, so that it goes on to remove what it
 * started. Importing this is what listens.
 */
export const interruption = new AbortController();

// Once is enough: whoever presses Ctrl-C again would leave a PostgreSQL behind.
for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.on(name, () => interruption.abort(new Error(`interrupted by ${name}; everything is removed`)));
}
// What nobody caught must not leave processes behind either.
process.on("uncaughtException", (error) => {
  console.error(error);
  interruption.abort(error);
});

/** Runs a program to its end; what it throws is shown, and is exit code 1, or 130 where it was interrupted. */
export async function runToEnd(program: () => Promise<void>): Promise<void> {
  try {
    await program();
  } catch (error) {
    const reason = interruption.signal.aborted ? interruption.signal.reason : error;
    console.error(`\n${reason instanceof Error ? reason.message : reason}`);
    process.exitCode = interruption.signal.aborted ? 130 : 1;
  }
}
