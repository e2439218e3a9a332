import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import grpc from "@grpc/grpc-js";
import {
  ClaimRequestSchema,
  ClaimResponseSchema,
} from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import type { Addresses } from "../../../server/src/replica/server.ts";
import type { Claimant } from "../calls/claim-load.ts";
import { pathOf } from "./raw-grpc.ts";

/** A client on grpc-js, as most services in Node use it. It manages its connections itself. */
export interface GrpcJsClient extends Claimant {
  close(): void;
}

export function grpcJsClient({ grpcPort }: Addresses, apiKey: string): GrpcJsClient {
  const client = new grpc.Client(`127.0.0.1:${grpcPort}`, grpc.credentials.createInsecure());
  const metadata = new grpc.Metadata();
  metadata.set("authorization", `Bearer ${apiKey}`);
  return {
    claim: (request) =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest(
          pathOf("Claim"),
          (message) => Buffer.from(toBinary(ClaimRequestSchema, message)),
          (bytes: Buffer) => fromBinary(ClaimResponseSchema, bytes),
          create(ClaimRequestSchema, request),
          metadata,
          (error, reply) => {
            if (reply !== undefined) resolve(reply);
            else reject(new ConnectError(error?.details ?? "", codeOf(error?.code)));
          },
        );
      }),
    close: () => client.close(),
  };
}

/** Converts a code: both libraries use gRPC's numbers. */
function codeOf(status: grpc.status | undefined): Code {
  return Number(status ?? Code.Unknown);
}
