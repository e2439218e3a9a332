import { once } from "node:events";
import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { isDeepStrictEqual } from "node:util";
import express from "express";
import { idempotency } from "../../../typescript/src/express.ts";
import { type HttpProfile, idempotent } from "../../../typescript/src/http.ts";
import { OncewardError } from "../../../typescript/src/index.ts";
import type { Runner } from "../../../typescript/src/run/client.ts";
import type { RunOptions } from "../../../typescript/src/run/run-options.ts";

/** A request, as which operation a guard would claim it. */
export interface HttpCase {
  readonly do: "httpOperation";
  readonly method: string;
  /** The route's pattern, such as "/charges/{id}". Default: the path. */
  readonly route?: string;
  readonly path: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly bodyHex?: string;
  readonly options: {
    readonly caller: string;
    readonly operation?: string;
    readonly header?: string;
    readonly profile?: HttpProfile;
  };
}

/** Returns the operation as Express and fetch handlers claim it, which is the same; otherwise both. */
export async function performHttp(action: HttpCase): Promise<object> {
  const [fetch, express] = [await byFetch(action), await byExpress(action)];
  return isDeepStrictEqual(fetch, express) ? fetch : { fetch, express };
}

async function byFetch(action: HttpCase): Promise<object> {
  const claims = new Claims();
  const { method, path, query = "", headers = {} } = action;
  const handle = idempotent(claims, optionsOf(action), () => new Response(null, { status: 204 }));
  const body = bodyOf(action);
  const request = new Request(`http://localhost${path}${query}`, {
    method,
    headers,
    ...(body.byteLength > 0 && { body: Uint8Array.from(body) }),
  });
  const answer = await handle(request);
  return claims.outcomeOf(answer.status, await answer.text());
}

async function byExpress(action: HttpCase): Promise<object> {
  const claims = new Claims();
  const { method, path, route = path, query = "", headers = {} } = action;
  const app = express().set("env", "test");
  // Forms count by their bytes in other languages.
  app.use(express.json(), express.text(), express.raw({ type: () => true }));
  const pattern = route.replaceAll(/\{(\w+)\}/g, ":$1");
  app.all(pattern, idempotency(claims, optionsOf(action)), (_req, res) => void res.sendStatus(204));
  const server = createServer(app).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const sent = httpRequest({ port, host: "127.0.0.1", method, path: path + query, headers, agent: false });
  sent.end(bodyOf(action));
  const [answer] = await once(sent, "response");
  const text = Buffer.concat(await answer.toArray()).toString();
  server.close();
  return claims.outcomeOf(answer.statusCode, text);
}

function optionsOf({ options: { caller, ...options } }: HttpCase) {
  return { namespace: "charges", caller: () => caller, ...options };
}

function bodyOf({ body = "", bodyHex }: HttpCase): Buffer {
  return bodyHex === undefined ? Buffer.from(body) : Buffer.from(bodyHex, "hex");
}

/** A client that claims nothing, and remembers what it would claim. */
class Claims implements Runner {
  #claimed: RunOptions | undefined;

  async run(options: RunOptions): Promise<never> {
    return await this.runDetailed(options);
  }

  async runDetailed(options: RunOptions): Promise<never> {
    this.#claimed = options;
    throw new OncewardError("ABORTED", "Nothing is claimed.");
  }

  /** Returns the operation; without one, the problem that refused the request, or that it is not guarded. */
  outcomeOf(status: number, text: string): object {
    if (this.#claimed !== undefined) {
      const { key, fingerprint } = this.#claimed;
      return { key, fingerprint: Buffer.from(fingerprint as Uint8Array).toString("hex") };
    }
    if (status === 204) return { unguarded: true };
    const { type = "" } = JSON.parse(text) as { readonly type?: string };
    return { problem: type.replace("urn:onceward:problem:", ""), status };
  }
}
