import { type Effect, type Effects, FencedProvider } from "../../history/effects.ts";
import { nameOf, nowMs } from "../../history/operation.ts";
import type { ProviderQuestion } from "./messages.ts";

/** The outside world: it counts every effect. */
export interface Provider extends Effects {
  answer(question: ProviderQuestion): string;
}

/** Creates a provider that compares tokens where a question says so, and otherwise charges every caller. */
export function createProvider(): Provider {
  const fencing = new FencedProvider();
  const unfenced: Effect[] = [];
  return {
    unfenced,
    get fenced() {
      return fencing.effects;
    },
    answer({ ask, fenced, record, token }) {
      const { tenant, namespace, key } = record;
      if (ask === "look") {
        const effects = fenced ? fencing.effects : unfenced;
        return effects.some((effect) => nameOf(effect) === nameOf(record)) ? "charged" : "not charged";
      }
      if (!fenced) {
        unfenced.push({ tenant, namespace, key, token, atMs: nowMs() });
        return "charged";
      }
      if (ask === "open") return fencing.open(record, token);
      return fencing.charge(record, token, nowMs()) ? "charged" : "superseded";
    },
  };
}
