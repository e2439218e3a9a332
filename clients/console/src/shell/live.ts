import { createStore } from "../session/store.ts";

const live = createStore(true);

/** Returns whether screens refresh themselves, and the switch. */
export function useLive() {
  return { isLive: live.use(), toggle: () => live.set(!live.get()) };
}

/**
 * Returns a query's `refetchInterval`: `ms` while the page is live, else false. TanStack Query refetches only in
 * the tab that is seen.
 */
export function useLiveInterval(ms: number): number | false {
  return useLive().isLive && ms;
}
