import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";

/** An issuer of tokens, which publishes its keys. */
export interface Issuer {
  /** The configuration of a server that trusts this issuer. */
  readonly settings: Readonly<Record<string, string>>;
  /** The number of requests for its keys. */
  readonly requests: number;
  /** The response to a request for the keys; undefined for the keys. */
  answer: { readonly status: number; readonly body: string } | undefined;
  /** Publishes a new key instead of the earlier ones, and signs with it from now on. */
  rotate(alg?: string): Promise<SigningKey>;
  /**
   * Returns a token that is valid for a minute unless its claims differ. A claim that is undefined is left
   * out.
   */
  token(claims?: Claims, signing?: Partial<SigningKey>): Promise<string>;
  /** Stops the issuer, and closes its connections. */
  close(): Promise<void>;
}

/** Claims that replace those of a valid token, or are added to them. */
export type Claims = Readonly<Record<string, unknown>>;

/** A key that signs tokens. */
export interface SigningKey {
  readonly alg: string;
  readonly kid: string;
  readonly key: CryptoKey | Uint8Array;
  /** The published public key. */
  readonly publicJwk: JWK;
}

const ISSUER = "https://issuer.example";
const AUDIENCE = "onceward-tests";

/** Starts an issuer on a free port. */
export async function startIssuer(): Promise<Issuer> {
  let requests = 0;
  let current: SigningKey;
  const server = createServer((_request, response) => {
    requests++;
    const { status, body } = issuer.answer ?? {
      status: 200,
      body: JSON.stringify({ keys: [current.publicJwk] }),
    };
    response.writeHead(status, { "content-type": "application/json", connection: "close" });
    response.end(body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  let keys = 0;
  const issuer: Issuer = {
    settings: {
      ONCEWARD_JWT_ISSUER: ISSUER,
      ONCEWARD_JWT_AUDIENCE: AUDIENCE,
      ONCEWARD_JWT_JWKS_URL: `http://127.0.0.1:${port}/keys`,
    },
    get requests() {
      return requests;
    },
    answer: undefined,
    async rotate(alg = "ES256") {
      current = await makeSigningKey(alg, `key-${++keys}`);
      return current;
    },
    async token(claims = {}, signing = {}) {
      const { alg, kid, key } = { ...current, ...signing };
      const nowS = Math.floor(Date.now() / 1000);
      const all = { iss: ISSUER, aud: AUDIENCE, sub: "somebody", iat: nowS, exp: nowS + 60, ...claims };
      return await new SignJWT(all).setProtectedHeader({ alg, kid }).sign(key);
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  current = await issuer.rotate();
  return issuer;
}

/** A key that is not published. */
export async function makeSigningKey(alg: string, kid: string): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { alg, kid, key: privateKey, publicJwk: { ...(await exportJWK(publicKey)), kid } };
}
