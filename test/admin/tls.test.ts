import { copyFile, writeFile } from "node:fs/promises";
import { get } from "node:https";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { ConnectError } from "@connectrpc/connect";
import { createOnceward } from "@onceward/client";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type ClientTls, connectClient, TRANSPORT_NAMES } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { ORDER } from "../support/calls/verbs.ts";
import { createTestDatabase, type TestDatabase } from "../support/database/database.ts";
import { type Certificate, makeCertificate, tlsSettings } from "../support/network/certificates.ts";
import { exchange, openSocket } from "../support/network/raw-socket.ts";
import { startTestServer, type TestServer } from "../support/servers/server.ts";
import { createTenant, type TestTenant } from "../support/servers/tenants.ts";

const PORTS = ["grpcPort", "httpPort", "managementPort"] as const;

let database: TestDatabase;
let tenant: TestTenant;
/** The server's, a client's that it knows, and one that it doesn't. */
let own: Certificate;
let known: Certificate;
let stranger: Certificate;

beforeAll(async () => {
  [database, own, known, stranger] = await Promise.all([
    createTestDatabase(),
    makeCertificate(),
    makeCertificate(),
    makeCertificate(),
  ]);
  tenant = await createTenant(database);
});

afterAll(async () => {
  await Promise.all([own?.remove(), known?.remove(), stranger?.remove()]);
  await database?.drop();
});

async function start(
  settings: Readonly<Record<string, string>>,
  certificateLookMs?: number,
): Promise<TestServer> {
  const server = await startTestServer(
    database.url,
    settings,
    certificateLookMs ? { certificateLookMs } : {},
  );
  onTestFinished(() => server.stop());
  return server;
}

/** Returns a client's TLS options: the server's authority, and the client's certificate. */
function clientTls(shown?: Certificate): ClientTls {
  return { ca: own.pem.cert, ...shown?.pem };
}

/** Resolves once the handshake is done; rejects if it fails. */
function shakeHands(port: number, options: ConnectionOptions): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, ca: own.pem.cert, ...options });
    socket.once("secureConnect", () => resolve(socket));
    socket.once("error", reject);
    onTestFinished(() => {
      socket.destroy();
    });
  });
}

function statusOf(server: TestServer, path: string, tls: ClientTls): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const request = get({ host: "127.0.0.1", port: server.managementPort, path, agent: false, ...tls });
    request.once("error", reject);
    request.once("response", (response) => {
      response.resume();
      resolve(response.statusCode);
    });
  });
}

describe("with a certificate", () => {
  test.each(TRANSPORT_NAMES)("calls are answered over TLS, by %s", async (transport) => {
    const server = await start(tlsSettings(own));
    const client = connectClient(server, tenant.apiKey, transport, clientTls());
    expect((await client.lookup(ORDER)).record).toBeUndefined();
    const anonymous = connectClient(server, undefined, transport, clientTls());
    expect(await errorOf(anonymous.lookup(ORDER))).toMatchObject({ reason: "CREDENTIAL_MISSING" });
  });

  test("the management port speaks TLS as well", async () => {
    const server = await start(tlsSettings(own));
    for (const path of ["/livez", "/readyz", "/metrics"]) {
      expect(await statusOf(server, path, clientTls())).toBe(200);
    }
  });

  test("nothing is answered without TLS", async () => {
    const server = await start(tlsSettings(own));
    const request = "GET /livez HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    for (const port of PORTS) expect(await exchange(server[port], request)).not.toContain("200");
    for (const transport of TRANSPORT_NAMES) {
      await expect(connectClient(server, tenant.apiKey, transport).lookup(ORDER)).rejects.toThrow(
        ConnectError,
      );
    }
  });

  test("versions before 1.2 are refused", async () => {
    const server = await start(tlsSettings(own));
    // OpenSSL's own clients offer them on their lowest security level only.
    const old = { minVersion: "TLSv1", ciphers: "DEFAULT@SECLEVEL=0" } as const;
    for (const port of PORTS) {
      for (const maxVersion of ["TLSv1", "TLSv1.1"] as const) {
        await expect(shakeHands(server[port], { ...old, maxVersion })).rejects.toMatchObject({
          code: "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION",
        });
      }
      for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
        const socket = await shakeHands(server[port], { maxVersion });
        expect(socket.getProtocol()).toBe(maxVersion);
      }
    }
  });
});

describe("with authorities of clients", () => {
  test.each(TRANSPORT_NAMES)(
    "calls need a certificate of one of them, and a credential, by %s",
    async (transport) => {
      const server = await start(tlsSettings(own, known));
      const client = (apiKey: string | undefined, shown?: Certificate) =>
        connectClient(server, apiKey, transport, clientTls(shown));
      expect((await client(tenant.apiKey, known).lookup(ORDER)).record).toBeUndefined();
      expect(await errorOf(client(undefined, known).lookup(ORDER))).toMatchObject({
        reason: "CREDENTIAL_MISSING",
      });
      for (const shown of [undefined, stranger, own]) {
        const failure: unknown = await client(tenant.apiKey, shown)
          .lookup(ORDER)
          .catch((error: unknown) => error);
        expect(failure).toBeInstanceOf(ConnectError);
        expect(String(failure)).not.toContain("onceward");
      }
    },
  );

  test("a client with a certificate, of files or bytes, calls; without one the error says so", async () => {
    const server = await start(tlsSettings(own, known));
    const address = `https://localhost:${server.grpcPort}`;
    const options = { address, apiKey: tenant.apiKey, timeoutMs: 300 };
    const files = { ca: own.certificateFile, cert: known.certificateFile, key: known.keyFile };
    const bytes = {
      ca: Buffer.from(own.pem.cert),
      cert: Buffer.from(known.pem.cert),
      key: Buffer.from(known.pem.key),
    };
    for (const tls of [files, bytes]) {
      await using onceward = createOnceward({ ...options, tls });
      expect(await onceward.run({ namespace: "charges", key: "over-tls" }, () => "charged")).toBe("charged");
    }
    await using onceward = createOnceward({ ...options, tls: { ca: own.certificateFile } });
    const refused = onceward.run({ namespace: "charges", key: "no-certificate" }, () => "charged");
    await expect(refused).rejects.toThrow(/asks for a client certificate/);
  });

  test("metrics need a certificate, too; the probes of the container need none", async () => {
    const server = await start(tlsSettings(own, known));
    for (const shown of [undefined, stranger]) {
      expect(await statusOf(server, "/livez", clientTls(shown))).toBe(200);
      expect(await statusOf(server, "/readyz", clientTls(shown))).toBe(200);
      expect(await statusOf(server, "/metrics", clientTls(shown))).toBe(403);
    }
    expect(await statusOf(server, "/metrics", clientTls(known))).toBe(200);
  });
});

