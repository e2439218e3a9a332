import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { socketOf } from "../../support/network/sockets.ts";
import { startTcpProxy, type TcpProxy } from "../../support/network/tcp-proxy.ts";
import { socketSetting } from "../../support/servers/server.ts";
import { type ServerProcess, startServerProcess } from "../../support/servers/server-process.ts";

/**
 * A replica process with a proxy on every connection in and out. Its addresses stay the same after a restart.
 */
export interface Replica extends AsyncDisposable {
  readonly name: string;
  /** Between the clients and the replica. */
  readonly inbound: TcpProxy;
  readonly toPostgres: TcpProxy;
  /** Undefined without Redis. */
  readonly toRedis: TcpProxy | undefined;
  readonly process: ServerProcess;
  /** Returns the log lines of calls that failed by a defect, of all its processes. */
  defects(): readonly string[];
  signal(name: NodeJS.Signals): void;
  /** Kills it with SIGKILL and starts it again. */
  restart(how?: ReplicaStart): Promise<void>;
  kill(): Promise<void>;
  /** Sends SIGTERM; resolves to the exit code or signal. */
  drain(): Promise<number | NodeJS.Signals>;
}

/** Differences from a replica's usual start. */
export interface ReplicaStart {
  /** `server/src/main.ts` of another version. */
  readonly main?: string;
  /** Options of Node. */
  readonly nodeOptions?: readonly string[];
  readonly clockOffsetMs?: number;
}

export interface ReplicaOptions extends ReplicaStart {
  readonly name: string;
  /** The URL of Postgres itself: the replica connects through its proxy. */
  readonly databaseUrl: string;
  readonly redisSocket: string | undefined;
  /** Variables besides the usual ones. */
  readonly env?: Readonly<Record<string, string>>;
  /** Called when it ends unexpectedly. */
  readonly onAccident: (what: string) => void;
}

const MAIN = fileURLToPath(new URL("../../../server/src/main.ts", import.meta.url));
const PRELOAD = new URL("preload.ts", import.meta.url).href;
/**
 * A replica that starts while Postgres is unreachable ends at once, and is started again, as an orchestrator would.
 */
const START_TRIES = 40;
const RETRY_MS = 500;
/** Where calls go while a replica is down: another process of the machine may be given its port. */
const NO_PROCESS = "/nonexistent";
/** The message with which a replica logs an INTERNAL answer. */
const DEFECT = "a call failed by a defect";

/** Starts a replica. */
export async function startReplica(options: ReplicaOptions): Promise<Replica> {
  const { name, databaseUrl, redisSocket, onAccident } = options;
  const toPostgres = await startTcpProxy(socketOf(databaseUrl));
  const toRedis = redisSocket === undefined ? undefined : await startTcpProxy(redisSocket);
  let isEndExpected = false;
  const outputs: (readonly string[])[] = [];
  const socket = socketSetting();
  let current = await launch({}, 1);
  const inbound = await startTcpProxy(current.socket ?? current.grpcPort);

  async function launch(how: ReplicaStart, tries = START_TRIES): Promise<ServerProcess> {
    const { main = MAIN, nodeOptions = [], clockOffsetMs = 0 } = { ...options, ...how };
    const env = {
      CHAOS_CLOCK_OFFSET_MS: String(clockOffsetMs),
      ONCEWARD_SWEEP_INTERVAL: "500ms",
      ONCEWARD_POOL_SIZE: "6",
      ONCEWARD_CACHE_MIB: "16",
      ...(main === MAIN && socket),
      ...options.env,
      ...(toRedis && { REDIS_URL: `redis://127.0.0.1:${toRedis.port}` }),
    };
    const { username, pathname } = new URL(databaseUrl);
    const url = `postgresql://${username}@127.0.0.1:${toPostgres.port}${pathname}`;
    for (let attempt = 1; ; attempt++) {
      try {
        const program = [...nodeOptions, "--import", PRELOAD, main, "serve"];
        const started = await startServerProcess(url, env, program);
        outputs.push(started.output);
        void watch(started);
        return started;
      } catch (error) {
        if (attempt >= tries) throw error;
        await pause(RETRY_MS);
      }
    }
  }

  async function watch(started: ServerProcess): Promise<void> {
    const how = await started.exited;
    if (isEndExpected) return;
    onAccident(`${name} ended unexpectedly: ${how}\n${started.output.slice(-10).join("\n")}`);
  }

  async function kill(): Promise<void> {
    isEndExpected = true;
    inbound.setTarget(NO_PROCESS);
    await current.end();
  }

  return {
    name,
    inbound,
    toPostgres,
    toRedis,
    get process() {
      return current;
    },
    defects: () => outputs.flatMap((lines) => lines.filter((line) => line.includes(DEFECT))),
    signal: (signal) => current.signal(signal),
    kill,
    async drain() {
      isEndExpected = true;
      current.signal("SIGTERM");
      const how = await current.exited;
      inbound.setTarget(NO_PROCESS);
      return how;
    },
    async restart(how = {}) {
      await kill();
      current = await launch(how);
      isEndExpected = false;
      inbound.setTarget(current.socket ?? current.grpcPort);
    },
    async [Symbol.asyncDispose]() {
      await kill();
      await Promise.all([inbound.close(), toPostgres.close(), toRedis?.close()]);
    },
  };
}
