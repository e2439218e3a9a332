import { DEFAULT_RETENTION_S, NAMESPACES, type TrafficNamespace } from "./namespaces.ts";
import type { Operation } from "./plan.ts";

/** Repeats of one time, equally late. */
export interface PlantedRepeats {
  /** How long before the end of the run they came, in seconds. */
  readonly agoS: number;
  /** Since the first claim of their key, in seconds. */
  readonly latenessS: number;
  readonly repeats: number;
  /** They came after the end of their record, and so were granted. */
  readonly late: boolean;
}

/** What is true of a namespace. */
export interface PlantedNamespace {
  readonly name: string;
  readonly declared: boolean;
  readonly keyRetentionS: number;
  readonly story: string;
  readonly keyDefects: TrafficNamespace["keyDefects"];
  /** All of them, repeats included. */
  readonly claims: number;
  readonly repeats: readonly PlantedRepeats[];
  /** Retries under a new key with the same fingerprint, by how long before the end of the run they came, in seconds. */
  readonly mintedKeys: readonly { readonly agoS: number; readonly keys: number }[];
  /** Honest operations with the fingerprint of an earlier one. */
  readonly lookAlikes: number;
  /** Records whose worker died. */
  readonly ambiguous: number;
}

/** Collects what was planted. */
export interface Ledger {
  /** Notes performed operations. @param latenessS of the repeats among them. */
  note(operations: readonly Operation[], time: { readonly agoS: number; readonly latenessS: Lateness }): void;
  readonly claims: number;
  planted(): readonly PlantedNamespace[];
}

/** Returns how late a repeat is, in seconds. */
export type Lateness = (operation: Operation) => number;

/** @see Ledger */
export function createLedger(): Ledger {
  const noted: { readonly operation: Operation; readonly agoS: number; readonly latenessS: number }[] = [];

  function ofNamespace({ name, policy, story, keyDefects }: TrafficNamespace): PlantedNamespace {
    const own = noted.filter(({ operation }) => operation.namespace === name);
    const count = (is: (operation: Operation) => boolean) =>
      own.filter(({ operation }) => is(operation)).length;
    const repeats = own.filter(({ operation: { meaning } }) => meaning === "repeat" || meaning === "late");
    const groups = Map.groupBy(repeats, ({ agoS, latenessS, operation }) =>
      [agoS, latenessS, operation.meaning].join(),
    );
    return {
      name,
      declared: policy !== undefined,
      keyRetentionS: policy?.keyRetentionS ?? DEFAULT_RETENTION_S,
      story,
      keyDefects,
      claims: own.length,
      repeats: [...groups.values()].flatMap((group) =>
        group.slice(0, 1).map(({ agoS, latenessS, operation }) => ({
          agoS,
          latenessS,
          repeats: group.length,
          late: operation.meaning === "late",
        })),
      ),
      mintedKeys: [
        ...Map.groupBy(
          own.filter(({ operation }) => operation.meaning === "minted"),
          ({ agoS }) => agoS,
        ),
      ].map(([agoS, { length: keys }]) => ({ agoS, keys })),
      lookAlikes: count(({ meaning }) => meaning === "look-alike"),
      ambiguous: count(({ dies }) => dies),
    };
  }

  return {
    note(operations, { agoS, latenessS }) {
      for (const operation of operations)
        noted.push({ operation, agoS, latenessS: isRepeat(operation) ? latenessS(operation) : 0 });
    },
    get claims() {
      return noted.length;
    },
    planted: () => NAMESPACES.map(ofNamespace),
  };
}

function isRepeat({ meaning }: Operation): boolean {
  return meaning === "repeat" || meaning === "late";
}