describe("files that change", () => {
  async function shownOn(server: TestServer, port: (typeof PORTS)[number]): Promise<string> {
    const socket = await shakeHands(server[port], { rejectUnauthorized: false });
    return socket.getPeerCertificate().fingerprint256;
  }

  /** A certificate whose files the test may write to. */
  async function ownFiles(): Promise<Certificate> {
    const files = await makeCertificate();
    onTestFinished(() => files.remove());
    return files;
  }

  test("are used from the next check on, on every port, while connections stay open", async () => {
    const files = await ownFiles();
    const server = await start(tlsSettings(files), 20);
    const before = await Promise.all(PORTS.map((port) => shownOn(server, port)));
    expect(new Set(before).size).toBe(1);
    const client = connectClient(server, tenant.apiKey, "native gRPC", { ca: files.pem.cert });
    await client.lookup(ORDER);
    await copyFile(own.keyFile, files.keyFile);
    await copyFile(own.certificateFile, files.certificateFile);
    for (const port of PORTS) await expect.poll(() => shownOn(server, port)).not.toBe(before[0]);
    expect(server.log).toContainEqual(expect.objectContaining({ msg: "TLS uses the renewed files" }));
    await client.lookup(ORDER);
    await connectClient(server, tenant.apiKey, "native gRPC", clientTls()).lookup(ORDER);
  });

  test("determine which clients are accepted from then on", async () => {
    const files = await ownFiles();
    const server = await start({ ...tlsSettings(own, files) }, 20);
    const client = () => connectClient(server, tenant.apiKey, "Connect with JSON", clientTls(known));
    await expect(client().lookup(ORDER)).rejects.toThrow(ConnectError);
    await copyFile(known.certificateFile, files.certificateFile);
    await expect
      .poll(() =>
        client()
          .lookup(ORDER)
          .then(
            () => "answered",
            () => "refused",
          ),
      )
      .toBe("answered");
  });

  test("that are invalid are logged, and the earlier ones stay in use until they are valid", async () => {
    const files = await ownFiles();
    const server = await start(tlsSettings(files), 20);
    const before = await shownOn(server, "grpcPort");
    for (const content of ["", own.pem.cert, files.pem.cert.slice(0, 300)]) {
      const failures = server.log.length;
      await writeFile(files.certificateFile, content);
      await expect.poll(() => server.log.length).toBeGreaterThan(failures);
      expect(await shownOn(server, "grpcPort")).toBe(before);
    }
    expect(server.log).toContainEqual(expect.objectContaining({ task: "read_tls_files" }));
    await copyFile(own.keyFile, files.keyFile);
    await copyFile(own.certificateFile, files.certificateFile);
    await expect.poll(() => shownOn(server, "grpcPort")).not.toBe(before);
  });
});

describe("a server does not start", () => {
  test.each<[string, string, () => Readonly<Record<string, string>>]>([
    [
      "whose certificate is not there",
      "ONCEWARD_TLS_CERT",
      () => ({ ONCEWARD_TLS_CERT: "/nowhere/cert.pem" }),
    ],
    ["whose key is not there", "ONCEWARD_TLS_KEY", () => ({ ONCEWARD_TLS_KEY: "/nowhere/key.pem" })],
    ["whose key is another's", "ONCEWARD_TLS_KEY", () => ({ ONCEWARD_TLS_KEY: stranger.keyFile })],
    ["whose certificate is empty", "ONCEWARD_TLS_CERT", () => ({ ONCEWARD_TLS_CERT: "/dev/null" })],
    ["whose key is empty", "ONCEWARD_TLS_KEY", () => ({ ONCEWARD_TLS_KEY: "/dev/null" })],
    [
      "whose clients' authorities are an empty file",
      "_CLIENT_CA",
      () => ({ ONCEWARD_TLS_CLIENT_CA: "/dev/null" }),
    ],
    ["whose authorities are not there", "_CLIENT_CA", () => ({ ONCEWARD_TLS_CLIENT_CA: "/nowhere/ca.pem" })],
  ])("%s", async (_what, named, changed) => {
    const started = startTestServer(database.url, { ...tlsSettings(own, known), ...changed() });
    await expect(started).rejects.toThrow(named);
  });
});

// Sooner than Node would end such a connection automatically.
test("a drain ends connections during their handshake", { timeout: 8000 }, async () => {
  const server = await start({ ...tlsSettings(own), ONCEWARD_DRAIN_TIMEOUT: "0s" });
  const silent = await Promise.all(PORTS.map((port) => openSocket(server[port])));
  await server.stop();
  await Promise.all(silent.map(({ closed }) => closed));
});
