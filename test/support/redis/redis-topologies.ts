import { expect } from "vitest";
import { freePort, startRedis, type TestRedis } from "./redis.ts";

/** Redis servers with failover. */
export interface Topology {
  /** The value of `REDIS_URL`. */
  readonly url: string;
  /** The server for writes; in a cluster, the one that the failover test kills or stops. */
  readonly master: TestRedis;
  /** The master's replica, which takes over once the master is killed or hangs. */
  readonly replica: TestRedis;
  /** All servers with data, and those of them that accept writes until a failover. */
  readonly servers: readonly TestRedis[];
  readonly masters: readonly TestRedis[];
  /** Sets the password of all servers, and what they and their sentinels send to each other. */
  changePassword(password: string): Promise<void>;
  stop(): Promise<void>;
}

const PATIENCE = { timeout: 30_000, interval: 50 };

/** Sets the password that servers ask for, and send to their master. */
export async function changePasswords(servers: readonly TestRedis[], password: string): Promise<void> {
  for (const { command } of servers) {
    await command("config", "set", "masterauth", password);
    await command("config", "set", "requirepass", password);
  }
}

function passwordArgs(password: string | undefined): readonly string[] {
  return password === undefined ? [] : ["--requirepass", password, "--masterauth", password];
}

/**
 * Starts a master, a replica, and three sentinels of which two must agree. The servers ask for the password, if there is
 * one; the sentinels do not.
 */
export async function startSentinels(password?: string): Promise<Topology> {
  const connect = password === undefined ? {} : { connect: { password } };
  const master = await startRedis({ args: passwordArgs(password), ...connect });
  const replicaOf = ["--replicaof", "127.0.0.1", String(master.port)];
  const replica = await startRedis({ args: [...replicaOf, ...passwordArgs(password)], ...connect });
  const sentinel = [
    `sentinel monitor main 127.0.0.1 ${master.port} 2`,
    ...(password === undefined ? [] : [`sentinel auth-pass main ${password}`]),
    "sentinel down-after-milliseconds main 500",
    "sentinel failover-timeout main 3000",
  ];
  const sentinels = await Promise.all([1, 2, 3].map(() => startRedis({ sentinel })));
  for (const { command } of sentinels) {
    await expect
      .poll(async () => {
        const replicas = await command("sentinel", "replicas", "main");
        const others = await command("sentinel", "sentinels", "main");
        return [replicas, others].map((list) => (Array.isArray(list) ? list.length : 0));
      }, PATIENCE)
      .toEqual([1, 2]);
  }
  await untilInSync(replica);
  const hosts = sentinels.map(({ port }) => `127.0.0.1:${port}`).join(",");
  return {
    url: `redis+sentinel://${password === undefined ? "" : `:${password}@`}${hosts}/main`,
    master,
    replica,
    servers: [master, replica],
    masters: [master],
    async changePassword(changed) {
      await changePasswords([master, replica], changed);
      for (const { command } of sentinels) await command("sentinel", "set", "main", "auth-pass", changed);
    },
    async stop() {
      await Promise.all([...sentinels, master, replica].map((redis) => redis.stop()));
    },
  };
}

const SLOTS = [
  [0, 5460],
  [5461, 10922],
  [10923, 16383],
] as const;

/** Starts three masters, and a replica of the first. They ask for the password, if there is one. */
export async function startCluster(password?: string): Promise<Topology> {
  const nodes = await Promise.all([1, 2, 3, 4].map(() => startNode(password)));
  const [first, , , replica] = nodes;
  if (first === undefined || replica === undefined) throw new Error("a node is missing");
  await Promise.all(
    SLOTS.map(([from, to], index) => nodes[index]?.redis.command("cluster", "addslotsrange", from, to)),
  );
  for (const { redis, busPort } of nodes) {
    await first.redis.command("cluster", "meet", "127.0.0.1", redis.port, busPort);
  }
  const firstId = String(await first.redis.command("cluster", "myid"));
  const replicate = () =>
    replica.redis.command("cluster", "replicate", firstId).then(String, (error: Error) => error.message);
  await expect.poll(replicate, PATIENCE).toBe("OK");
  const state = async ({ redis }: ClusterNode) =>
    /cluster_state:\w+/.exec(String(await redis.command("cluster", "info")))?.[0];
  for (const node of nodes) await expect.poll(() => state(node), PATIENCE).toBe("cluster_state:ok");
  await untilInSync(replica.redis);
  const hosts = nodes.map(({ redis }) => `127.0.0.1:${redis.port}`).join(",");
  return {
    url: `redis+cluster://${password === undefined ? "" : `:${password}@`}${hosts}`,
    master: first.redis,
    replica: replica.redis,
    servers: nodes.map(({ redis }) => redis),
    masters: nodes.slice(0, 3).map(({ redis }) => redis),
    changePassword: (changed) =>
      changePasswords(
        nodes.map(({ redis }) => redis),
        changed,
      ),
    async stop() {
      await Promise.all(nodes.map(({ redis }) => redis.stop()));
    },
  };
}

interface ClusterNode {
  readonly redis: TestRedis;
  readonly busPort: number;
}

async function startNode(password: string | undefined): Promise<ClusterNode> {
  const busPort = await freePort();
  const args = [
    "--cluster-enabled",
    "yes",
    "--cluster-port",
    String(busPort),
    "--cluster-node-timeout",
    "1000",
  ];
  if (password === undefined) return { redis: await startRedis({ args }), busPort };
  args.push(...passwordArgs(password));
  return { redis: await startRedis({ args, connect: { password } }), busPort };
}

/** Resolves once a replica has all data of its master. */
async function untilInSync(replica: TestRedis): Promise<void> {
  const info = async () => String(await replica.command("info", "replication"));
  await expect.poll(info, PATIENCE).toContain("master_link_status:up");
}

/** Resolves once a replica has taken over. */
export async function untilMaster(replica: TestRedis): Promise<void> {
  const info = async () => String(await replica.command("info", "replication"));
  await expect.poll(info, PATIENCE).toContain("role:master");
}
