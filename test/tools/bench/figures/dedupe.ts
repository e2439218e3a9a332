import { randomUUID } from "node:crypto";
import { compareCosts } from "../cost.ts";
import type { Figure } from "../figure.ts";
import { FreshClaims, type Target } from "../target.ts";
import { oncewardTarget } from "../target-onceward.ts";

const CALLERS = 256;

/** Measures P20: a claim that completes its record, as `seen` makes it, beside the pairs of P2. */
export const measureDedupe: Figure = async (bench) => {
  const { main, violations } = bench;
  const { calls } = main.client;
  const namespace = `seen-${randomUUID()}`;
  const onceward = oncewardTarget(calls, main.database, [namespace]);
  const target: Target<true> = {
    ...onceward,
    async claim(key) {
      const request = { namespace, key, claimId: randomUUID(), owner: "bench/1", completion: {} };
      return (await calls.claim(request)).outcome.case === "recorded" ? true : undefined;
    },
    complete: async () => {},
  };
  const seen = new FreshClaims(target, violations);
  const pairs = new FreshClaims(oncewardTarget(calls, main.database), violations);
  const of = { serverPid: main.server.pid, database: main.database };
  const sides = { seen: { ...of, step: seen.claim }, pair: { ...of, step: pairs.pair } };
  const cost = await compareCosts(bench, "key that was not seen", sides, CALLERS);
  await seen.verify();
  await pairs.verify();
  return [
    {
      figure: "P20",
      part: "rate",
      what: `keys/s of seen ÷ pairs/s of P2, ${CALLERS} callers`,
      value: cost.seen.perSecond / cost.pair.perSecond,
      unit: "×",
      bar: { atLeast: 2 },
      raw: { "seen /s": cost.seen.perSecond, "pairs /s": cost.pair.perSecond },
    },
    {
      figure: "P20",
      part: "log",
      what: "bytes of the log of a seen key ÷ a pair",
      value: cost.seen.walBytes / cost.pair.walBytes,
      unit: "×",
      bar: { atMost: 0.45 },
      raw: { "seen bytes": cost.seen.walBytes, "pair bytes": cost.pair.walBytes },
    },
  ];
};
