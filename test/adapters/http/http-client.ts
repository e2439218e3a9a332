import { request } from "node:http";

/** An answer as received from the socket. */
export interface HttpAnswer {
  readonly status: number;
  /** Headers by name in lower case; Set-Cookie's values are joined, too. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** The request to send; a body is JSON unless another content type is given. */
export interface HttpRequest {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
}

/** Sends a request on a new connection. */
export function send(port: number, options: HttpRequest): Promise<HttpAnswer> {
  const { method = "POST", path = "/charges/1", headers = {}, body = '{"amount":100}', signal } = options;
  const hasBody = method !== "GET";
  return new Promise((resolve, reject) => {
    const outgoing = request({
      host: "127.0.0.1",
      port,
      method,
      path,
      agent: false,
      ...(signal !== undefined && { signal }),
      headers: { ...(hasBody && { "content-type": "application/json" }), ...headers },
    });
    outgoing.on("error", reject);
    outgoing.on("response", (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.on("error", reject);
      incoming.on("end", () => {
        const entries = Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]);
        const answered = Object.fromEntries(entries);
        resolve({ status: incoming.statusCode ?? 0, headers: answered, body: Buffer.concat(chunks) });
      });
    });
    outgoing.end(hasBody ? body : undefined);
  });
}

/** Returns a problem's status, content type and type. */
export function problemOf({ status, headers, body }: HttpAnswer) {
  const { type } = JSON.parse(body.toString()) as { type: string };
  return { status, contentType: headers["content-type"], type };
}
