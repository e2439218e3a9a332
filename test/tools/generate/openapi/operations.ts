import type { DescMethodUnary, DescService } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { commentOf, firstSentence } from "../../../../deploy/site/comments.ts";
import { CATALOGUE, type Reason } from "../../../../server/src/core/domain/refusal.ts";
import { unaryMethods } from "../../../../server/src/core/transport/route.ts";
import { statusOf } from "./errors.ts";
import { EXAMPLES } from "./examples.ts";
import { type JsonSchema, schemaRef } from "./json-schema.ts";
import { nameOf } from "./schemas.ts";

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
