import type { IncomingHttpHeaders } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import {
  create,
  type DescFile,
  type DescMethodUnary,
  type DescService,
  fromBinary,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { file_google_rpc_error_details } from "../../gen/google/rpc/error_details_pb.ts";
import {
  ServerReflection,
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
} from "../../gen/grpc/reflection/v1/reflection_pb.ts";
import type { OutboundBudget } from "../bounds/memory-budgets.ts";
import { createMessageSplitter, frameMessage } from "../receive/read-body.ts";
import { pathOf, type Route } from "../route.ts";
import {
  beginAnswer,
  endWithStatus,
  failureStatus,
  type GrpcStatus,
  grpcStatus,
  isClosed,
  OK,
  StreamHead,
  unreadableStatus,
} from "./protocol.ts";
import type { GrpcConnection } from "./session.ts";

/** A request is the name of a service, a type or a file. */
const MAX_REQUEST_BYTES = 4096;
/** A client resolves all types of the service with a dozen. */
const MAX_REQUESTS = 1000;
/** Of a connection. A client needs one. */
const MAX_STREAMS = 8;
/** With so many bytes of answers unread, no further request of the stream is read. */
const MAX_UNREAD_BYTES = 64 * 1024;

type Answer = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"]>;

type Descriptors = ReturnType<typeof collectDescriptors>;

/** Collects the files of the services, and of the details of errors, by their names and by the symbols that they define. */
export function collectDescriptors(services: readonly DescService[]) {
  const files = new Map<string, DescFile>();
  const symbols = new Map<string, DescFile>();
  const add = (file: DescFile) => {
    if (files.has(file.proto.name)) return;
    for (const dependency of file.dependencies) add(dependency);
    files.set(file.proto.name, file);
    for (const desc of [...nestedTypes(file)]) {
      symbols.set(desc.typeName, file);
      if (desc.kind === "service")
        for (const { name } of desc.methods) symbols.set(`${desc.typeName}.${name}`, file);
    }
  };
  for (const { file } of services) add(file);
  add(file_google_rpc_error_details);
  const withImports = (file: DescFile | undefined) => file && [...importsFirst(file, new Set())];
  return {
    services: [...new Set(services.map(({ typeName }) => typeName))],
    /** Returns a file and its imports, imports first; undefined if there is no such file. */
    byFile: (name: string): readonly DescFile[] | undefined => withImports(files.get(name)),
    /** Returns the file that defines a service, a method, a type or an extension, with its imports. */
    bySymbol: (name: string): readonly DescFile[] | undefined => withImports(symbols.get(name)),
  };
}

function importsFirst(file: DescFile, found: Set<DescFile>): ReadonlySet<DescFile> {
  for (const dependency of file.dependencies) importsFirst(dependency, found);
  return found.add(file);
}

/** Reflection as calls of the pipeline see it. It reads no message and has no handler: `answerReflection` has. */
const ROUTE: Route = {
  method: ServerReflection.method.serverReflectionInfo as unknown as DescMethodUnary,
  path: pathOf(ServerReflection.method.serverReflectionInfo),
  role: undefined,
  handle: () => {
    throw new Error("a reflection stream is answered message by message");
  },
};

/**
 * Answers a stream of grpc.reflection.v1 or v1alpha, whose messages are the same, for a caller with a credential of any
 * role: an answer is thousands of times as long as its request. Requests are answered one after the other, and none is
 * read while answers are unread. The protocol: https://github.com/grpc/grpc/blob/master/doc/server-reflection.md.
 *
 * @param open The connection's reflection streams.
 */
export function answerReflection(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  { pipeline, outbound, peer }: Pick<GrpcConnection, "pipeline" | "outbound" | "peer">,
  open: Set<ServerHttp2Stream>,
  descriptors: Descriptors,
): void {
  if (open.size >= MAX_STREAMS) {
    const message = "The connection has too many reflection streams.";
    endWithStatus(stream, grpcStatus(Code.ResourceExhausted, message));
    return;
  }
  open.add(stream);
  stream.once("close", () => open.delete(stream));
  pipeline.authenticate(ROUTE, new StreamHead(stream, headers, peer)).then(
    () => {
      if (!isClosed(stream)) listen(stream, descriptors, outbound);
    },
    (failure: unknown) => endWithStatus(stream, failureStatus(failure)),
  );
}

function listen(stream: ServerHttp2Stream, descriptors: Descriptors, outbound: OutboundBudget): void {
  const messages = createMessageSplitter(MAX_REQUEST_BYTES);
  const sent = new Set<DescFile>();
  let requests = 0;
  let status: GrpcStatus | undefined;
  let isEnded = false;

  const end = (with_: GrpcStatus) => {
    if (status !== undefined) return;
    status = with_;
    stream.end();
  };
  const answerMessages = () => {
    while (status === undefined && stream.writableLength < MAX_UNREAD_BYTES) {
      const message = messages.next();
      if (message === undefined) {
        if (isEnded) end(OK);
        break;
      }
      if (++requests > MAX_REQUESTS || outbound.isExhausted()) {
        const message = `A stream has at most ${MAX_REQUESTS} requests, whose answers are read.`;
        end(grpcStatus(Code.ResourceExhausted, message));
        break;
      }
      outbound.write(stream, answerTo(message, descriptors, sent));
    }
    if (status === undefined && stream.writableLength >= MAX_UNREAD_BYTES) stream.pause();
    else if (stream.isPaused()) stream.resume();
  };
  const orEnd = (work: () => void) => {
    try {
      work();
    } catch (error) {
      end(unreadableStatus(error, "A request is not a valid message."));
    }
  };

  beginAnswer(stream, () => status ?? OK);
  stream.on("drain", () => orEnd(answerMessages));
  stream.on("data", (chunk: Buffer) => {
    // After the end, the rest is read and dropped, so that its sender gets to the status.
    if (status !== undefined) return;
    orEnd(() => {
      messages.push(chunk);
      answerMessages();
    });
  });
  stream.on("end", () => {
    isEnded = true;
    orEnd(answerMessages);
  });
}

function answerTo(message: Buffer, descriptors: Descriptors, sent: Set<DescFile>): Buffer {
  const request = fromBinary(ServerReflectionRequestSchema, message);
  const response = create(ServerReflectionResponseSchema, {
    validHost: request.host,
    originalRequest: request,
    messageResponse: answerOf(request, descriptors, sent),
  });
  return frameMessage(toBinary(ServerReflectionResponseSchema, response));
}

function answerOf(
  { messageRequest }: ServerReflectionRequest,
  descriptors: Descriptors,
  sent: Set<DescFile>,
): Answer {
  switch (messageRequest.case) {
    case "listServices":
      return {
        case: "listServicesResponse",
        value: { service: descriptors.services.map((name) => ({ name })) },
      };
    case "fileByFilename":
      return filesOf(descriptors.byFile(messageRequest.value), sent);
    case "fileContainingSymbol":
      return filesOf(descriptors.bySymbol(messageRequest.value), sent);
    case "allExtensionNumbersOfType":
      if (descriptors.bySymbol(messageRequest.value) === undefined) return notFound();
      return {
        case: "allExtensionNumbersResponse",
        value: { baseTypeName: messageRequest.value, extensionNumber: [] },
      };
    case "fileContainingExtension":
    case undefined:
      return notFound();
    default:
      return messageRequest satisfies never;
  }
}

/** Returns the file and those of its imports that the stream has not got yet. */
function filesOf(files: readonly DescFile[] | undefined, sent: Set<DescFile>): Answer {
  const asked = files?.at(-1);
  if (files === undefined || asked === undefined) return notFound();
  const missing = files.filter((file) => file === asked || !sent.has(file));
  for (const file of missing) sent.add(file);
  const fileDescriptorProto = missing.map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto));
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

function notFound(): Answer {
  const errorMessage = "The server has no such service, type, file or extension.";
  return { case: "errorResponse", value: { errorCode: Code.NotFound, errorMessage } };
}
