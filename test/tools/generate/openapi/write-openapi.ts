import { writeFileSync } from "node:fs";
import type { DescService, FileRegistry } from "@bufbuild/protobuf";
import { stringify } from "yaml";
import { commentOf } from "../../../../deploy/site/comments.ts";
import { MAX_TIMEOUT_MS } from "../../../../server/src/transport/receive/read-message.ts";
import { unaryMethods } from "../../../../server/src/transport/route.ts";
import { VERSION } from "../../../../server/src/version.ts";
import { errorResponses, errorSchemas } from "./errors.ts";
import { pathsOf } from "./operations.ts";
import { PROTO_FILES } from "./proto-files.ts";
import { messageSchemas } from "./schemas.ts";

const SERVICES = ["IdempotencyService", "IdentityService", "TenantAdminService", "OperatorService"];

const DESCRIPTION =
  `Idempotency as a service, as JSON over HTTP: the RPCs of \`onceward.v1\` by the Connect protocol
(https://connectrpc.com/docs/protocol). A call is a POST with a JSON object; a call that only reads may be a GET.

Fields that have their default (an empty text, 0, false) are missing in responses. 64-bit numbers are strings, bytes are
base64. The service ignores unknown fields of requests. Fields may be added to responses: a client ignores those that it does
not know.`.replaceAll(/([^\n])\n(?=[^\n])/g, "$1 ");

/**
 * Returns the OpenAPI document (https://spec.openapis.org/oas/v3.1.0) of the service's HTTP port.
 *
 * @param registry the proto files, with their comments.
 */
function openApiDocument(registry: FileRegistry, version: string): object {
  const services = SERVICES.map((name) => serviceOf(registry, name));
  const reasons = registry.getEnum("onceward.v1.ErrorReason");
  if (reasons === undefined) throw new Error("the proto files have no ErrorReason");
  return {
    openapi: "3.1.0",
    info: {
      title: "Onceward",
      version,
      description: DESCRIPTION,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/", description: "The HTTP port of a replica, port 8080 by default." }],
    security: [{ credential: [] }],
    tags: services.map((service) => ({ name: service.name, description: commentOf(service) })),
    paths: Object.assign({}, ...services.map(pathsOf)),
    components: {
      securitySchemes: {
        credential: {
          type: "http",
          scheme: "bearer",
          description: "An API key (`ow_…`), or an access token of the configured issuer.",
        },
      },
      parameters: PARAMETERS,
      responses: {
        ...errorResponses(reasons),
        "415": { description: "The content type, or `encoding`, is not JSON. There is no body." },
      },
      schemas: { ...errorSchemas(), ...messageSchemas(services.flatMap(unaryMethods)) },
    },
  };
}

const PARAMETERS = {
  timeout: {
    name: "connect-timeout-ms",
    in: "header",
    description: "Milliseconds until the deadline of the call. Default: the server's.",
    schema: { type: "integer", minimum: 1, maximum: MAX_TIMEOUT_MS },
  },
  requestId: {
    name: "x-request-id",
    in: "header",
    description: "Names the call in the service's log. Default: a random id.",
    schema: { type: "string", pattern: "^[\\w.:-]{1,64}$" },
  },
};

function serviceOf(registry: FileRegistry, name: string): DescService {
  const service = registry.getService(`onceward.v1.${name}`);
  if (service === undefined) throw new Error(`the proto files have no ${name}`);
  return service;
}

/** Writes `server/openapi.yaml` from the proto files; part of `npm run generate`. */
const FILE = new URL("../../../../server/openapi.yaml", import.meta.url);

const text = stringify(openApiDocument(PROTO_FILES, VERSION), {
  lineWidth: 110,
  aliasDuplicateObjects: false,
});
writeFileSync(FILE, `# Written by \`npm run generate\` from proto/.\n${text}`);
