import type { ClientHttp2Session, IncomingHttpHeaders } from "node:http2";
import {
  type DescMethod,
  fromBinary,
  fromJsonString,
  type Message,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import type { Addresses } from "../../../server/src/replica/server.ts";
import type { TransportName } from "../calls/clients.ts";
import { connectHttp2, frameOf } from "../network/raw-grpc.ts";

/** Everything that can differ between two answers, except for their times. */
export interface WholeAnswer {
  /** Status, headers, body and trailers, one character per byte; base64 is decoded. */
  readonly sent: string;
  /** The response's message; undefined for an error. */
  readonly message: Message | undefined;
}

/** Makes calls, and keeps their answers as sent. */
export interface WholeAnswers {
  ask(method: DescMethod, request: Message, apiKey: string): Promise<WholeAnswer>;
  close(): void;
}

/** Else each refusal would name its request by an id of the server's. */
const SAME_ID = { "x-request-id": "asked" };
/** Headers that a transport sends with every answer. */
const OF_NO_INTEREST = new Set(["date", "content-length"]);

/** Connects to a server over a transport. */
export async function wholeAnswers(server: Addresses, transport: TransportName): Promise<WholeAnswers> {
  if (transport === "native gRPC") {
    const session = await connectHttp2(server.grpcPort);
    return {
      ask: (method, request, apiKey) => askGrpc(session, method, request, apiKey),
      close: () => session.close(),
    };
  }
  const ask = transport === "gRPC-Web" ? askGrpcWeb : askJson;
  return {
    ask: (method, request, apiKey) => ask(server.httpPort, method, request, apiKey),
    close: () => {},
  };
}

async function askGrpc(
  session: ClientHttp2Session,
  method: DescMethod,
  request: Message,
  apiKey: string,
): Promise<WholeAnswer> {
  const body = frameOf(toBinary(method.input, request));
  const stream = session.request({
    ":method": "POST",
    ":path": pathOf(method),
    "content-type": "application/grpc",
    te: "trailers",
    authorization: `Bearer ${apiKey}`,
    ...SAME_ID,
  });
  const heads: string[] = [];
  const chunks: Buffer[] = [];
  stream.on("response", (headers) => heads.push(headText(headers)));
  stream.on("trailers", (trailers) => heads.push(headText(trailers)));
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  stream.end(body);
  await new Promise((resolve, reject) => stream.on("end", resolve).on("error", reject));
  const received = Buffer.concat(chunks);
  return {
    sent: `${heads.join("\n")}\n${received.toString("latin1")}`,
    message:
      received.byteLength === 0 ? undefined : fromBinary(method.output, received.subarray(FRAME_HEADER)),
  };
}

async function askGrpcWeb(
  port: number,
  method: DescMethod,
  request: Message,
  apiKey: string,
): Promise<WholeAnswer> {
  const { head, body } = await post(port, method, apiKey, {
    contentType: "application/grpc-web+proto",
    body: frameOf(toBinary(method.input, request)),
  });
  // The trailers are the frame with this flag: the first frame if there is no message.
  const hasMessage = body.readUInt8(0) < 0x80;
  const end = hasMessage ? FRAME_HEADER + body.readUInt32BE(1) : 0;
  const trailers = body
    .subarray(end + FRAME_HEADER)
    .toString("latin1")
    .split("\r\n")
    .map((line) => plain(line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()));
  return {
    sent: [head, body.subarray(0, end).toString("latin1"), ...trailers].join("\n"),
    message: hasMessage ? fromBinary(method.output, body.subarray(FRAME_HEADER, end)) : undefined,
  };
}

async function askJson(
  port: number,
  method: DescMethod,
  request: Message,
  apiKey: string,
): Promise<WholeAnswer> {
  const { ok, head, body } = await post(port, method, apiKey, {
    contentType: "application/json",
    body: Buffer.from(toJsonString(method.input, request)),
  });
  const text = body.toString("latin1");
  return {
    // Error details are base64, and so are bytes.
    sent: `${head}\n${ok ? text : text.replaceAll(/(?<="value":")[^"]+/g, decodeBase64)}`,
    message: ok ? fromJsonString(method.output, body.toString()) : undefined,
  };
}

const FRAME_HEADER = 5;

async function post(
  port: number,
  method: DescMethod,
  apiKey: string,
  { contentType, body }: { readonly contentType: string; readonly body: Buffer },
) {
  const response = await fetch(`http://127.0.0.1:${port}${pathOf(method)}`, {
    method: "POST",
    headers: {
      "content-type": contentType,
      "accept-encoding": "identity",
      authorization: `Bearer ${apiKey}`,
      ...SAME_ID,
    },
    body: new Uint8Array(body),
  });
  return {
    ok: response.ok,
    head: `${response.status}\n${headText(Object.fromEntries(response.headers))}`,
    body: Buffer.from(await response.arrayBuffer()),
  };
}

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

function headText(headers: IncomingHttpHeaders): string {
  return Object.keys(headers)
    .filter((name) => !OF_NO_INTEREST.has(name))
    .sort()
    .map((name) => plain(name, String(headers[name])))
    .join("\n");
}

function plain(name: string, value: string): string {
  return `${name}: ${name.endsWith("-bin") ? decodeBase64(value) : value}`;
}

function decodeBase64(text: string): string {
  return Buffer.from(text, "base64").toString("latin1");
}
