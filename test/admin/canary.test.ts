import { randomBytes } from "node:crypto";
import { create, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { IdempotencyService } from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { IdentityService } from "../../clients/typescript/src/gen/onceward/v1/identity_pb.ts";
import { OperatorService } from "../../clients/typescript/src/gen/onceward/v1/operator_pb.ts";
import { Result_Kind } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { TenantAdminService } from "../../clients/typescript/src/gen/onceward/v1/tenant_admin_pb.ts";
import { ApiKey_Role } from "../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import { parseApiKey } from "../../server/src/access/api-key.ts";
import type { Addresses } from "../../server/src/replica/server.ts";
import { unaryMethods } from "../../server/src/transport/route.ts";
import { wholeAnswers } from "../support/attacks/whole-answers.ts";
import { connectAdmin, connectOperator } from "../support/calls/admin.ts";
import { connectClient, TRANSPORT_NAMES, type TransportName } from "../support/calls/clients.ts";
import { completeWith, FORGET, RELEASE } from "../support/calls/resolutions.ts";
import { grant } from "../support/calls/verbs.ts";
import { createTestDatabase, type TestDatabase } from "../support/database/database.ts";
import { socketOf } from "../support/network/sockets.ts";
import { startTcpProxy, type TcpProxy } from "../support/network/tcp-proxy.ts";
import { hasRedis, startRedis, type TestRedis } from "../support/redis/redis.ts";
import { repeatOften } from "../support/servers/fast-path.ts";
import { type Issuer, makeSigningKey, startIssuer } from "../support/servers/issuer.ts";
import { type ServerProcess, startServerProcess } from "../support/servers/server-process.ts";
import { createApiKey, createTenant, type TestTenant } from "../support/servers/tenants.ts";

const SERVICES = [IdempotencyService, TenantAdminService, OperatorService, IdentityService];

/** The namespace of all planted values. */
const NAMESPACE = "charges";
/** A caller's values for an operation; Redis may keep those of a completed one. */
const OPERATION = {
  key: plant("key"),
  payload: plant("payload"),
  contentType: plant("contenttype"),
  metadata: plant("metadata"),
  claimId: plant("claimid"),
  fingerprint: plant("print").slice(-32),
};
/** Values that only Postgres keeps. */
const UNFINISHED = {
  checkpointName: plant("checkpointname"),
  checkpointState: plant("checkpointstate"),
  releaseReason: plant("releasereason"),
};
/** Values that the audit contains, too: the owner of the resolved claim, and the reason of the resolution. */
const OWNER = plant("owner");
const REASON = plant("reason");
/** The value of every field that a request does not need. */
const FILLING = plant("filling");

/** The credentials of the calls about records. */
interface Users {
  readonly caller: string;
  /** The credential of another caller of the same tenant. */
  readonly token: string;
  readonly admin: string;
}

/** Calls every RPC about records with valid requests and with a few invalid ones. */
async function useRecords(server: Addresses, users: Users, transport: TransportName): Promise<void> {
  const caller = connectClient(server, users.caller, transport);
  const admin = connectAdmin(server, users.admin, transport);
  const fingerprint = Buffer.from(OPERATION.fingerprint);
  const { metadata, contentType, claimId } = OPERATION;
  const result = {
    kind: Result_Kind.SUCCESS,
    payload: Buffer.from(OPERATION.payload),
    contentType,
    metadata: { [metadata]: metadata },
  };
  const idOf = (what: string) => ({ namespace: NAMESPACE, key: `${OPERATION.key} ${transport} ${what}` });
  const claim = (what: string) => grant(caller, { ...idOf(what), claimId, owner: OWNER, fingerprint });

  const completed = idOf("completed");
  await repeatOften(caller, completed);
  const { fencingToken } = await claim("completed");
  await caller.complete({ ...completed, fencingToken, result });
  await connectClient(server, users.token, transport).claim({ ...completed, fingerprint });
  await caller.batch({ items: [{ request: { case: "lookup", value: completed } }] });
  await caller.claim({ ...completed, fingerprint: randomBytes(32) }).catch(() => {});
  await caller
    .complete({ ...completed, fencingToken, result: { kind: Result_Kind.FAILURE } })
    .catch(() => {});
  await caller.claim({ ...completed, fingerprint, wait: { seconds: 1n, nanos: 0 } });

  for (const [what, resolution] of Object.entries({ FORGET, RELEASE, complete: completeWith("x") })) {
    const held = await claim(what);
    const state = Buffer.from(UNFINISHED.checkpointState);
    const checkpoint = { name: UNFINISHED.checkpointName, state };
    await caller.extendLease({ ...idOf(what), fencingToken: held.fencingToken, checkpoint });
    await admin.resolveRecord({ ...idOf(what), reason: REASON, resolution });
  }
  const released = await claim("released");
  const reason = UNFINISHED.releaseReason;
  await caller.release({ ...idOf("released"), fencingToken: released.fencingToken, reason });
  const large = { ...result, payload: Buffer.alloc(100_000, OPERATION.payload) };
  const unfinished = await claim("unfinished");
  await caller
    .complete({ ...idOf("unfinished"), fencingToken: unfinished.fencingToken, result: large })
    .catch(() => {});

  await admin.listRecords({ pageSize: 1, keyPrefix: OPERATION.key });
  await admin.getRecord(completed);
  const page = await admin.listRecords({ pageSize: 1 });
  await admin.listRecords({ pageSize: 2, keyPrefix: "x", pageToken: page.nextPageToken }).catch(() => {});
}

/** Calls every unary RPC with every credential, and FILLING in every field. @returns the errors as sent. */
async function fillAllFields(
  server: Addresses,
  credentials: readonly string[],
  transport: TransportName,
): Promise<string[]> {
  const errors: string[] = [];
  const texts = [FILLING, `${FILLING}\0`, FILLING.repeat(100)];
  // The audit may contain these.
  const names = { namespace: NAMESPACE, namespaces: NAMESPACE, name: NAMESPACE, tenant: NAMESPACE };
  const given = { ...names, label: "a label", reason: REASON };
  const answers = await wholeAnswers(server, transport);
  for (const method of SERVICES.flatMap(unaryMethods)) {
    for (const text of texts) {
      const request = planted(method.input, text, given);
      const asked = credentials.map((each) => answers.ask(method, request, each));
      for (const { message, sent } of await Promise.all(asked)) if (message === undefined) errors.push(sent);
    }
  }
  answers.close();
  return errors;
}

/** Secrets that give access; credentials are added when they are created. */
const secrets = {
  pepper: plant("pepper"),
  databasePassword: plant("databasepassword"),
  redisPassword: plant("redispassword"),
  operator: randomBytes(32).toString("base64url"),
} as Record<string, string>;

let database: TestDatabase;
let proxy: TcpProxy;
let redis: TestRedis | undefined;
let issuer: Issuer;
let server: ServerProcess;
let tenant: TestTenant;
/** The errors of all calls, as they were sent. */
const errors: string[] = [];
/** Every credential by its kind. */
let credentials: Awaited<ReturnType<typeof makeCredentials>>;

beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await startTcpProxy(socketOf(database.url));
  issuer = await startIssuer();
  const url = new URL(database.url);
  const { redisPassword = "" } = secrets;
  redis = hasRedis()
    ? await startRedis({ args: ["--requirepass", redisPassword], connect: { password: redisPassword } })
    : undefined;
  server = await startServerProcess(
    `postgresql://${url.username}:${secrets.databasePassword}@127.0.0.1:${proxy.port}${url.pathname}`,
    {
      ONCEWARD_LOG_LEVEL: "debug",
      ONCEWARD_API_KEY_PEPPER: secrets.pepper ?? "",
      ONCEWARD_OPERATOR_KEY: `ow_0123456789abcdef_${secrets.operator}`,
      ONCEWARD_USAGE_FLUSH: "100ms",
      // So that duplicates reach Redis, and completions are copied there.
      ONCEWARD_CACHE_MIB: "0",
      ...issuer.settings,
      ...(redis && { REDIS_URL: `redis://:${redisPassword}@127.0.0.1:${redis.port}` }),
    },
  );
  tenant = await createTenant(database);
  credentials = await makeCredentials();
  for (const transport of TRANSPORT_NAMES) {
    await useRecords(server, credentials, transport);
    errors.push(...(await fillAllFields(server, Object.values(credentials), transport)));
  }
  await provokeADefect();
  await beWithoutDatabase();
}, 240_000);

