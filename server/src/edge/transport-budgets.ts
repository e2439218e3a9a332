import { type ArrivingBytes, createArrivingBytes } from "./arriving-bytes.ts";
import { createUnreadTotal, type UnreadTotal } from "./unread-replies.ts";

/** What a process keeps of its callers' bytes on all ports together. */
export interface TransportBudgets {
  readonly arriving: ArrivingBytes;
  readonly unread: UnreadTotal;
}

/** @see TransportBudgets */
export function createTransportBudgets(): TransportBudgets {
  return { arriving: createArrivingBytes(), unread: createUnreadTotal() };
}
