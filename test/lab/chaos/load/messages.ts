import type { RecordName, RetentionChange } from "../../history/operation.ts";
import type { Look } from "./watch.ts";

/** The address at which a client process reaches a replica. */
export interface ReplicaAddress {
  readonly name: string;
  readonly grpcPort: number;
}

/** The plan of a client process. */
export interface ClientPlan {
  /** Unique in a run. */
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
  /** Between two checks whether a replica serves: a recovery may be seen this much later than it happened. */
  readonly watchIntervalMs: number;
}

/** A question to the provider of effects; `id` names its answer. */
export interface ProviderQuestion {
  readonly id: number;
  readonly ask: "open" | "charge" | "look";
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
