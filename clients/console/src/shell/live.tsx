import { createContext, type ReactNode, useContext, useState } from "react";

interface Live {
  readonly isLive: boolean;
  readonly toggle: () => void;
}

const LiveContext = createContext<Live>({ isLive: false, toggle() {} });

/** Holds whether screens refresh themselves. */
export function LiveProvider({ children }: { readonly children: ReactNode }) {
  const [isLive, setLive] = useState(true);
  return <LiveContext value={{ isLive, toggle: () => setLive((before) => !before) }}>{children}</LiveContext>;
}

/** Returns whether screens refresh themselves, and the switch. */
export function useLive(): Live {
  return useContext(LiveContext);
}

/**
 * Returns a query's `refetchInterval`: `ms` while the page is live, else false. TanStack Query refetches only in
 * the tab that is seen.
 */
export function useLiveInterval(ms: number): number | false {
  return useLive().isLive && ms;
}
