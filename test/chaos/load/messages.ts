import type { RecordName, RetentionChange } from "../../history/operation.ts";
import type { Look } from "./watch.ts";

/** Where a replica is reached by one client process. */
export interface ReplicaAddress {
  readonly name: string;
  readonly grpcPort: number;
}

/** What a client process is told once. */
export interface ClientPlan {
  /** Given to no other client of a run. */
  readonly client: string;
  readonly seed: number;
  readonly journalPath: string;
  readonly replicas: readonly ReplicaAddress[];
  /** API keys of callers by tenant. */
  readonly apiKeys: Readonly<Record<string, string>>;
  /** For the one client that administers. */
  readonly adminKey: string | undefined;
  /** When the load began, on the clock of histories. */
  readonly originMs: number;
  /** Part of every key. */
  readonly round: string;
  readonly workers: number;
}

/** What the provider of effects is asked; `id` is answered. */
export interface ProviderQuestion {
  readonly id: number;
  readonly ask: "open" | "charge";
  readonly fenced: boolean;
  readonly record: RecordName;
  readonly token: number;
}

/** To a client process. */
export type ToClient =
  | { readonly kind: "start"; readonly plan: ClientPlan }
  | { readonly kind: "stop" }
  | { readonly kind: "answer"; readonly id: number; readonly answer: string };

/** From a client process. */
export type FromClient =
  | { readonly kind: "ready" }
  | { readonly kind: "question"; readonly question: ProviderQuestion }
  | { readonly kind: "retention"; readonly changes: readonly RetentionChange[] }
  | { readonly kind: "looks"; readonly looks: readonly Look[] }
  | { readonly kind: "done" };
