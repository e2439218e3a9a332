import http2, {
  type ClientHttp2Session,
  constants,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { duplexPair } from "node:stream";
import type { DescService } from "@bufbuild/protobuf";
import grpc from "@grpc/grpc-js";
import { HealthImplementation } from "grpc-health-check";
import { forgetWhenClosed, isClosed } from "../grpc-protocol.ts";
import { addReflection } from "./reflection.ts";

/** gRPC's own services, health and reflection, as gRPC's authors implement them on grpc-js. */
export interface StandardServices {
  /** Sets the status of the server and of each service that `grpc.health.v1` reports. */
  setServing(serving: boolean): void;
  /** Returns a function that answers the session's streams to one of `STANDARD_PATHS`. */
  ofSession(session: ServerHttp2Session): (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;
}

/** The paths that grpc-js answers; it is given no other. */
export const STANDARD_PATHS: ReadonlySet<string> = new Set([
  "/grpc.health.v1.Health/Check",
  "/grpc.health.v1.Health/List",
  "/grpc.health.v1.Health/Watch",
  "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
  "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
]);

/** A request is the name of a service, a type or a file. */
const MAX_REQUEST_BYTES = 64 * 1024;

/**
 * Runs a grpc-js server that listens on no port. A session that asks for a standard service gets a connection
 * to that server within the process, and each such stream is forwarded over it. So grpc-js never has a
 * socket, a credential or another header of a caller.
 *
 * @param services Those that health and reflection tell of.
 * @param maxStreams Streams that a session may have open at once.
 */
export function createStandardServices(
  services: readonly DescService[],
  maxStreams: number,
): StandardServices {
  const server = new grpc.Server({
    "grpc.max_receive_message_length": MAX_REQUEST_BYTES,
    "grpc.max_concurrent_streams": maxStreams,
    "grpc.enable_channelz": 0,
  });
  const names = ["", ...services.map(({ typeName }) => typeName)];
  const health = new HealthImplementation();
  const setServing = (serving: boolean) => {
    for (const name of names) health.setStatus(name, serving ? "SERVING" : "NOT_SERVING");
  };
  setServing(false);
  addHealth(server, health, new Set(names));
  addReflection(server, services);
  const injector = server.createConnectionInjector(grpc.ServerCredentials.createInsecure());

  function connect(): ClientHttp2Session {
    const [near, far] = duplexPair();
    injector.injectConnection(far);
    const connection = http2.connect("http://grpc-js", { createConnection: () => near });
    connection.on("error", ignore);
    // Neither end of the pair is told that the other one was destroyed.
    connection.once("close", () => far.destroy());
    return connection;
  }

  return {
    setServing,
    ofSession(session) {
      let connection: ClientHttp2Session | undefined;
      return (stream, headers) => {
        forgetWhenClosed(stream);
        if (connection === undefined) session.once("close", () => connection?.destroy());
        // grpc-js has ended the connection, such as after too many streams that were reset.
        if (connection === undefined || connection.closed || connection.destroyed) connection = connect();
        forward(stream, headers, connection);
      };
    },
  };
}

/**
 * Adds health, which is given only watches of services that exist: it keeps the name of each service that was
 * ever watched, and a stranger can invent any number. Other watches get SERVICE_UNKNOWN, as health answers
 * them, and stay open: no service is added later.
 */
function addHealth(server: grpc.Server, health: HealthImplementation, names: ReadonlySet<string>): void {
  const addService: grpc.Server["addService"] = (definition, { watch, ...others }) => {
    server.addService(definition, {
      ...others,
      watch(call: HealthWatch) {
        if (names.has(call.request.service)) (watch as (call: HealthWatch) => void)(call);
        else call.write({ status: "SERVICE_UNKNOWN" });
      },
    });
  };
  health.addToServer({ addService } as grpc.Server);
}

type HealthWatch = grpc.ServerWritableStream<{ readonly service: string }, { readonly status: string }>;

/** Forwards a stream's message bytes to grpc-js, and the headers, bytes and trailers of the answer back. */
function forward(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  connection: ClientHttp2Session,
): void {
  const request = connection.request({
    ":method": "POST",
    ":path": headers[":path"],
    "content-type": "application/grpc",
    te: "trailers",
    ...encodingOf(headers),
  });
  let trailers: IncomingHttpHeaders = {};
  request.on("error", ignore);
  request.on("response", (answer, flags) => {
    if (isClosed(stream)) return;
    const endStream = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    stream.respond(
      { ...answer, "grpc-accept-encoding": "identity" },
      { endStream, waitForTrailers: !endStream },
    );
    if (endStream) stream.resume();
    else request.pipe(stream);
  });
  request.on("trailers", (received) => {
    trailers = received;
  });
  stream.on("wantTrailers", () => stream.sendTrailers(trailers));
  // An answer that ended well has closed the stream, or will when the client ends its side.
  request.on("close", () => {
    if (request.rstCode !== constants.NGHTTP2_NO_ERROR) stream.close(request.rstCode);
  });
  stream.on("close", () => request.close(constants.NGHTTP2_CANCEL));
  stream.pipe(request);
}

/**
 * Names an encoding that grpc-js doesn't know if the client names one: grpc-js would decompress all messages
 * at once, of any size. With an unknown encoding, it refuses compressed messages as UNIMPLEMENTED and still
 * reads the others.
 */
function encodingOf(headers: IncomingHttpHeaders): { "grpc-encoding"?: string } {
  const encoding = headers["grpc-encoding"];
  return encoding === undefined || encoding === "identity" ? {} : { "grpc-encoding": "unsupported" };
}

function ignore(): void {}
