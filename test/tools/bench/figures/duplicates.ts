import { readMetrics } from "../../../helpers/servers/metrics.ts";
import type { Bench, Figure } from "../figure.ts";
import type { Finding } from "../finding.ts";
import type { Station } from "../rig.ts";
import { freshKeys } from "../target.ts";
import { oncewardTarget } from "../target-onceward.ts";

/** How often the messages of a stream are delivered. */
interface Stream {
  readonly name: string;
  /** Duplicates of a message: a fraction is the share of messages that have one. */
  readonly duplicates: number;
}

const STREAMS: readonly Stream[] = [
  { name: "0.6 % duplicates", duplicates: 0.006 },
  { name: "10 % duplicates", duplicates: 0.1 },
  { name: "3 deliveries, as of webhooks", duplicates: 2 },
];
const MESSAGES = 20_000;
const QUICK_MESSAGES = 1000;
const CALLERS = 64;
const PAYLOAD = Buffer.alloc(200, "x");

/**
 * Measures P21: the share of duplicates that two replicas with one Redis answer without Postgres. A message is claimed and
 * completed on one of them, and its duplicates arrive after some hundred other messages on any.
 */
export const measureDuplicates: Figure = async (bench) => {
  const { rig, main } = bench;
  await using first = await rig.startStation({ on: main });
  await using second = await rig.startStation({ on: main });
  const findings: Finding[] = [];
  for (const stream of STREAMS) findings.push(await measureStream(bench, [first, second], stream));
  return findings;
};

async function measureStream(
  { options, violations, signal, progress }: Bench,
  replicas: readonly [Station, Station],
  { name, duplicates }: Stream,
): Promise<Finding> {
  progress(`a stream with ${name}`);
  const namespace = `stream-${duplicates}`;
  const targets = replicas.map(({ client, database }) => oncewardTarget(client.calls, database, [namespace]));
  const anyTarget = () => targets[Math.floor(Math.random() * targets.length)] as (typeof targets)[number];
  const nextKey = freshKeys();
  const messages = options.quick ? QUICK_MESSAGES : MESSAGES;
  /** Keys whose duplicates are still to come: each waits for as many messages as there are keys before it. */
  const waiting: string[] = [];
  let left = messages;
  let delivered = 0;

  async function deliverAgain(key: string): Promise<void> {
    delivered++;
    const payload = await anyTarget().replay(key);
    if (payload === undefined || !PAYLOAD.equals(payload)) violations.add(`${name}: ${key} was not replayed`);
  }

  async function caller(): Promise<void> {
    while (left-- > 0 && !signal.aborted) {
      const key = nextKey();
      const target = anyTarget();
      const token = await target.claim(key);
      if (token === undefined) violations.add(`${name}: the fresh key ${key} was not granted`);
      else await target.complete(key, token, PAYLOAD);
      const whole = Math.floor(duplicates);
      const count = whole + (Math.random() < duplicates - whole ? 1 : 0);
      for (let i = 0; i < count; i++) waiting.push(key);
      while (waiting.length > 4 * CALLERS) await deliverAgain(waiting.shift() as string);
    }
  }

  const before = await countHits(replicas);
  await Promise.all(Array.from({ length: CALLERS }, caller));
  await Promise.all(waiting.map(deliverAgain));
  const hits = await countHits(replicas);
  signal.throwIfAborted();
  const memory = hits.memory - before.memory;
  const redis = hits.redis - before.redis;
  return {
    figure: "P21",
    part: name,
    what: `duplicates answered without Postgres by two replicas, ${name}`,
    value: delivered === 0 ? 0 : (memory + redis) / delivered,
    unit: "×",
    raw: { messages, duplicates: delivered, "from memory": memory, "from Redis": redis },
  };
}

async function countHits(replicas: readonly Station[]): Promise<{ memory: number; redis: number }> {
  const all = await Promise.all(replicas.map(({ server }) => readMetrics(server)));
  const sum = (layer: string) =>
    all.reduce(
      (total, metrics) =>
        total + (metrics.get(`onceward_cache_requests_total{layer="${layer}",result="hit"}`) ?? 0),
      0,
    );
  return { memory: sum("memory"), redis: sum("redis") };
}
