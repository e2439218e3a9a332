import type { Onceward } from "./onceward.ts";

/** What the adapters need of a client: the one call. The in-memory Onceward of `../testing` has it, too. */
export type Runner = Pick<Onceward, "run" | "runDetailed">;
