import { createStore } from "./store.ts";

/**
 * Why the page has no session: the error that `/console/sign-in?error=` shows, or that the browser has sent none
 * (NO_SESSION); undefined: none is known to have ended.
 */
export type SessionEnd = "SESSION_ENDED" | "NO_SESSION" | "SIGNED_OUT" | "SIGNED_OUT_EVERYWHERE";

const ended = createStore<SessionEnd | undefined>(undefined);

/** Marks the session as ended: the page shows the sign-in form. The first reason stays. */
export function endSession(reason: SessionEnd): void {
  if (ended.get() === undefined) ended.set(reason);
}

/** Forgets that a session ended, after a new sign-in. */
export function beginSession(): void {
  ended.set(undefined);
}

/** Returns why the session ended; undefined while none has. */
export function useSessionEnd(): SessionEnd | undefined {
  return ended.use();
}