afterAll(async () => {
  await server?.end();
  await redis?.stop();
  await issuer?.close();
  await proxy?.close();
  await database?.drop();
});

/** Good ones of every role, made by the server, and bad ones that were good once, or never. */
async function makeCredentials() {
  const operatorKey = `ow_0123456789abcdef_${secrets.operator}`;
  const operator = connectOperator(server, operatorKey);
  const first = await operator.createTenantApiKey({
    tenant: tenant.name,
    apiKey: { role: ApiKey_Role.TENANT_ADMIN },
  });
  const admin = connectAdmin(server, first.secret);
  const caller = await admin.createApiKey({ apiKey: { role: ApiKey_Role.CALLER } });
  const revoked = await admin.createApiKey({ apiKey: { role: ApiKey_Role.CALLER } });
  await admin.revokeApiKey({ id: revoked.apiKey?.id ?? "" });
  const claims = { onceward_tenant: tenant.name, onceward_role: "CALLER" };
  secrets.kid = plant("kid");
  const unknown = await makeSigningKey("ES256", secrets.kid);
  const made = {
    operator: operatorKey,
    admin: first.secret,
    caller: caller.secret,
    revoked: revoked.secret,
    // Made with another pepper.
    wrong: await createApiKey(database, { tenantId: tenant.id, role: "CALLER" }),
    token: await issuer.token(claims),
    expired: await issuer.token({ ...claims, exp: 1 }),
    forged: await issuer.token(claims, unknown),
    unknown: plant("credential"),
  };
  for (const [name, credential] of Object.entries(made)) {
    // The secret of a key, and the claims and signature of a token. A key's id is not a secret.
    const parts = parseApiKey(credential)?.secret ?? credential.split(".").slice(1).join(".");
    secrets[name] = parts || credential;
  }
  secrets.signature = made.token.split(".")[2] ?? "";
  return made;
}

