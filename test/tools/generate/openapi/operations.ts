import type { DescMethodUnary, DescService } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { commentOf, firstSentence } from "../../../../deploy/site/comments.ts";
import { CATALOGUE, type Reason } from "../../../../server/src/domain/refusal.ts";
import { unaryMethods } from "../../../../server/src/transport/route.ts";
import { statusOf } from "./errors.ts";
import { type JsonSchema, schemaRef } from "./json-schema.ts";
import { nameOf } from "./schemas.ts";

const KEY = { namespace: "charges", key: "order-1042" };
const AT = "2026-03-01T09:30:00.125Z";
const LATER = "2026-03-04T09:30:00.125Z";
const RESULT = { kind: "KIND_SUCCESS", payload: "eyJjaGFyZ2UiOiJjaF8xIn0=", contentType: "application/json" };
const CLAIM = {
  ...KEY,
  fingerprint: "n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=",
  claimId: "0b5c3c1e-6a0e-4e8e-9d5e-2f1d7a3b9c10",
  lease: "30s",
  owner: "payments-7f9c",
};
const CLAIMED = {
  claimed: {
    fencingToken: "7",
    leaseExpiresAt: "2026-03-01T09:30:30.125Z",
    leaseRemaining: "30s",
    attempt: 1,
    firstClaimedAt: AT,
  },
  expiresAt: LATER,
  serverTime: AT,
};

/** An example of a request, and the responses that it may get, by their names. */
interface Example {
  readonly request: object;
  readonly responses: Readonly<Record<string, object>>;
}

/** The examples by RPC. A test of the document checks them against its schemas. */
const EXAMPLES: Readonly<Record<string, Example>> = {
  Claim: {
    request: CLAIM,
    responses: {
      claimed: CLAIMED,
      completed: { completed: { result: RESULT, completedAt: AT }, expiresAt: LATER, serverTime: AT },
      inProgress: {
        inProgress: { owner: "payments-7f9c", attempt: 1, leaseExpiresAt: LATER, retryAfter: "1s" },
        expiresAt: LATER,
        serverTime: AT,
      },
    },
  },
  Complete: {
    request: { ...KEY, fencingToken: "7", result: RESULT },
    responses: { completed: { completedAt: AT, expiresAt: LATER } },
  },
  Release: {
    request: { ...KEY, fencingToken: "7", reason: "the bank did not answer" },
    responses: { released: { expiresAt: LATER } },
  },
  ExtendLease: {
    request: { ...KEY, fencingToken: "7", checkpoint: { name: "charged", state: "Y2hfMQ==" } },
    responses: { extended: { leaseExpiresAt: AT, leaseRemaining: "30s", expiresAt: LATER } },
  },
  Batch: {
    request: { items: [{ claim: CLAIM }] },
    responses: { answered: { items: [{ claim: CLAIMED }] } },
  },
};

/** Returns the path items of a service's RPCs by path: POST, and GET for those that only read. */
export function pathsOf(service: DescService): Readonly<Record<string, object>> {
  return Object.fromEntries(
    unaryMethods(service).map((method) => [`/${service.typeName}/${method.name}`, pathItem(service, method)]),
  );
}

function pathItem(service: DescService, method: DescMethodUnary): object {
  const onlyReads = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  return {
    parameters: ["timeout", "requestId"].map((name) => ({ $ref: `#/components/parameters/${name}` })),
    post: { ...operation(service, method), requestBody: requestBody(method) },
    ...(onlyReads && {
      get: { ...operation(service, method, "Get"), parameters: queryParameters(method) },
    }),
  };
}

function operation(service: DescService, method: DescMethodUnary, suffix = ""): object {
  const comment = commentOf(method);
  return {
    operationId: `${service.name}_${method.name}${suffix}`,
    tags: [service.name],
    summary: firstSentence(comment),
    description: comment,
    responses: {
      "200": {
        description: firstSentence(commentOf(method.output)) || "The answer.",
        content: { "application/json": content(method.output, EXAMPLES[method.name]?.responses) },
      },
      ...Object.fromEntries(
        [...statusesOf(comment), UNSUPPORTED_MEDIA_TYPE].map((status) => [
          String(status),
          { $ref: `#/components/responses/${status}` },
        ]),
      ),
    },
  };
}

function content(
  message: DescMethodUnary["input"],
  examples: Readonly<Record<string, object>> | undefined,
): { readonly schema: JsonSchema; readonly examples?: object } {
  const named = Object.entries(examples ?? {}).map(([name, value]) => [name, { value }]);
  return {
    schema: schemaRef(nameOf(message)),
    ...(named.length > 0 && { examples: Object.fromEntries(named) }),
  };
}

function requestBody(method: DescMethodUnary): object {
  const example = EXAMPLES[method.name]?.request;
  return {
    required: true,
    content: { "application/json": content(method.input, example && { request: example }) },
  };
}

/** https://connectrpc.com/docs/protocol#unary-get-request */
function queryParameters(method: DescMethodUnary): readonly object[] {
  return [
    { name: "encoding", in: "query", required: true, schema: { type: "string", const: "json" } },
    {
      name: "message",
      in: "query",
      required: true,
      description: "The request as JSON.",
      content: { "application/json": { schema: schemaRef(nameOf(method.input)) } },
    },
  ];
}

/** Of a POST, and of a GET without `encoding`. */
const UNSUPPORTED_MEDIA_TYPE = 415;

/** The reasons for which a call of any RPC can be refused; the comments of RPCs name the others. */
const ALWAYS: readonly Reason[] = [
  "INVALID_REQUEST",
  "CREDENTIAL_MISSING",
  "ROLE_DENIED",
  "QUOTA_RATE",
  "CANCELLED",
  "INTERNAL",
  "OVERLOADED",
  "DEADLINE_EXCEEDED",
];

function statusesOf(comment: string): readonly number[] {
  const named = Object.keys(CATALOGUE).filter((reason) => new RegExp(`\\b${reason}\\b`).test(comment));
  const statuses = [...ALWAYS, ...(named as Reason[])].map(statusOf);
  return [...new Set(statuses)].sort((one, other) => one - other);
}
