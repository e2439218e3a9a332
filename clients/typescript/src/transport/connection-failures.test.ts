import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { createServer as createHttp2Server, createSecureServer } from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Server as NetServer } from "node:net";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { type Certificate, makeCertificate } from "../../../../test/support/network/certificates.ts";
import { createOnceward } from "../run/onceward.ts";
import { createOnceward as createWebOnceward } from "../web.ts";
import type { TlsOptions } from "./tls-options.ts";

let certificate: Certificate;

beforeAll(async () => {
  certificate = await makeCertificate();
});

afterAll(() => certificate?.remove());

const unread = () => {};
const answering = (server: Server) => server.on("request", (_, response) => response.end("hello"));

/** Servers that a wrong address may lead to; each is what the address's scheme says, and the server. */
const SERVERS: Record<
  string,
  { readonly scheme: string; readonly make: () => NetServer; readonly says: RegExp }
> = {
  "HTTP/1.1": {
    scheme: "http",
    make: () => answering(createServer()),
    says: /does not answer in HTTP\/2: .* another port .* or speaks TLS \(use https:\/\/\)/,
  },
  "TLS, without TLS": {
    scheme: "http",
    make: () => createSecureServer(certificate.pem),
    says: /does not answer in HTTP\/2: .* or speaks TLS \(use https:\/\/\)/,
  },
  "another protocol": {
    scheme: "http",
    make: () => createTcpServer((socket) => socket.on("error", unread).write("220 mail.example.com\r\n")),
    says: /does not answer in HTTP\/2: .* another port/,
  },
  "HTTP/2 without TLS, by TLS": {
    scheme: "https",
    make: () => createHttp2Server(),
    says: /does not speak TLS: use http:\/\//,
  },
  "HTTP/1.1 without TLS, by TLS": {
    scheme: "https",
    make: () => answering(createServer()),
    says: /does not speak TLS/,
  },
  "HTTP/1.1 with TLS, by TLS": {
    scheme: "https",
    make: () => answering(createHttpsServer(certificate.pem)),
    says: /does not speak HTTP\/2 over TLS: use the port of gRPC/,
  },
  "a certificate that is not trusted": {
    scheme: "https",
    make: () => createSecureServer(certificate.pem),
    says: /has a certificate of an unknown authority: pass it as tls\.ca .*self-signed certificate/,
  },
  "a proxy that answers itself": {
    scheme: "http",
    make: () =>
      createHttp2Server((_, response) => {
        response.writeHead(403, { "content-type": "text/html", server: "squid/6.9", via: "2 gate" });
        response.end("<html>");
      }),
    says: /such as a proxy .* answered HTTP 403 with text\/html \(server: squid\/6\.9, via: 2 gate\)/,
  },
};

async function failureAt(address: string, tls?: TlsOptions) {
  const onceward = createOnceward({ address, apiKey: "ow_x_y", timeoutMs: 100, tls });
  onTestFinished(() => onceward.close());
  return onceward
    .run({ namespace: "charges", key: "order-1" }, () => "charged")
    .then(
      () => {
        throw new Error("the run did not fail");
      },
      (error: unknown) => error,
    );
}

async function listen(server: NetServer): Promise<number> {
  for (const event of ["tlsClientError", "sessionError"]) server.on(event, unread);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

test.each(Object.entries(SERVERS))(
  "the error for an address that leads to %s names the probable mistake",
  async (_, { scheme, make, says }) => {
    const address = `${scheme}://127.0.0.1:${await listen(make())}`;
    const error = await failureAt(address);
    expect(error).toMatchObject({
      reason: "NO_ANSWER",
      code: Code.Unavailable,
      // One status, though connect's own errors have theirs in their messages, too.
      message: expect.stringMatching(/^\[unavailable\] (?!\[)/),
    });
    expect((error as Error).message).toMatch(says);
  },
);

test("the error for a closed port has the system's message, and names the status once", async () => {
  const server = createTcpServer();
  const port = await listen(server);
  server.close();
  await once(server, "close");
  onTestFinished(() => void vi.unstubAllEnvs());
  for (const name of ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
    vi.stubEnv(name, undefined);
  const address = `http://127.0.0.1:${port}`;
  const error = await failureAt(address);
  const said = `[unavailable] connect ECONNREFUSED 127.0.0.1:${port} (namespace charges, key "order-1")`;
  expect(error).toMatchObject({ message: said });
  vi.stubEnv("HTTPS_PROXY", "http://proxy.example:3128");
  expect((await failureAt(address)) as Error).toMatchObject({
    message: expect.stringContaining(
      "can't be reached directly, and gRPC does not use the proxy of HTTPS_PROXY",
    ),
  });
});

test("a service that asks for a client certificate says so", async () => {
  const ca = Buffer.from(certificate.pem.cert);
  const port = await listen(
    createSecureServer({ ...certificate.pem, requestCert: true, rejectUnauthorized: true }),
  );
  const error = await failureAt(`https://127.0.0.1:${port}`, { ca });
  expect((error as Error).message).toMatch(/asks for a client certificate: pass tls\.cert and tls\.key/);
});

test("a browser's client at gRPC's port says so", async () => {
  const port = await listen(createHttp2Server());
  await using onceward = createWebOnceward({ address: `http://127.0.0.1:${port}`, apiKey: "ow_x_y" });
  const call = onceward.calls.lookup({ namespace: "charges", key: "order-1" });
  await expect(call).rejects.toThrow(/is it gRPC's port\? This client needs the HTTP port/);
});
