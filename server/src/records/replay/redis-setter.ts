import { Cluster, Command, type Redis, ReplyError } from "ioredis";
import type { RedisConnection } from "./redis-connection.ts";

/** A value to store under a name, with its lifetime in whole milliseconds. */
export interface Setting {
  readonly name: string;
  readonly bytes: Buffer;
  readonly lifetimeMs: number;
}

/**
 * Runs `SET` for each value. One command for many values saves a fifth of this process' time for a claim and
 * its completion (server/decisions/0005-what-a-claim-costs.md).
 */
const SET_ALL = `for i = 1, #KEYS do redis.call("SET", KEYS[i], ARGV[2 * i - 1], "PX", ARGV[2 * i]) end`;
/** Time after which a Redis that refused the script is tried again. */
const NO_SCRIPTS_FOR_MS = 60_000;

/** Stores several values; rejects if one of them was not stored. */
type SetAll = (settings: readonly Setting[]) => Promise<unknown>;

/** Returns a function that stores several values with few commands. */
export function createRedisSetter(connection: RedisConnection): SetAll {
  return connection instanceof Cluster ? createClusterSetter(connection) : createServerSetter(connection);
}

/**
 * Stores several values by one script. Sends one command per value if Redis refuses the script, as it does
 * for a user without `+eval`.
 */
function createServerSetter(connection: Redis): SetAll {
  let scriptsFromMs = Number.NEGATIVE_INFINITY;
  const setEach: SetAll = (settings) => Promise.all(settings.map((setting) => setOne(connection, setting)));

  return async (settings) => {
    if (settings.length === 1 || performance.now() < scriptsFromMs) return setEach(settings);
    const names = settings.map(({ name }) => name);
    const values = settings.flatMap(({ bytes, lifetimeMs }) => [bytes, lifetimeMs]);
    try {
      return await connection.eval(SET_ALL, names.length, ...names, ...values);
    } catch (error) {
      if (!(error instanceof ReplyError)) throw error;
      scriptsFromMs = performance.now() + NO_SCRIPTS_FOR_MS;
      return setEach(settings);
    }
  };
}

/**
 * Stores several values by one pipeline for each node of the cluster. No script: one may access the names of
 * one slot only, and 256 names are in nearly as many slots.
 */
function createClusterSetter(cluster: Cluster): SetAll {
  return (settings) => {
    const [first] = settings;
    if (settings.length === 1 && first !== undefined) return setOne(cluster, first);
    const groups = Map.groupBy(settings, ({ name }) => cluster.slots[slotOf(name)]?.join());
    return Promise.all([...groups.values()].map((group) => setOnNode(cluster, group)));
  };
}

/**
 * Stores values whose slots one node has. A node that has moved a slot to another one refuses its values: these are
 * sent alone, because ioredis follows the refusal of a single command and then reads the slots again. Until it has, it takes
 * the slots beside the moved one for moved, too, and sends no pipeline for them.
 */
async function setOnNode(cluster: Cluster, settings: readonly Setting[]): Promise<void> {
  const pipeline = cluster.pipeline();
  for (const { name, bytes, lifetimeMs } of settings) pipeline.set(name, bytes, "PX", lifetimeMs);
  const setEach = (some: readonly Setting[]) => Promise.all(some.map((setting) => setOne(cluster, setting)));
  let replies: Awaited<ReturnType<typeof pipeline.exec>>;
  try {
    replies = await pipeline.exec();
  } catch (error) {
    if (!(error instanceof Error) || !NOT_SENT.test(error.message)) throw error;
    await setEach(settings);
    return;
  }
  const elsewhere: Setting[] = [];
  settings.forEach((setting, index) => {
    const [error] = replies?.[index] ?? [];
    if (!error) return;
    if (!REDIRECTION.test(error.message)) throw error;
    elsewhere.push(setting);
  });
  await setEach(elsewhere);
}

/** Returns the slot of a name, which determines its node. */
export function slotOf(name: string): number {
  return new Command("get", [name]).getSlot() ?? 0;
}

/** Source: the specification of Redis Cluster, "Redirection and resharding". */
const REDIRECTION = /^(MOVED|ASK|TRYAGAIN) /;
/** How ioredis refuses a pipeline itself: nothing of it was sent. */
const NOT_SENT = /same slots allocation group/;

function setOne(connection: RedisConnection, { name, bytes, lifetimeMs }: Setting): Promise<unknown> {
  return connection.set(name, bytes, "PX", lifetimeMs);
}