/** Makes Postgres fail with a message that quotes its input, as it does for a malformed value. */
async function provokeADefect(): Promise<void> {
  await database.query(
    `create function provoked() returns trigger language plpgsql as $$
     begin
       raise exception 'invalid input syntax for type integer: "%"', new.key using errcode = '22P02';
     end $$`,
  );
  await database.query(
    "create trigger provoked before insert or update on records for each row execute function provoked()",
  );
  for (const transport of TRANSPORT_NAMES) {
    const caller = connectClient(server, credentials.caller, transport);
    const call = caller.claim({ namespace: NAMESPACE, key: `${OPERATION.key} ${transport} defect` });
    await expect(call).rejects.toThrow("internal error");
  }
  await database.query("drop trigger provoked on records");
}

async function beWithoutDatabase(): Promise<void> {
  proxy.setMode("refuse");
  errors.push(...(await fillAllFields(server, Object.values(credentials), "native gRPC")));
  proxy.setMode("forward");
  const caller = connectClient(server, credentials.caller);
  const isBack = () =>
    caller.lookup({ namespace: NAMESPACE, key: `${OPERATION.key} native gRPC completed` }).then(
      () => true,
      () => false,
    );
  await vi.waitUntil(isBack, { timeout: 30_000 });
}

async function rowsOf(...tables: readonly string[]): Promise<string> {
  const rows = await Promise.all(
    tables.map((table) => database.query<{ row: string }>(`select t::text as row from ${table} t`)),
  );
  return rows
    .flat()
    .map(({ row }) => row)
    .join("\n");
}

async function metrics(): Promise<string> {
  return (await fetch(`http://127.0.0.1:${server.managementPort}/metrics`)).text();
}

async function redisContents(): Promise<string> {
  if (redis === undefined) return "";
  const names = (await redis.command("keys", "*")) as Buffer[];
  const values = await Promise.all(names.map((name) => redis?.command("get", name)));
  return [...names, ...values].map((each) => (each as Buffer).toString("latin1")).join("\n");
}

const ofAll = [...Object.values(OPERATION), ...Object.values(UNFINISHED), FILLING];

/**
 * Every output except answers to authorized callers, with the values that it must not contain and those it
 * must.
 */
const OUTPUTS: Record<
  string,
  { text(): Promise<string>; unseen: readonly string[]; seen?: readonly string[] }
