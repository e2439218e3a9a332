import { once } from "node:events";
import { copyFile, writeFile } from "node:fs/promises";
import { createSecureServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type Certificate, makeCertificate } from "../../../../test/support/network/certificates.ts";
import { InvalidRequestError } from "../errors/catalogue.ts";
import { createOnceward } from "../run/onceward.ts";
import { SessionManager } from "./session-manager.ts";
import { tlsSettings } from "./tls.ts";

let server: Certificate;
let first: Certificate;
let second: Certificate;

beforeAll(async () => {
  [server, first, second] = await Promise.all([makeCertificate(), makeCertificate(), makeCertificate()]);
});

afterAll(() => Promise.all([server?.remove(), first?.remove(), second?.remove()]));

/** Starts a server that asks for certificates; returns its address and the certificates that it was shown. */
async function listen(): Promise<{ address: string; shown: (string | undefined)[] }> {
  const shown: (string | undefined)[] = [];
  const h2 = createSecureServer({ ...server.pem, requestCert: true, rejectUnauthorized: false });
  const sessions: ServerHttp2Session[] = [];
  h2.on("session", (session) => {
    sessions.push(session);
    shown.push((session.socket as TLSSocket).getPeerCertificate()?.fingerprint256);
  });
  h2.on("request", (_, response) => response.writeHead(204).end());
  h2.listen(0, "127.0.0.1");
  await once(h2, "listening");
  onTestFinished(() => {
    for (const session of sessions) session.destroy();
    h2.close();
  });
  return { address: `https://127.0.0.1:${(h2.address() as AddressInfo).port}`, shown };
}

test("each connection uses the files' certificate, or the last one while they don't fit", async () => {
  const files = await makeCertificate();
  onTestFinished(() => files.remove());
  await copyFile(first.certificateFile, files.certificateFile);
  await copyFile(first.keyFile, files.keyFile);
  const { address, shown } = await listen();
  const ca = Buffer.from(server.pem.cert);
  const sessions = new SessionManager(
    address,
    tlsSettings({ ca, cert: files.certificateFile, key: files.keyFile }),
  );
  const connect = async () => {
    const stream = await sessions.request("GET", "/", {}, {});
    await once(stream.resume(), "close");
    sessions.abort();
  };
  await connect();
  await copyFile(second.certificateFile, files.certificateFile);
  await connect();
  await writeFile(files.certificateFile, "");
  await connect();
  await copyFile(second.certificateFile, files.certificateFile);
  await copyFile(second.keyFile, files.keyFile);
  await connect();
  expect(new Set(shown.slice(0, 3)).size).toBe(1);
  expect(shown[3]).not.toBe(shown[0]);
  expect(shown).not.toContain(undefined);
});

test("a certificate of another name is refused, unless that name is the expected one", async () => {
  const { address } = await listen();
  const ca = server.certificateFile;
  const named = (serverName: string) => new SessionManager(address, tlsSettings({ ca, serverName }));
  await expect(named("onceward.example").request("GET", "/", {}, {})).rejects.toThrow(/altnames/);
  const sessions = named("localhost");
  const stream = await sessions.request("GET", "/", {}, {});
  await once(stream.resume(), "close");
  sessions.abort();
});

test("bytes that can't be used fail the first call permanently, by name", async () => {
  const { address } = await listen();
  const tls = { cert: Buffer.from(first.pem.cert), key: Buffer.from(second.pem.key) };
  await using onceward = createOnceward({ address, apiKey: "ow_x_y", tls });
  await expect(onceward.calls.lookup({ namespace: "charges", key: "order-1" })).rejects.toMatchObject({
    reason: "INVALID_REQUEST",
    message: expect.stringMatching(/^tls can't be used: .*key/),
  });
});

test.each([
  ["a plaintext address", { ca: Buffer.from("") }, "http://localhost", /^tls needs addresses with https:/],
  ["a certificate without its key", { cert: Buffer.from("") }, "https://localhost", /^tls must have both/],
  [
    "a file that is not there",
    { ca: "/nowhere/ca.pem" },
    "https://localhost",
    /^tls.ca can't be read: ENOENT/,
  ],
  ["a PEM text", { ca: "-----BEGIN" }, "https://localhost", /^tls.ca must be the path of a PEM file/],
  ["a number", { ca: 1 as never }, "https://localhost", /^tls.ca must be the path/],
])("TLS options with %s are refused before the first call", (_, tls, address, message) => {
  const create = () => createOnceward({ address, apiKey: "ow_x_y", tls });
  expect(create).toThrow(InvalidRequestError);
  expect(create).toThrow(message);
});
