import { expect, onTestFinished } from "vitest";
import { connectClient } from "../calls/clients.ts";
import { createTestDatabase, type TestDatabase } from "../database/database.ts";
import { type Certificate, tlsSettings } from "../network/certificates.ts";
import type { RawSocket } from "../network/raw-socket.ts";
import { type ServerProcess, startServerProcess } from "../servers/server-process.ts";
import { createTenant, type TestTenant } from "../servers/tenants.ts";
import { useStarted } from "../use-started.ts";

/** A server in a separate process that a test attacks, and a tenant with valid calls. */
export interface Target {
  readonly database: TestDatabase;
  readonly server: ServerProcess;
  readonly tenant: TestTenant;
  /**
   * Fails unless the same process still serves others on both ports, within its memory, and has logged no
   * problem.
   */
  expectUnharmed(): Promise<void>;
  end(): Promise<void>;
}

/** An idle server takes about 120 MB; more than this is a leak. */
const MAX_RSS_MB = 600;

/**
 * Starts a server that ends slow requests after a second, with TLS if a certificate is given. `env` overrides
 * its configuration, `program` the program that `startServerProcess` runs.
 */
export async function startTarget(
  certificate?: Certificate,
  env: Readonly<Record<string, string>> = {},
  program?: readonly string[],
): Promise<Target> {
  const database = await createTestDatabase();
  const tls = certificate && { ca: certificate.pem.cert };
  const settings = {
    ONCEWARD_REQUEST_TIMEOUT: "1s",
    ...(certificate && tlsSettings(certificate)),
    ...env,
  };
  const server = await startServerProcess(database.url, settings, program);
  const linesAtStart = server.output.length;
  const tenant = await createTenant(database);
  let calls = 0;
  return {
    database,
    server,
    tenant,
    async expectUnharmed() {
      for (const transport of ["native gRPC", "Connect with JSON"] as const) {
        const client = connectClient(server, tenant.apiKey, transport, tls);
        const key = `key-${++calls}`;
        const { outcome } = await patiently(() => client.claim({ namespace: "others", key }));
        expect(outcome.case).toBe("claimed");
      }
      expect(server.alive).toBe(true);
      expect(await server.rssMb()).toBeLessThan(MAX_RSS_MB);
      expect(server.output.slice(linesAtStart).filter(isTrouble)).toEqual([]);
    },
    async end() {
      await server.end();
      await database.drop();
    },
  };
}

/** Starts a target for the tests of the file, or of the `describe` that calls this. */
export function useTarget(env: Readonly<Record<string, string>> = {}, program?: readonly string[]): Target {
  return useStarted(
    () => startTarget(undefined, env, program),
    (target) => target.end(),
  );
}

const MAX_ATTEMPTS = 5;

/**
 * Repeats a call that was cut off: on a busy machine it may take longer than the server's request timeout.
 */
async function patiently<Reply>(call: () => Promise<Reply>): Promise<Reply> {
  for (let attempt = 1; attempt < MAX_ATTEMPTS; attempt++) {
    try {
      return await call();
    } catch (error) {
      if (!/ECONNRESET|error code CANCEL/.test(String(error))) throw error;
    }
  }
  return await call();
}

/** Returns whether a line reports a problem: lines up to pino's level 30 (info) do not. */
function isTrouble(line: string): boolean {
  return !line.startsWith('{"level":30,');
}

/** Sends on a connection until the server closes it; a server that never does fails by the test's timeout. */
export async function floodUntilClosed(
  { send, closed, socket }: RawSocket,
  next: (round: number) => Buffer,
): Promise<void> {
  // A test that has timed out leaves no loop behind.
  onTestFinished(() => void socket.destroy());
  let open = true;
  void closed.then(() => {
    open = false;
  });
  for (let round = 0; open; round++) {
    await Promise.race([send(next(round)), closed]);
    await new Promise(setImmediate);
  }
}
