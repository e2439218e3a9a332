import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { access, constants, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { connect } from "amqplib";
import { waitUntil } from "../../../server/dev/embedded/wait.ts";
import { makeDataDir } from "../processes/data-dir.ts";

/** A RabbitMQ of its own for a test, on loopback ports. */
export interface RabbitMqBroker {
  /** `amqp://…`, with a user who has all rights. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Debian's directory of RabbitMQ's programs. The one in PATH runs only as RabbitMQ's user or as root. */
export const RABBITMQ_DIR = "/usr/lib/rabbitmq/bin";

/** Resolves with whether RabbitMQ is installed. */
export function hasRabbitMq(): Promise<boolean> {
  return access(`${RABBITMQ_DIR}/rabbitmq-server`, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** A start takes four seconds of one core, and several may run at once. */
const START_TIMEOUT_MS = 110_000;

/** Another process may take a port between the look at it and the broker's start. */
const MAX_STARTS = 3;

/**
 * Runs the broker and Erlang's registry of nodes until the broker ends, or standard input does, as when the tests are
 * killed. Both are killed, because their data is temporary. The registry is started first: one that a broker
 * starts keeps running after it. The shell does not print that it killed the broker, as an example's output is compared.
 */
const WATCHED = `
epmd -address 127.0.0.1 -port $ERL_EPMD_PORT & epmd=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do epmd -names >/dev/null 2>&1 && break; sleep 0.1; done
"$1/rabbitmq-server" & broker=$!
exec 3<&0
(read -r _ <&3; kill -9 $broker 2>/dev/null) & reader=$!
{ wait $broker; } 2>/dev/null
kill -9 $epmd $reader 2>/dev/null; wait; rm -rf "$RABBITMQ_MNESIA_BASE"`;

/**
 * Starts an empty broker, and resolves once it accepts connections. The broker ends with the test process.
 *
 * @param programs the directory with RabbitMQ's programs.
 */
export async function startBroker(programs: string): Promise<RabbitMqBroker> {
  for (let start = 1; start <= MAX_STARTS; start++) {
    const broker = await startOnFreePorts(programs);
    if (broker !== undefined) return broker;
  }
  throw new Error(`RabbitMQ has not started on ${MAX_STARTS} sets of ports`);
}

/** Starts a broker; undefined if it ended before it accepted a connection. */
async function startOnFreePorts(programs: string): Promise<RabbitMqBroker | undefined> {
  const dir = await makeDataDir("ow-rabbitmq-");
  const [port, distributionPort, epmdPort] = [await lowPort(), await lowPort(), await lowPort()];
  const child = spawn("sh", ["-c", WATCHED, "sh", programs], {
    stdio: ["pipe", "ignore", "inherit"],
    env: {
      PATH: process.env.PATH,
      // Erlang's cookie is kept here instead of in the user's home.
      HOME: dir,
      ERL_EPMD_ADDRESS: "127.0.0.1",
      ERL_EPMD_PORT: String(epmdPort),
      RABBITMQ_NODENAME: `onceward-${port}@localhost`,
      RABBITMQ_NODE_IP_ADDRESS: "127.0.0.1",
      RABBITMQ_NODE_PORT: String(port),
      RABBITMQ_DIST_PORT: String(distributionPort),
      RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: "-kernel inet_dist_use_interface {127,0,0,1}",
      RABBITMQ_CONF_ENV_FILE: "/dev/null",
      RABBITMQ_CONFIG_FILE: join(dir, "none"),
      RABBITMQ_ENABLED_PLUGINS_FILE: join(dir, "none"),
      RABBITMQ_MNESIA_BASE: dir,
      RABBITMQ_LOG_BASE: dir,
      RABBITMQ_LOGS: join(dir, "log"),
      // The script then replaces itself by the broker, which can be killed like any process.
      RUNNING_UNDER_SYSTEMD: "true",
    },
  });
  const exited = once(child, "exit");
  const stop = async () => {
    child.stdin.end();
    await exited;
    await rm(dir, { recursive: true, force: true });
  };
  const url = `amqp://127.0.0.1:${port}`;
  const takesConnections = async () => {
    try {
      await (await connect(url)).close();
      return true;
    } catch {
      return false;
    }
  };
  let hasEnded = false;
  const ended = exited.then(() => {
    hasEnded = true;
  });
  // The port may have been taken by another broker: an answer counts only while this one runs.
  const accepts = await waitUntil(async () => hasEnded || (await takesConnections()), START_TIMEOUT_MS);
  if (accepts && !hasEnded) return { url, stop };
  await stop();
  await ended;
  if (!accepts) throw new Error("RabbitMQ has not started in time");
  return undefined;
}

/**
 * A free port, below those that outgoing connections are given: the broker takes it seconds later, and
 * other tests make many connections.
 */
async function lowPort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000);
    const server = createServer().listen(port, "127.0.0.1");
    const free = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (!free) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}
