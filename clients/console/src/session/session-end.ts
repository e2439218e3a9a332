import { useSyncExternalStore } from "react";

/**
 * Why the page has no session: the error that `/console/sign-in?error=` shows, or that the browser has sent none
 * (NO_SESSION); undefined: none is known to have ended.
 */
export type SessionEnd = "SESSION_ENDED" | "NO_SESSION" | "SIGNED_OUT" | "SIGNED_OUT_EVERYWHERE";

let ended: SessionEnd | undefined;
const listeners = new Set<() => void>();

/** Marks the session as ended: the page shows the sign-in form. The first reason stays. */
export function endSession(reason: SessionEnd): void {
  if (ended === undefined) changeTo(reason);
}

/** Forgets that a session ended, after a new sign-in. */
export function beginSession(): void {
  changeTo(undefined);
}

/** Returns why the session ended; undefined while none has. */
export function useSessionEnd(): SessionEnd | undefined {
  return useSyncExternalStore(subscribe, () => ended);
}

function changeTo(next: SessionEnd | undefined): void {
  ended = next;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
