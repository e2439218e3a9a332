import { Agent } from "node:http";
import type { ClientHttp2Session } from "node:http2";
import type { DescMethod } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { Addresses } from "../../../server/src/replica/server.ts";
import { openBatchStream } from "../../support/network/open-batch-stream.ts";
import { callRaw, frameOf, grpcHeaders } from "../../support/network/raw-grpc.ts";
import { post } from "../../support/network/raw-http.ts";
import { type CostlyRequest, gzipped } from "./costly-requests.ts";

/** Sends a request; resolves with the name of the code of its answer. */
export interface CostlyTransport {
  readonly name: string;
  takes(request: CostlyRequest, method: DescMethod): boolean;
  send(to: CostlyTarget, method: DescMethod, request: CostlyRequest): Promise<string>;
}

export interface CostlyTarget {
  readonly server: Addresses;
  readonly session: ClientHttp2Session;
  readonly apiKey: string | undefined;
}

const agent = new Agent({ keepAlive: true, maxSockets: 1 });

const isBinary = ({ format }: CostlyRequest) => format === "binary";
const pathTo = ({ parent, name }: DescMethod) => `/${parent.typeName}/${name}`;

/** Returns all transports, with compressed messages where they are allowed, so that few bytes cost most. */
export const COSTLY_TRANSPORTS: readonly CostlyTransport[] = [
  {
    name: "gRPC",
    takes: isBinary,
    async send({ session, apiKey }, method, request) {
      const headers = grpcHeaders(pathTo(method), apiKey, { "grpc-encoding": "gzip" });
      return (await callRaw(session, headers, frameOf(gzipped(request), 1))).code;
    },
  },
  {
    name: "BatchStream",
    takes: (request, { name }) => isBinary(request) && name === "Batch",
    async send({ session, apiKey }, _method, { bytes }) {
      const id = 1;
      const message = Buffer.concat([bytes, new BinaryWriter().tag(2, WireType.Varint).uint32(id).finish()]);
      const batches = openBatchStream(session, apiKey);
      batches.stream.write(frameOf(message));
      const answered = batches.answerTo(id).then(
        ({ error }) => (error === undefined ? "OK" : `code ${error.code}`),
        () => batches.ended,
      );
      const code = await answered;
      batches.stream.end();
      await batches.ended;
      return code;
    },
  },
  ...[
    { name: "Connect", contentType: "application/proto", format: "binary" },
    { name: "JSON", contentType: "application/json", format: "json" },
  ].map(({ name, contentType, format }) => ({
    name,
    takes: (request: CostlyRequest) => request.format === format,
    async send({ server, apiKey }: CostlyTarget, method: DescMethod, request: CostlyRequest) {
      const more = { "content-encoding": "gzip" };
      return (
        await post(server.httpPort, pathTo(method), { contentType, apiKey, agent, more }, gzipped(request))
      ).code;
    },
  })),
  ...[
    { name: "gRPC-Web", contentType: "application/grpc-web+proto", format: "binary" },
    { name: "gRPC-Web with JSON", contentType: "application/grpc-web+json", format: "json" },
  ].map(({ name, contentType, format }) => ({
    name,
    takes: (request: CostlyRequest) => request.format === format,
    async send({ server, apiKey }: CostlyTarget, method: DescMethod, request: CostlyRequest) {
      const more = { "grpc-encoding": "gzip" };
      const body = frameOf(gzipped(request), 1);
      return (await post(server.httpPort, pathTo(method), { contentType, apiKey, agent, more }, body)).code;
    },
  })),
];
