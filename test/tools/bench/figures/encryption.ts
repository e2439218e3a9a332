import { randomBytes } from "node:crypto";
import type { Bench, Figure } from "../figure.ts";
import type { Finding } from "../finding.ts";
import { alternate } from "../load.ts";
import type { Station } from "../rig.ts";
import { FreshClaims, prepareReplays } from "../target.ts";
import { oncewardTarget } from "../target-onceward.ts";

const CALLERS = 256;
const KEYS = 2000;
/** Without copies, every replay is read from Postgres. */
const NO_COPIES = { ONCEWARD_CACHE_MIB: "0", REDIS_URL: "" };

/** The same step on a server with encryption keys, and on one without. */
type Sides = Readonly<Record<"withKeys" | "without", () => Promise<void>>>;

/** Measures P15, the cost of encryption at rest. */
export const measureEncryption: Figure = async (bench) => {
  const { rig, violations } = bench;
  const keys = { ONCEWARD_ENCRYPTION_KEYS: `1:${randomBytes(32).toString("base64")}` };
  await using withKeys = await rig.startStation({ env: keys });
  await using without = await rig.startStation();
  const fresh = { withKeys: freshClaims(bench, withKeys), without: freshClaims(bench, without) };
  const findings = [
    await compare(bench, "claims", {
      withKeys: fresh.withKeys.claim,
      without: fresh.without.claim,
    }),
    await compare(bench, "claim+complete pairs", {
      withKeys: fresh.withKeys.pair,
      without: fresh.without.pair,
    }),
  ];
  await fresh.withKeys.verify();
  await fresh.without.verify();
  const replaysOf = async (station: Station) =>
    (await prepareReplays(oncewardTarget(station.client.calls, station.database), KEYS, violations)).among(
      KEYS,
    );
  findings.push(
    await compare(bench, "replays from memory", {
      withKeys: await replaysOf(withKeys),
      without: await replaysOf(without),
    }),
  );
  await using readsWithKeys = await rig.startStation({ on: withKeys, env: { ...keys, ...NO_COPIES } });
  await using readsWithout = await rig.startStation({ on: without, env: NO_COPIES });
  findings.push(
    await compare(bench, "replays from Postgres", {
      withKeys: await replaysOf(readsWithKeys),
      without: await replaysOf(readsWithout),
    }),
  );
  return findings;
};

function freshClaims({ violations }: Bench, { client, database }: Station): FreshClaims<bigint> {
  return new FreshClaims(oncewardTarget(client.calls, database), violations);
}

async function compare({ signal, pace, progress }: Bench, what: string, sides: Sides): Promise<Finding> {
  progress(`${what} with and without encryption, ${CALLERS} callers`);
  const { withKeys, without } = await alternate(sides, { ...pace, callers: CALLERS }, signal);
  return {
    figure: "P15",
    part: what,
    what: `${what}/s with encryption at rest ÷ without, ${CALLERS} callers`,
    value: withKeys.perSecond / without.perSecond,
    unit: "×",
    raw: { "with /s": withKeys.perSecond, "without /s": without.perSecond },
  };
}
