import { createOnceward } from "@onceward/client";
import type { Bench, Figure } from "../figure.ts";
import type { Finding } from "../finding.ts";
import { alternate, type Step } from "../load.ts";
import { FreshClaims, prepareReplays, type Target } from "../target.ts";
import { diyTarget } from "../target-diy.ts";
import { oncewardTarget } from "../target-onceward.ts";

const KEYS = 1000;

/** Measures P5, the latency of a single caller that makes one call after another, and P24, the same over a Unix socket. */
export const measureLone: Figure = async (bench) => {
  const { rig, main, violations } = bench;
  await using target = diyTarget(await rig.createDiyDatabase());
  await using local = createOnceward({ address: `unix:${main.socket}`, apiKey: main.tenant.apiKey });
  const targets = {
    onceward: oncewardTarget(main.client.calls, main.database),
    socket: oncewardTarget(local.calls, main.database),
    diy: target,
  };
  const ofEach = async <Made>(make: <Token>(target: Target<Token>) => Made) => ({
    onceward: await make(targets.onceward),
    socket: await make(targets.socket),
    diy: await make(targets.diy),
  });
  const claims = await ofEach((each) => new FreshClaims(each, violations));
  const { onceward, socket, diy } = claims;
  const claim = await compare(bench, "claim", 2.5, {
    onceward: onceward.claim,
    socket: socket.claim,
    diy: diy.claim,
  });
  for (const each of [onceward, socket, diy]) await each.verify();
  const replays = await ofEach(async (each) => (await prepareReplays(each, KEYS, violations)).among(KEYS));
  return [...claim, ...(await compare(bench, "replay", 2, replays))];
};

async function compare(
  { signal, pace, progress }: Bench,
  part: string,
  atMost: number,
  sides: Readonly<Record<"onceward" | "socket" | "diy", Step>>,
): Promise<readonly Finding[]> {
  progress(`a lone ${part}`);
  const { onceward, socket, diy } = await alternate(sides, { ...pace, callers: 1 }, signal);
  return [
    {
      ...{ figure: "P5", part, unit: "×", bar: { atMost } },
      what: `p50 of a lone ${part} ÷ DIY`,
      value: onceward.p50Ms / diy.p50Ms,
      raw: { "Onceward ms": onceward.p50Ms, "DIY ms": diy.p50Ms },
    },
    {
      ...{ figure: "P24", part, unit: "×" },
      ...(part === "claim" && { bar: { atMost: 0.85 } }),
      what: `p50 of a lone ${part}, over a Unix socket ÷ over TCP`,
      value: socket.p50Ms / onceward.p50Ms,
      raw: { "socket ms": socket.p50Ms, "TCP ms": onceward.p50Ms },
    },
  ];
}
