import { create, type DescMethod, type DescService, type MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { IdempotencyService } from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { IdentityService } from "../../clients/typescript/src/gen/onceward/v1/identity_pb.ts";
import { OperatorService } from "../../clients/typescript/src/gen/onceward/v1/operator_pb.ts";
import {
  GetUsageRequest_Grouping,
  TenantAdminService,
} from "../../clients/typescript/src/gen/onceward/v1/tenant_admin_pb.ts";
import { ApiKey_Role } from "../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import { parseApiKey } from "../../server/src/access/api-key.ts";
import type { UnaryMethods } from "../../server/src/access/call.ts";
import { unaryMethods } from "../../server/src/transport/route.ts";
import { type Names, nobodys, tenantFixture } from "../support/attacks/tenant-fixture.ts";
import { type WholeAnswer, type WholeAnswers, wholeAnswers } from "../support/attacks/whole-answers.ts";
import { type AdministeredTenant, describeAdministrationOverAll } from "../support/calls/admin.ts";
import { comparable } from "../support/calls/comparable.ts";
import { FORGET, RELEASE } from "../support/calls/resolutions.ts";
import { bytes, grant, success } from "../support/calls/verbs.ts";
import { runRecordJobs } from "../support/database/jobs.ts";
import { countStatements } from "../support/database/statements.ts";
import { createApiKey } from "../support/servers/tenants.ts";

/** For every unary RPC of a service, requests that name things. A request without a name shows that none can be given. */
type Requests<Service extends DescService> = {
  readonly [Method in keyof UnaryMethods<Service>]: (
    names: Names,
  ) => readonly MessageInitShape<Service["method"][Method]["input"]>[];
};

/** A record that the sender of the requests holds. */
const OWN = { namespace: "own", key: "own-order" };

const policy = { keyRetention: { seconds: 90_000n, nanos: 0 } };
const completed = ({ namespace, completedKey: key }: Names) => ({ namespace, key });
const held = ({ namespace, heldKey: key }: Names) => ({ namespace, key });
const result = success("forged");
const reason = "to find out";

/** The requests that a caller may send. */
const CALLERS_REQUESTS: Requests<typeof IdempotencyService> = {
  lookup: (names) => [completed(names), held(names)],
  complete: (names) => [
    { ...held(names), fencingToken: names.fencingToken, result },
    { ...OWN, fencingToken: names.fencingToken, result },
  ],
  release: (names) => [
    { ...held(names), fencingToken: names.fencingToken, reason },
    { ...OWN, fencingToken: names.fencingToken },
  ],
  extendLease: (names) => [
    { ...held(names), fencingToken: names.fencingToken, checkpoint: { name: "x", state: bytes("forged") } },
    { ...OWN, fencingToken: names.fencingToken },
  ],
  batch: (names) => [
    {
      items: [
        { request: { case: "lookup", value: completed(names) } },
        {
          request: { case: "complete", value: { ...held(names), fencingToken: names.fencingToken, result } },
        },
        { request: { case: "release", value: { ...held(names), fencingToken: names.fencingToken } } },
        { request: { case: "extendLease", value: { ...held(names), fencingToken: names.fencingToken } } },
        { request: { case: "claim", value: { ...completed(names), key: `${names.completedKey}-2` } } },
      ],
    },
  ],
  // Last, because a granted claim creates a record of the sender's tenant.
  claim: (names) => [
    completed(names),
    { ...held(names), claimId: names.claimId },
    { ...OWN, claimId: names.claimId },
  ],
};

/** The requests that an administrator may send. */
const ADMINISTRATORS_REQUESTS: Requests<typeof TenantAdminService> = {
  getTenant: () => [{}],
  updateTenant: ({ tenantEtag, namespaceEtag, tenant: name }) => [
    { tenant: { etag: tenantEtag, policy } },
    { tenant: { etag: namespaceEtag, policy } },
    { tenant: { name, etag: tenantEtag, policy }, validateOnly: true },
  ],
  getNamespace: ({ namespace: name }) => [{ name }],
  listNamespaces: ({ pageTokens }) => [{ pageToken: pageTokens.listNamespaces }, {}],
  listUndeclaredNamespaces: ({ pageTokens }) => [{ pageToken: pageTokens.listNamespaces }, {}],
  updateNamespace: ({ namespace: name, namespaceEtag: etag, tenantEtag }) => [
    { namespace: { name, policy } },
    { namespace: { name, policy, etag } },
    { namespace: { name, policy, etag }, allowMissing: true },
    { namespace: { name: OWN.namespace, policy, etag }, allowMissing: true },
    { namespace: { name, policy, etag: tenantEtag }, allowMissing: true, applyToExisting: true },
    { namespace: { name, policy }, allowMissing: true, validateOnly: true },
  ],
  deleteNamespace: ({ namespace: name, namespaceEtag: etag }) => [{ name }, { name, etag, force: true }],
  listRecords: (names) => [
    { namespace: names.namespace },
    { namespace: names.namespace, pageToken: names.pageTokens.listRecords },
    { keyPrefix: names.completedKey },
    { key: names.completedKey },
  ],
  countRecords: (names) => [
    { namespace: names.namespace },
    { namespace: names.namespace, pageToken: names.pageTokens.listRecords },
  ],
  getRecord: (names) => [completed(names), held(names)],
  getKeyHistory: (names) => [completed(names), held(names)],
  resolveRecord: (names) => [
    { ...completed(names), reason, resolution: FORGET },
    { ...held(names), reason, resolution: RELEASE, fencingToken: names.fencingToken },
    { ...held(names), reason, resolution: { case: "complete", value: { result } } },
    { ...OWN, reason, resolution: FORGET, fencingToken: names.fencingToken },
  ],
  resolveAmbiguousRecords: ({ namespace }) => [
    { namespace, reason, resolution: FORGET, validateOnly: true },
    { namespace, reason, resolution: RELEASE, expectedCount: 2n },
    { owner: "", reason, resolution: FORGET, validateOnly: true },
    { namespace, reason, resolution: { case: "complete", value: { result } }, expectedCount: 1n },
  ],
  cancelRecordJob: ({ recordJobId: id }) => [{ id }],
  countAmbiguousRecords: ({ namespace }) => [{}, { namespace }],
  listRecordJobs: ({ pageTokens }) => [{ pageToken: pageTokens.listRecordJobs }, {}],
  getRecordJob: ({ recordJobId: id }) => [{ id }],
  createApiKey: ({ apiKeyId: id }) => [
    { apiKey: { id, role: ApiKey_Role.OPERATOR } },
    { apiKey: { id, role: ApiKey_Role.UNSPECIFIED } },
  ],
  listApiKeys: ({ pageTokens }) => [{ pageToken: pageTokens.listApiKeys }, {}],
  revokeApiKey: ({ apiKeyId: id }) => [{ id }],
  listAuditEvents: ({ pageTokens }) => [{ pageToken: pageTokens.listAuditEvents }],
  getUsage: ({ namespace, pageTokens }) => [
    { namespace },
    { namespace, grouping: GetUsageRequest_Grouping.HOUR },
    { pageToken: pageTokens.getUsage },
  ],
  getUsageNow: ({ namespace }) => [{ namespace }],
  getRetentionAdvice: ({ namespace }) => [{ namespace }, { namespace, maxLatePerMillion: 100_000 }],
  listRetentionAdvice: ({ namespace }) => [{ namespaces: [namespace] }, { namespaces: ["other", namespace] }],
  getKeyQuality: ({ namespace, pageTokens }) => [{ namespace }, { pageToken: pageTokens.getKeyQuality }],
};

/** The requests that every credential may send. */
const EVERYBODYS_REQUESTS: Requests<typeof IdentityService> = { whoAmI: () => [{}] };

/** The requests that only an operator may send. */
const OPERATORS_REQUESTS: Requests<typeof OperatorService> = {
  createTenant: ({ tenant: name }) => [{ tenant: { name } }],
  getTenant: ({ tenant: name }) => [{ name }],
  listTenants: ({ pageTokens }) => [{}, { pageToken: pageTokens.listApiKeys }],
  listTenantUsage: ({ pageTokens }) => [{}, { pageToken: pageTokens.listApiKeys }],
  updateTenantLimits: ({ tenant: name, tenantEtag: etag }) => [{ name, etag, quotas: { liveRecords: 1n } }],
  suspendTenant: ({ tenant: name }) => [{ name, reason }],
  resumeTenant: ({ tenant: name }) => [{ name, reason }],
  redirectTenant: ({ tenant: name }) => [{ name, address: "https://elsewhere.example" }],
  deleteTenant: ({ tenant: name, tenantEtag: etag }) => [{ name, etag, reason }],
  createTenantApiKey: ({ tenant }) => [{ tenant, apiKey: { role: ApiKey_Role.TENANT_ADMIN } }],
  createOperatorApiKey: () => [{}, { apiKey: { role: ApiKey_Role.OPERATOR } }],
  listOperatorApiKeys: ({ pageTokens }) => [{}, { pageToken: pageTokens.listApiKeys }],
  revokeOperatorApiKey: ({ apiKeyId: id }) => [{ id }],
  listAuditEvents: ({ tenant, pageTokens }) => [
    { tenant },
    { tenant, pageToken: pageTokens.listAuditEvents },
  ],
  getServerInfo: () => [{}],
  diagnose: () => [{}],
  listReplicas: ({ pageTokens }) => [{}, { pageToken: pageTokens.listApiKeys }],
};

type AnyRequests = Readonly<
  Record<string, ((names: Names) => readonly Record<string, unknown>[]) | undefined>
>;

const SERVICES: readonly (readonly [DescService, AnyRequests])[] = [
  [IdempotencyService, CALLERS_REQUESTS],
  [TenantAdminService, ADMINISTRATORS_REQUESTS],
  [OperatorService, OPERATORS_REQUESTS],
  [IdentityService, EVERYBODYS_REQUESTS],
];

/** Every RPC. */
const RPCS = SERVICES.flatMap(([service, requests]) =>
  unaryMethods(service).map((method) => ({
    name: `${service.name}.${method.name}`,
    method,
    requestsAbout: requests[method.localName],
  })),
);

/** Statements that load a credential at intervals, or write after an answer. */
const OF_NO_REQUEST = new Set([
  ...["read_api_keys", "read_tenants", "read_namespaces", "insert_audit_events", "store_key_use"],
]);

/** With copies in memory, which must not answer another tenant's caller either. */
const ENV = { ONCEWARD_CACHE_MIB: "16", ONCEWARD_USAGE_FLUSH: "100ms", ONCEWARD_SWEEP_INTERVAL: "1h" };

describeAdministrationOverAll("Who asks about another tenant's data", { env: ENV }, (world, transport) => {
  let owner: AdministeredTenant;
  let theirs: Names;
  let none: Names;
  let before: unknown;
  let answers: WholeAnswers;

  beforeAll(async () => {
    owner = await world().administeredTenant();
    theirs = await tenantFixture(world(), owner);
    // Background work ends before the rows are noted.
    await runRecordJobs(world().database);
    none = nobodys(theirs);
    before = await dataOf(owner);
    answers = await wholeAnswers(world().server, transport);
  });
  afterAll(() => answers?.close());

  async function dataOf({ tenant }: AdministeredTenant): Promise<unknown> {
    const tables = ["records", "namespaces", "record_jobs", "audit_events"];
    const rows = tables.map((table) =>
      world().database.query(`select * from ${table} where tenant_id = $1 order by 1, 2, 3`, [tenant.id]),
    );
    return Promise.all([
      ...rows,
      world().database.query("select * from tenants where id = $1", [tenant.id]),
      world().database.query(
        // The owner's keys may be noted as used after the rows were read.
        "select to_jsonb(k) - 'last_used_at' as key from api_keys k where tenant_id = $1 order by id",
        [tenant.id],
      ),
    ]);
  }

  /** Every credential and name that a caller of another tenant may use. */
  async function strangersKeys(): Promise<Readonly<Record<string, string>>> {
    const { tenant, caller, adminKey } = await world().administeredTenant();
    await grant(caller, OWN);
    const limited = { tenantId: tenant.id, namespaces: [OWN.namespace] };
    return {
      "a caller": tenant.apiKey,
      "an administrator": adminKey,
      "a caller of a namespace": await createApiKey(world().database, { ...limited, role: "CALLER" }),
      "an administrator of a namespace": await createApiKey(world().database, {
        ...limited,
        role: "TENANT_ADMIN",
      }),
    };
  }

  async function askAll(method: DescMethod, requests: readonly Record<string, unknown>[], apiKey: string) {
    const seen: string[] = [];
    for (const request of requests) {
      seen.push(textOf(await answers.ask(method, create(method.input, request), apiKey)));
    }
    return seen;
  }

  /** The answers to requests about the other tenant's names, with names that do not exist in their place. */
  function withNobodys(text: string): string {
    return (Object.keys(theirs) as (keyof Names)[]).reduce((replaced, name) => {
      const [theirName, other] = [theirs[name], none[name]];
      return typeof theirName === "string" ? replaced.replaceAll(theirName, String(other)) : replaced;
    }, text);
  }

  test.each(RPCS)("is answered by $name as if there were none", async ({ method, requestsAbout }) => {
    if (requestsAbout === undefined) throw new Error("`requests` does not say what to ask of it");
    const keys = await strangersKeys();
    const counted = await countStatements(world().server);
    const statements = async () =>
      Object.entries(await counted.next()).filter(([name]) => !OF_NO_REQUEST.has(name));
    for (const [who, apiKey] of Object.entries(keys)) {
      const met = await askAll(method, requestsAbout(theirs), apiKey);
      const statementsMet = await statements();
      const missed = await askAll(method, requestsAbout(none), apiKey);
      expect(met.map(withNobodys), who).toEqual(missed);
      // Nor does it take longer.
      expect(statementsMet, who).toEqual(await statements());
    }
  });

  test.each(RPCS)(
    "with its key's id and a made-up secret is answered by $name as if the key weren't there",
    async ({ method, requestsAbout }) => {
      const secret = parseApiKey(owner.adminKey)?.secret.toUpperCase();
      const [request] = requestsAbout?.(theirs) ?? [];
      const [met, missed] = await Promise.all(
        [theirs, none].map(({ apiKeyId }) =>
          answers.ask(method, create(method.input, request), `ow_${apiKeyId}_${secret}`),
        ),
      );
      expect(met?.sent).toMatch("CREDENTIAL_INVALID");
      expect(met).toEqual(missed);
    },
  );

  test("has changed nothing of them", async () => {
    expect(await dataOf(owner)).toEqual(before);
  });
});

/** The name of a record in audit events: a keyed hash of the caller's own tenant and of the names in the request. */
const AUDIT_TARGET = /(?<=record [a-z0-9-]+\/)[0-9a-f]{32}/g;

/** An error as it was sent; of a message what isn't of its moment. */
function textOf({ sent, message }: WholeAnswer): string {
  if (message === undefined) return sent.replaceAll(AUDIT_TARGET, "a hash of what was asked");
  return JSON.stringify(comparable([message], []), (name, value: unknown) => {
    // An etag also depends on the name of its resource.
    if (name === "etag") return "an etag";
    // Stored in the background.
    if (name === "lastUsedAt") return undefined;
    return typeof value === "bigint" ? String(value) : value;
  });
}
