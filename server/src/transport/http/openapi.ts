import { readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { refuseMethod } from "./port.ts";
import { createFileSender, type Encoding, etagOf, type StaticFile } from "./static-files.ts";

/** The path of the document on the HTTP port. */
const PATH = "/openapi.yaml";
/** Written by `npm run generate`; the same file beside the compiled program. */
const FILE = new URL("../../../openapi.yaml", import.meta.url);

/** The OpenAPI document of the JSON endpoints, which needs no credential: it says nothing of this installation. */
export type OpenApi = Awaited<ReturnType<typeof openOpenApi>>;

/** Reads the document into memory, plain and compressed. @throws Error if the file is missing. */
export async function openOpenApi() {
  const bytes = await readFile(FILE);
  const encoded = (encoding: Encoding, of: Buffer) => ({ encoding, bytes: of, etag: etagOf(of) });
  const file: StaticFile = {
    // https://www.rfc-editor.org/rfc/rfc9512
    type: "application/yaml",
    immutable: false,
    encodings: [encoded("gzip", gzipSync(bytes)), encoded("identity", bytes)],
  };
  const sendFile = createFileSender();
  return {
    /** Answers a request for the document; returns false for other paths. */
    answer(path: string, request: IncomingMessage, response: ServerResponse): boolean {
      if (path !== PATH) return false;
      if (request.method === "GET" || request.method === "HEAD") sendFile(file, request, response);
      else refuseMethod(response, "GET, HEAD");
      return true;
    },
  };
}
