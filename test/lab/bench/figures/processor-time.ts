import { type Cost, type Costly, compareCosts } from "../cost.ts";
import type { Bench, Figure } from "../figure.ts";
import { type Finding, ratioOf } from "../finding.ts";
import { measureLimit } from "../limit.ts";
import { FreshClaims, prepareReplays, type Target } from "../target.ts";
import { diyTarget } from "../target-diy.ts";
import { oncewardTarget } from "../target-onceward.ts";

const CALLERS = 256;
const KEYS = 2000;
/** A completion of 200 bytes, beside the claim before it. */
const COMPLETION_BAR = { atMost: 1.3 };

type Sides = Readonly<Record<"onceward" | "diy", Costly>>;
type Costs = Readonly<Record<"onceward" | "diy", Cost>>;

/**
 * Measures P18: the processor time of a claim, a pair and a replay, of all processes, beside DIY's and a row of pgbench. These
 * are the figures that mean the same on a machine whose disk is fast or slow.
 */
export const measureProcessorTime: Figure = async (bench) => {
  const { rig, main, options, violations, signal } = bench;
  const database = await rig.createDiyDatabase();
  await using target = diyTarget(database);
  const sides = {
    onceward: await stepsOf(bench, oncewardTarget(main.client.calls, main.database)),
    diy: await stepsOf(bench, target),
  };
  const on = (step: "claim" | "pair" | "replay"): Sides => ({
    onceward: { step: sides.onceward[step], serverPid: main.server.pid, database: main.database },
    diy: { step: sides.diy[step], serverPid: undefined, database },
  });
  const claim = await compareCosts(bench, "claim", on("claim"), CALLERS);
  const pair = await compareCosts(bench, "pair", on("pair"), CALLERS);
  const replay = await compareCosts(bench, "replay", on("replay"), CALLERS);
  await sides.onceward.verify();
  await sides.diy.verify();
  const findings = [
    comparison("claim", claim),
    comparison("pair", pair),
    comparison("replay", replay),
    completion("replica", claim.onceward.serverMicros, pair.onceward.serverMicros),
    completion("Postgres", claim.onceward.postgresMicros, pair.onceward.postgresMicros),
  ];
  bench.progress("processor time of pgbench's rows");
  const limit = await measureLimit(database, options.quick ? 1 : 5, signal);
  if (limit === undefined) return findings;
  const own = claim.onceward.postgresMicros;
  return [
    ...findings,
    ratioOf(
      { figure: "P18", part: "limit", what: "Postgres' processor time of a claim ÷ a row of pgbench" },
      { "claim µs": own, "row µs": limit.postgresMicros },
    ),
  ];

  async function stepsOf<Token>(of: Bench, side: Target<Token>) {
    const fresh = new FreshClaims(side, violations);
    // The replays' keys are stored, too.
    const { among } = await prepareReplays(side, KEYS, of.violations);
    return {
      claim: fresh.claim,
      pair: fresh.pair,
      replay: among(KEYS),
      verify: () => fresh.verify(KEYS),
    };
  }
};

function comparison(part: "claim" | "pair" | "replay", { onceward, diy }: Costs): Finding {
  const total = ({ serverMicros, clientMicros, postgresMicros }: Cost) =>
    serverMicros + clientMicros + postgresMicros;
  return {
    figure: "P18",
    part,
    what: `processor time of a ${part} ÷ DIY, ${CALLERS} callers`,
    value: total(onceward) / total(diy),
    unit: "×",
    raw: {
      "replica µs": onceward.serverMicros,
      "client µs": onceward.clientMicros,
      "Postgres µs": onceward.postgresMicros,
      "log bytes": onceward.walBytes,
      "DIY client µs": diy.clientMicros,
      "DIY Postgres µs": diy.postgresMicros,
      "DIY log bytes": diy.walBytes,
    },
  };
}

function completion(where: string, claimMicros: number, pairMicros: number): Finding {
  return {
    figure: "P18",
    part: `completion, ${where}`,
    what: `processor time of a completion ÷ a claim, ${where}`,
    value: (pairMicros - claimMicros) / claimMicros,
    unit: "×",
    bar: COMPLETION_BAR,
    raw: { "claim µs": claimMicros, "pair µs": pairMicros },
  };
}
