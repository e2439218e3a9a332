/**
 * All that a process which a test starts has of the test's environment: where programs are, and where Node keeps what it
 * compiled (`vitest.config.ts`), which is a quarter to a third of such a process's start.
 */
export const CHILD_ENVIRONMENT: NodeJS.ProcessEnv = {
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
};
