import { once } from "node:events";
import { createServer, type Http2ServerResponse, type Http2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { Code, type ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { IdempotencyService } from "../../typescript/src/gen/onceward/v1/idempotency_pb.ts";
import type { ScriptedAnswer } from "./case.ts";
import { Conversation, type SeenCall } from "./conversation.ts";
import { startProxy } from "./proxy.ts";
import { answerBatch, answerCall } from "./replies.ts";

/** A service on loopback that answers by a script, over real gRPC. */
export interface ScriptedService extends AsyncDisposable {
  readonly address: string;
  readonly calls: readonly SeenCall[];
}

const STREAM_PATH = `/${IdempotencyService.typeName}/${IdempotencyService.method.batchStream.name}`;

/** Starts a service. A call that the script has no answer for is refused, and recorded. */
export async function startService(script: readonly ScriptedAnswer[]): Promise<ScriptedService> {
  const sessions = new Set<Http2Session>();
  const server = createServer();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
    // A connection that the script breaks is not a failure of the service.
    session.on("error", () => {});
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const proxy = await startProxy(port);
  // An answer that names this service's own port.
  const named = JSON.stringify(script).replaceAll("{port}", `${proxy.port}`);
  const conversation = new Conversation(JSON.parse(named), {
    breakConnections: () => {
      for (const session of sessions) session.destroy();
    },
    silenceConnections: () => proxy.silence(),
  });
  const answer = connectNodeAdapter({ routes: (router) => serve(router, conversation) });
  server.on("request", (request, response) => {
    if (request.url === STREAM_PATH) refuseStream(response);
    else answer(request, response);
  });
  return {
    address: `http://127.0.0.1:${proxy.port}`,
    calls: conversation.calls,
    async [Symbol.asyncDispose]() {
      conversation.end();
      await proxy[Symbol.asyncDispose]();
      for (const session of sessions) session.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** Answers as a service without BatchStream does, so that a status of the script ends one call, and no other. */
function refuseStream({ stream }: Http2ServerResponse): void {
  const unimplemented = `${Code.Unimplemented}`;
  stream.respond(
    { ":status": 200, "content-type": "application/grpc", "grpc-status": unimplemented },
    { endStream: true },
  );
}

/** Registers the RPCs. */
function serve(router: ConnectRouter, conversation: Conversation): void {
  router.service(IdempotencyService, {
    claim: (request) => answerCall(conversation, "claim", request),
    complete: (request) => answerCall(conversation, "complete", request),
    release: (request) => answerCall(conversation, "release", request),
    extendLease: (request) => answerCall(conversation, "extendLease", request),
    lookup: (request) => answerCall(conversation, "lookup", request),
    batch: async ({ items }) => ({ items: await answerBatch(conversation, items) }),
  });
}
