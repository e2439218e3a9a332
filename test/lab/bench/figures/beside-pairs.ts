import { randomUUID } from "node:crypto";
import { compareCosts } from "../cost.ts";
import type { Bench, Figure } from "../figure.ts";
import type { Bar, FigureId, Finding } from "../finding.ts";
import { FINGERPRINT, FreshClaims, LEASE, type Target } from "../target.ts";
import { oncewardTarget } from "../target-onceward.ts";

const CALLERS = 256;

/** Measures P20: a claim that completes its record, as `seen` makes it, beside the pairs of P2. */
export const measureDedupe: Figure = async (bench) => {
  const { main, violations } = bench;
  const { calls } = main.client;
  const namespace = `seen-${randomUUID()}`;
  const target: Target<true> = {
    ...oncewardTarget(calls, main.database, [namespace]),
    async claim(key) {
      const request = { namespace, key, claimId: randomUUID(), owner: "bench/1", completion: {} };
      return (await calls.claim(request)).outcome.case === "recorded" ? true : undefined;
    },
    complete: async () => {},
  };
  const seen = new FreshClaims(target, violations);
  const bars = { rate: { atLeast: 2 }, log: { atMost: 0.45 } };
  return await besidePairs(bench, { figure: "P20", what: "seen key", own: seen, step: seen.claim, bars });
};

/** Measures P21: a claim that marks when its effect begins, that mark and a completion, beside the pairs of P2. */
export const measureBegin: Figure = async (bench) => {
  const { main, violations } = bench;
  const { calls } = main.client;
  const namespace = `begun-${randomUUID()}`;
  const onceward = oncewardTarget(calls, main.database, [namespace]);
  const target: Target<bigint> = {
    ...onceward,
    async claim(key) {
      const request = { namespace, key, claimId: randomUUID(), owner: "bench/1", marksBegin: true };
      const { outcome } = await calls.claim({ ...request, lease: LEASE, fingerprint: FINGERPRINT });
      return outcome.case === "claimed" ? outcome.value.fencingToken : undefined;
    },
    async complete(key, fencingToken, payload) {
      await calls.extendLease({ namespace, key, fencingToken, begin: true });
      await onceward.complete(key, fencingToken, payload);
    },
  };
  const begun = new FreshClaims(target, violations);
  return await besidePairs(bench, { figure: "P21", what: "begun pair", own: begun, step: begun.pair });
};

/** A step that is measured beside pairs. */
interface Beside {
  readonly figure: FigureId;
  readonly what: string;
  readonly own: { verify(): Promise<void> };
  readonly step: () => Promise<void>;
  readonly bars?: { readonly rate: Bar; readonly log: Bar };
}

async function besidePairs(
  bench: Bench,
  { figure, what, own, step, bars }: Beside,
): Promise<readonly Finding[]> {
  const { main, violations } = bench;
  const pairs = new FreshClaims(oncewardTarget(main.client.calls, main.database), violations);
  const of = { serverPid: main.server.pid, database: main.database };
  const sides = { own: { ...of, step }, pair: { ...of, step: pairs.pair } };
  const cost = await compareCosts(bench, what, sides, CALLERS);
  await own.verify();
  await pairs.verify();
  return [
    {
      figure,
      part: "rate",
      what: `${what}s/s ÷ pairs/s of P2, ${CALLERS} callers`,
      value: cost.own.perSecond / cost.pair.perSecond,
      unit: "×",
      ...(bars && { bar: bars.rate }),
      raw: { [`${what}s /s`]: cost.own.perSecond, "pairs /s": cost.pair.perSecond },
    },
    {
      figure,
      part: "log",
      what: `bytes of the log of a ${what} ÷ a pair`,
      value: cost.own.walBytes / cost.pair.walBytes,
      unit: "×",
      ...(bars && { bar: bars.log }),
      raw: { [`${what} bytes`]: cost.own.walBytes, "pair bytes": cost.pair.walBytes },
    },
  ];
}
