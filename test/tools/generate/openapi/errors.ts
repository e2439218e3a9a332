import type { DescEnum } from "@bufbuild/protobuf";
import { codeToHttpStatus, codeToString } from "@connectrpc/connect/protocol-connect";
import { commentOf } from "../../../../deploy/site/comments.ts";
import { CATALOGUE, type Reason } from "../../../../server/src/domain/refusal.ts";
import { codeOf } from "../../../../server/src/records/batch/batch-errors.ts";
import { type JsonSchema, schemaRef } from "./json-schema.ts";

/** A response of the document with the statuses' reasons. */
export interface ErrorResponse {
  readonly description: string;
  readonly headers: Readonly<Record<string, { readonly description: string; readonly schema: JsonSchema }>>;
  readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>>;
}

const REASONS = Object.keys(CATALOGUE) as readonly Reason[];

/** Returns the HTTP status of a refusal (https://connectrpc.com/docs/protocol#error-codes). */
export function statusOf(reason: Reason): number {
  return codeToHttpStatus(codeOf(reason));
}

/** Returns the responses to refusals by their HTTP status, with the reasons that each stands for. */
export function errorResponses(reasonEnum: DescEnum): Readonly<Record<string, ErrorResponse>> {
  const responses: Record<string, ErrorResponse> = {};
  for (const status of new Set(REASONS.map(statusOf))) {
    const lines = REASONS.filter((reason) => statusOf(reason) === status).map((reason) => {
      const value = reasonEnum.values.find(({ localName }) => localName === reason);
      return `- \`${reason}\`: ${value === undefined ? "" : commentOf(value)}`;
    });
    responses[status] = {
      description: `A refusal with one of these reasons.\n\n${lines.join("\n")}`,
      headers: {
        "x-request-id": {
          description: "Names the call in the service's log.",
          schema: { type: "string" },
        },
        ...(lines.some((line) => line.includes("google.rpc.RetryInfo")) && {
          "retry-after": {
            description: "The delay of the RetryInfo in whole seconds, rounded up.",
            schema: { type: "integer", minimum: 1 },
          },
        }),
      },
      content: { "application/json": { schema: schemaRef("Error") } },
    };
  }
  return responses;
}

/** Returns the schemas of an error's body (https://connectrpc.com/docs/protocol#error-end-stream). */
export function errorSchemas(): Readonly<Record<string, JsonSchema>> {
  const text: JsonSchema = { type: "string" };
  const list = (fields: readonly string[]): JsonSchema => ({
    type: "array",
    items: { type: "object", properties: Object.fromEntries(fields.map((name) => [name, text])) },
  });
  const codes = new Set(REASONS.map((reason) => codeToString(codeOf(reason))));
  // Refusals of the transport itself, before a reason is known.
  for (const code of ["unknown", "unimplemented"]) codes.add(code);
  return {
    Error: {
      type: "object",
      description:
        "The body of every refusal. Programs branch on the `reason` in the detail google.rpc.ErrorInfo.",
      required: ["code"],
      properties: {
        code: { type: "string", enum: [...codes].sort() },
        message: { type: "string", description: "For people." },
        details: {
          type: "array",
          items: {
            oneOf: [
              detail("ErrorInfo", "The reason, for programs.", ["reason", "domain"], {
                reason: { type: "string", enum: REASONS },
                domain: { type: "string", const: "onceward" },
                metadata: { type: "object", additionalProperties: text },
              }),
              detail("RequestInfo", "Names the call in the service's log.", ["requestId"], {
                requestId: text,
              }),
              detail("BadRequest", "Every malformed field, with its limit.", ["fieldViolations"], {
                fieldViolations: list(["field", "description"]),
              }),
              detail("QuotaFailure", "The exhausted quota.", ["violations"], {
                violations: list(["subject", "description"]),
              }),
              detail("RetryInfo", "When a retry may succeed; unset: at once.", [], { retryDelay: text }),
            ],
          },
        },
      },
    },
  };
}

function detail(
  name: string,
  description: string,
  required: readonly string[],
  properties: Readonly<Record<string, JsonSchema>>,
): JsonSchema {
  return {
    type: "object",
    description,
    required: ["type", "value", "debug"],
    properties: {
      type: { type: "string", const: `google.rpc.${name}` },
      value: { type: "string", description: "The message in base64, without padding." },
      debug: { type: "object", ...(required.length > 0 && { required }), properties },
    },
  };
}
