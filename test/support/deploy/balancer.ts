import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { vi } from "vitest";
import type { Addresses } from "../../../server/src/replica/server.ts";
import type { Certificate } from "../network/certificates.ts";
import { freePort } from "../redis/redis.ts";
import { type BackgroundProgram, startProgram } from "./background-program.ts";

const CONFIG = fileURLToPath(new URL("../../../deploy/haproxy/haproxy.cfg", import.meta.url));
const START_TIMEOUT_MS = 30_000;

/** A HAProxy with the configuration of `deploy/`, in front of two replicas on loopback. */
export interface Balancer extends Addresses, Pick<BackgroundProgram, "output"> {
  stop(): Promise<void>;
}

/**
 * Starts HAProxy and waits until it answers.
 *
 * @param certificate TLS towards clients; undefined: none.
 */
export async function startBalancer(
  replicas: readonly [Addresses, Addresses],
  certificate?: Certificate,
): Promise<Balancer> {
  const dir = await mkdtemp(join(tmpdir(), "ow-balancer-"));
  const ports = { grpcPort: await freePort(), httpPort: await freePort(), managementPort: await freePort() };
  const file = join(dir, "haproxy.cfg");
  await writeFile(file, onLoopback(await readFile(CONFIG, "utf8"), ports, replicas));
  const bundle = join(dir, "certificate.pem");
  if (certificate !== undefined) {
    await writeFile(bundle, certificate.pem.cert + certificate.pem.key, { mode: 0o600 });
  }
  const env = { BALANCER_CERTIFICATE: certificate === undefined ? "" : bundle };
  const program = await startProgram("haproxy", ["-db", "-f", file], env);
  const stop = async () => {
    await program.stop();
    await rm(dir, { recursive: true, force: true });
  };
  try {
    await vi.waitUntil(() => isLive(program, ports), { timeout: START_TIMEOUT_MS });
  } catch (error) {
    await stop();
    throw error;
  }
  return { ...ports, output: program.output, stop };
}

/** Replaces the addresses of the compose network; every other line is as in `deploy/`. */
function onLoopback(config: string, ports: Addresses, replicas: readonly [Addresses, Addresses]): string {
  const changes: [string, string][] = [
    ["bind :50051", `bind 127.0.0.1:${ports.grpcPort}`],
    ["bind :8080", `bind 127.0.0.1:${ports.httpPort}`],
    ["bind :9101", `bind 127.0.0.1:${ports.managementPort}`],
  ];
  for (const [index, { grpcPort, httpPort, managementPort }] of replicas.entries()) {
    const name = `replica-${index + 1}`;
    changes.push(
      [`${name}:50051`, `127.0.0.1:${grpcPort}`],
      [`${name}:8080 check port 9090`, `127.0.0.1:${httpPort} check port ${managementPort}`],
    );
  }
  return changes.reduce((text, [from, to]) => {
    if (!text.includes(from)) throw new Error(`${CONFIG} has no "${from}"`);
    return text.replaceAll(from, to);
  }, config);
}

/** @throws Error with the program's output if it has ended. */
async function isLive(program: BackgroundProgram, { managementPort }: Addresses): Promise<boolean> {
  if (!program.isRunning()) throw new Error(`haproxy ended:\n${program.output()}`);
  const answer = await fetch(`http://127.0.0.1:${managementPort}/livez`).catch(() => undefined);
  return answer?.status === 200;
}
