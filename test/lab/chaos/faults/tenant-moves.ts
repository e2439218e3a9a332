import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { Readable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { IdempotencyService } from "../../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { OperatorService } from "../../../../clients/typescript/src/gen/onceward/v1/operator_pb.ts";
import { CommandError, type Host } from "../../../../server/src/commands/host.ts";
import { migrate } from "../../../../server/src/database/migrate.ts";
import { exportTenant } from "../../../../server/src/moving/export-tenant.ts";
import { importTenant } from "../../../../server/src/moving/import-tenant.ts";
import type { ItemRequest } from "../../../support/calls/batches.ts";
import { failure } from "../../../support/calls/verbs.ts";
import { TEST_PEPPER } from "../../../support/servers/server.ts";
import { type ServerProcess, startServerProcess } from "../../../support/servers/server-process.ts";
import { partsOf } from "../../../support/servers/tenants.ts";
import { type Journal, openJournal } from "../../history/journal.ts";
import { marked } from "../../history/messages.ts";
import { recordingInterceptor } from "../../history/recorder.ts";
import { grpcTransport } from "../grpc-transport.ts";
import { bearing } from "../load/calls.ts";
import { NAMESPACES, TENANTS } from "../load/spaces.ts";
import { anyReplica, type Fault, persist, type Scene } from "./fault.ts";

/** Neither the administered tenant nor that of the watch. */
const MOVED = TENANTS[2];
const KEYS = 300;
const KEYS_OF_ROUND = 20;
const ROUND_MS = 500;
const TIMEOUT_MS = 4000;
const NEVER_CLAIMED = { namespace: NAMESPACES[0]?.namespace ?? "", key: "never claimed" };

/** Moves of a tenant, with its keys and records, while callers use it and other faults happen. */
export const TENANT_FAULTS: readonly Fault[] = [
  {
    // To a second installation, where its keys are claimed, and back. Each export takes half a minute. Nothing is granted twice,
    // no result is lost, tokens rise, and its old home serves it again.
    name: "tenant-move",
    target: "tenant",
    async inject(scene) {
      const { rig } = scene;
      const journalPath = join(rig.dir, `move-${randomUUID()}.jsonl`);
      const journal = openJournal(journalPath);
      // At once: the judge must know that the tenant is refused.
      scene.onVictim({ tenant: MOVED, journalPath });
      const { name, keys } = await persist(scene, () => movedTenant(scene));
      await using second = await openSecondHome(scene);
      const here = () => rig.postgres.url;
      const there = () => second.databaseUrl;
      await imported(scene, await exported(scene, name, here), there);
      const calls = callUntilMoved(scene, second.server, keys, journal);
      const rows = await Promise.all([exported(scene, name, there), deleteOldTenant(scene, name)])
        .then(([exportedRows]) => exportedRows)
        .finally(calls.stop);
      await imported(scene, rows, here);
      journal.close();
      if (!second.server.alive) throw new Error("the second installation's replica ended unexpectedly");
      await untilServed(scene);
    },
  },
];

interface Key {
  readonly namespace: string;
  readonly key: string;
}

/** Returns the tenant's name in the service, and its newest keys. */
async function movedTenant({
  rig,
}: Scene): Promise<{ readonly name: string; readonly keys: readonly Key[] }> {
  const [tenant] = await rig.postgres.query<{ id: number; name: string }>(
    "select t.id, t.name from tenants t join api_keys k on k.tenant_id = t.id where k.id = $1",
    [partsOf(rig.apiKeys[MOVED] ?? "").id],
  );
  if (tenant === undefined) throw new Error("the tenant is missing");
  const keys = await rig.postgres.query<Key & Record<string, unknown>>(
    "select namespace, key from records where tenant_id = $1 order by claimed_at desc limit $2",
    [tenant.id, KEYS],
  );
  return { name: tenant.name, keys };
}

/** Another installation: a database on the same Postgres, and a replica. */
interface SecondHome extends AsyncDisposable {
  readonly databaseUrl: string;
  readonly server: ServerProcess;
}

async function openSecondHome(scene: Scene): Promise<SecondHome> {
  const { postgres, replicas } = scene.rig;
  const name = `second_home_${scene.random.below(2 ** 32)}`;
  const drop = () => postgres.query(`drop database if exists ${name} with (force)`);
  const urlOf = (url: string) => {
    const own = new URL(url);
    own.pathname = `/${name}`;
    return own.href;
  };
  const proxied = urlOf(
    `postgresql://${new URL(postgres.url).username}@127.0.0.1:${replicas[0]?.toPostgres.port}/`,
  );
  const server = await persist(scene, async () => {
    await drop();
    await postgres.query(`create database ${name}`);
    await migrate(urlOf(postgres.url), () => {});
    return startServerProcess(proxied, { ONCEWARD_POOL_SIZE: "6", ONCEWARD_SWEEP_INTERVAL: "500ms" });
  });
  return {
    get databaseUrl() {
      return urlOf(postgres.url);
    },
    server,
    async [Symbol.asyncDispose]() {
      await server.end();
      await persist(scene, drop);
    },
  };
}

/** Exports the tenant. The URL changes when Postgres fails over. */
function exported(scene: Scene, name: string, from: () => string): Promise<readonly string[]> {
  return persist(scene, async () => {
    const rows: string[] = [];
    const write = async (text: string) => void rows.push(text);
    await run(exportTenant, from(), { args: ["--tenant", name], write, report: () => {} });
    return rows;
  });
}

/** Imports an exported tenant, unless it is there already. */
async function imported(scene: Scene, rows: readonly string[], to: () => string): Promise<void> {
  await persist(scene, async () => {
    const input = Readable.from(rows.map((row) => Buffer.from(row)));
    await run(importTenant, to(), { args: [], input, print: () => {} }).catch(unlessStored);
  });
}

/** Ignores that the tenant is there: an import whose last answer was lost has stored it. @throws anything else. */
function unlessStored(error: unknown): void {
  if (!(error instanceof CommandError && error.message.includes("has a tenant"))) throw error;
}

function run(
  command: (host: Host) => Promise<void>,
  databaseUrl: string,
  host: Partial<Host>,
): Promise<void> {
  const env = { DATABASE_URL: databaseUrl, ONCEWARD_API_KEY_PEPPER: TEST_PEPPER };
  return command({ ...host, env } as Host);
}

/** Claims the keys at the second home, and completes what is granted, until `stop`. */
function callUntilMoved(scene: Scene, server: ServerProcess, keys: readonly Key[], journal: Journal) {
  const { random, rig } = scene;
  const recording = { journal, client: "mover", replica: "second-home", tenant: MOVED };
  const interceptors = [bearing(rig.apiKeys[MOVED] ?? ""), recordingInterceptor(recording)];
  const client = createClient(IdempotencyService, grpcTransport(server.grpcPort, interceptors));
  // A failed call is in the journal and is judged there.
  const batch = (requests: readonly ItemRequest[]) =>
    client
      .batch({ items: requests.map((request) => ({ request })) }, { timeoutMs: TIMEOUT_MS })
      .then(({ items }) => items.map(({ response }) => response))
      .catch(() => []);
  let isStopped = false;
  async function callOften(): Promise<void> {
    while (!isStopped) {
      const some = random.shuffle(keys).slice(0, KEYS_OF_ROUND);
      const claims = await batch(
        some.map((id) => ({ case: "claim", value: { ...id, claimId: randomUUID() } })),
      );
      const granted = claims.flatMap((response, index): ItemRequest[] => {
        const [id, outcome] = [some[index], response.case === "claim" ? response.value.outcome : undefined];
        if (id === undefined || outcome?.case !== "claimed") return [];
        const { fencingToken } = outcome.value;
        // A failure, which has no effect that somebody would have to count.
        const result = failure(marked(MOVED, `${id.namespace}/${id.key} declined at the second home`));
        return [{ case: "complete", value: { ...id, fencingToken, result } }];
      });
      if (granted.length > 0) await batch(granted);
      await pause(ROUND_MS);
    }
  }
  const calls = callOften();
  return {
    async stop() {
      isStopped = true;
      await calls;
    },
  };
}

/** Deletes the tenant that has moved away; resolves when its name is free. */
async function deleteOldTenant(scene: Scene, name: string): Promise<void> {
  const { rig } = scene;
  await persist(scene, async () => {
    const port = anyReplica({ ...scene, onVictim: () => {} }).inbound.port;
    const operator = createClient(OperatorService, grpcTransport(port, [bearing(rig.operatorKey)]));
    await operator.deleteTenant({ name, reason: "moved" }, { timeoutMs: TIMEOUT_MS });
  });
  await persist(scene, async () => {
    const left = await rig.postgres.query("select from tenants where name = $1", [name]);
    if (left.length > 0) throw new Error("the tenant is still being deleted");
  });
}

async function untilServed(scene: Scene): Promise<void> {
  const { replicas, apiKeys } = scene.rig;
  for (const { inbound } of replicas) {
    const authorized = [bearing(apiKeys[MOVED] ?? "")];
    const client = createClient(IdempotencyService, grpcTransport(inbound.port, authorized));
    await persist(scene, () => client.lookup(NEVER_CLAIMED, { timeoutMs: TIMEOUT_MS }));
  }
}