> = {
  "standard output and the log": {
    text: async () => server.output.join("\n"),
    unseen: [...ofAll, OWNER, REASON],
    seen: ["a call failed by a defect", "the database did not answer", '"msg":"call"'],
  },
  metrics: { text: metrics, unseen: [...ofAll, OWNER, REASON], seen: ["onceward_claims_total"] },
  "errors as they are sent": {
    text: async () => errors.join("\n"),
    unseen: [...ofAll, OWNER, REASON],
    seen: ["INVALID_REQUEST", "CREDENTIAL_INVALID", "ROLE_DENIED", "DATABASE_UNAVAILABLE"],
  },
  "the audit": { text: () => rowsOf("audit_events"), unseen: ofAll, seen: [OWNER, REASON] },
  "usage, jobs, totals, tenants and credentials": {
    text: () =>
      rowsOf(
        "usage_hours",
        "record_jobs",
        "tenant_totals",
        "replicas",
        "tenants",
        "namespaces",
        "api_keys",
        "console_sessions",
      ),
    unseen: [...ofAll, OWNER, REASON],
    seen: [NAMESPACE],
  },
  "Postgres' view of its connections": {
    text: () => rowsOf("pg_stat_activity"),
    unseen: [...ofAll, OWNER, REASON],
    seen: ["onceward"],
  },
  GetServerInfo: {
    text: async () => JSON.stringify(await connectOperator(server, credentials.operator).getServerInfo({})),
    unseen: [...ofAll, OWNER, REASON],
    seen: ["(secret)"],
  },
  // Copies of completed records may be in Redis.
  Redis: {
    text: redisContents,
    unseen: [...Object.values(UNFINISHED), REASON],
    seen: hasRedis() ? [OPERATION.key, OPERATION.payload] : [],
  },
  "stored records": {
    text: () => rowsOf("records"),
    unseen: [],
    seen: [...Object.values(UNFINISHED), ...Object.values(OPERATION), OWNER, REASON],
  },
};

test.each(Object.entries(OUTPUTS))(
  "%s: contains neither secrets nor other values that it must not contain",
  async (_, output) => {
    const text = await output.text();
    const { seen = [], unseen } = output;
    // There is something to be found, and it would be.
    expect(showing(seen, text)).toEqual(seen);
    const found = showing([...unseen, ...Object.values(secrets)], text);
    expect(found.map((each) => whatIs(each))).toEqual([]);
  },
);

/** A secret by its name, for a report that doesn't have to be read by who may not. */
function whatIs(text: string): string {
  return Object.entries(secrets).find(([, secret]) => secret === text)?.[0] ?? text;
}

/** A unique text that names the field in which it was planted. */
type Plant = string;

/** Creates a plant that contains `what`, which has only letters. */
function plant(what: string): Plant {
  return `planted${what}${randomBytes(12).toString("hex")}`;
}

/** Returns the plants that a text contains: unchanged, or as hexadecimal or base64 digits. */
function showing(plants: readonly Plant[], text: string): readonly Plant[] {
  const lowerCase = text.toLowerCase();
  return plants.filter((each) => {
    const hex = Buffer.from(each).toString("hex");
    return (
      text.includes(each) || lowerCase.includes(hex) || base64Forms(each).some((form) => text.includes(form))
    );
  });
}

/** Returns three strings: base64 of a text after any number of bytes contains one of them. */
function base64Forms(text: string): readonly string[] {
  return [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(text)]);
    // The digits at both ends also contain bits of neighbouring bytes.
    return (["base64", "base64url"] as const).map((encoding) => bytes.toString(encoding).slice(4, -4));
  });
}

/**
 * Returns a message with a plant in every field of text or bytes, except for the fields with a given text.
 */
function planted(desc: DescMessage, text: Plant, given: Readonly<Record<string, string>>): Message {
  const init: Record<string, unknown> = {};
  for (const field of desc.fields) {
    const value = plantedValue(field, text, given);
    if (value === undefined) continue;
    if (field.oneof === undefined) init[field.localName] = value;
    else init[field.oneof.localName] = { case: field.localName, value };
  }
  return create(desc, init);
}

function plantedValue(field: DescField, text: Plant, given: Readonly<Record<string, string>>): unknown {
  switch (field.fieldKind) {
    case "scalar":
      return given[field.name] ?? ofScalar(field.scalar, text);
    case "map":
      return { [text]: text };
    case "list":
      if (field.listKind === "message") return [planted(field.message, text, given)];
      return field.listKind === "scalar" ? [given[field.name] ?? ofScalar(field.scalar, text)] : undefined;
    case "message":
      // Times, durations and masks contain no data of a tenant.
      return field.message.typeName.startsWith("google.") ? undefined : planted(field.message, text, given);
    case "enum":
      return undefined;
  }
}

const STRING = 9;
const BYTES = 12;
const INT64 = 3;

function ofScalar(scalar: number, text: Plant): unknown {
  if (scalar === STRING) return text;
  if (scalar === BYTES) return Buffer.from(text);
  return scalar === INT64 ? 1n : undefined;
}
