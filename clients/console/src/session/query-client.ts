import { QueryClient } from "@tanstack/react-query";
import { isTransient } from "./failure.ts";

const MAX_RETRIES = 2;
/** Long enough that a screen's parts share an answer; short enough that going back shows the present. */
const FRESH_MS = 5_000;

/**
 * Returns the cache of answers. Only reads are repeated, and only after errors that can pass; a
 * change is sent once, because a person decides whether to repeat it.
 */
export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        retry: (failures, error) => failures < MAX_RETRIES && isTransient(error),
        staleTime: FRESH_MS,
        refetchOnWindowFocus: false,
      },
      mutations: { retry: false },
    },
  });
}
