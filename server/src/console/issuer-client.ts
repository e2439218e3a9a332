import * as client from "openid-client";
import type { Logger } from "pino";
import { boundedFetch } from "../access/bounded-fetch.ts";
import type { VerifiedIdentity } from "../access/jwt.ts";
import type { Config } from "../config/config.ts";
import type { ConfiguredIssuer } from "../config/configured-issuer.ts";
import { isTrustedUrl } from "../config/formats.ts";
import { credentialInvalid, Refusal } from "../domain/refusal.ts";

/**
 * Signs people in at the issuer of tokens, by the code flow of OpenID Connect with PKCE, state and nonce:
 * https://openid.net/specs/openid-connect-core-1_0.html#CodeFlowAuth
 */
export type IssuerClient = ReturnType<typeof createIssuerClient>;

/** Random texts that bind the issuer's answer to one browser and one sign-in. */
export interface SignInSecrets {
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
}

const TIMEOUT_S = 5;
/** Metadata and tokens take some kilobytes. */
const MAX_RESPONSE_BYTES = 256 * 1024;
/** Longer than every registered error; a stranger can put any text into the address of a callback. */
const MAX_CODE_LENGTH = 64;
/** Endpoints that the issuer has changed are known after this time. */
const MAX_DISCOVERY_AGE_MS = 3_600_000;

/** A request that the issuer did not answer. */
class NoAnswer extends Error {
  override readonly name = "NoAnswer";
}

/** The issuer's metadata, as the last request for them ended. */
interface Discovery {
  readonly configuration: Promise<client.Configuration>;
  /** From then on they are requested again, in `performance.now()` milliseconds. */
  staleAtMs: number;
}

/** Creates the client with this id of the configured issuer. */
export function createIssuerClient(
  { issuer, cooldownMs, verifierFor }: ConfiguredIssuer,
  clientId: string,
  config: Config,
  log: Logger,
) {
  const idTokens = verifierFor(clientId, clientId);
  const onFailed = (error: unknown) => log.warn({ err: error }, "signing in at the issuer failed");
  let discovery: Discovery | undefined;

  /** Shares one request among concurrent sign-ins. */
  async function configured(): Promise<client.Configuration> {
    const nowMs = performance.now();
    if (discovery === undefined || nowMs >= discovery.staleAtMs) {
      const configuration = discover(issuer, clientId, config.ONCEWARD_CONSOLE_OIDC_CLIENT_SECRET);
      const started: Discovery = { configuration, staleAtMs: nowMs + MAX_DISCOVERY_AGE_MS };
      started.configuration.catch((error: unknown) => {
        started.staleAtMs = performance.now() + cooldownMs;
        onFailed(error);
      });
      discovery = started;
    }
    try {
      return await discovery.configuration;
    } catch (error) {
      throw unavailable(cooldownMs, error);
    }
  }

  return {
    issuer,
    /**
     * Begins a sign-in. Returns the address to which the browser is sent, and the secrets that the browser brings back.
     *
     * @throws Refusal ISSUER_UNAVAILABLE if the issuer's endpoints are not known and the issuer does not answer.
     */
    async begin(redirectUri: string): Promise<{ readonly url: string; readonly secrets: SignInSecrets }> {
      const configuration = await configured();
      const secrets = {
        state: client.randomState(),
        nonce: client.randomNonce(),
        codeVerifier: client.randomPKCECodeVerifier(),
      };
      const url = client.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: config.ONCEWARD_CONSOLE_OIDC_SCOPES,
        state: secrets.state,
        nonce: secrets.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(secrets.codeVerifier),
        code_challenge_method: "S256",
      });
      return { url: url.href, secrets };
    },
    /**
     * Ends a sign-in whose browser came back to `currentUrl`. Returns the identity that the issuer's ID token proves.
     *
     * @throws Refusal CREDENTIAL_INVALID if the issuer, or its answer, does not sign the person in; ISSUER_UNAVAILABLE if
     *   the issuer does not answer.
     */
    async finish(currentUrl: URL, { state, nonce, codeVerifier }: SignInSecrets): Promise<VerifiedIdentity> {
      const configuration = await configured();
      let idToken: string | undefined;
      try {
        const tokens = await client.authorizationCodeGrant(configuration, currentUrl, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: codeVerifier,
          idTokenExpected: true,
        });
        idToken = tokens.id_token;
      } catch (error) {
        if (!isUnanswered(error)) {
          log.info({ why: codeOf(error) }, "the issuer, or its answer, did not sign a person in");
          throw credentialInvalid(error);
        }
        onFailed(error);
        throw unavailable(cooldownMs, error);
      }
      if (idToken === undefined) throw credentialInvalid();
      return await idTokens.verify(idToken);
    },
  };
}

/** @throws if the issuer's metadata do not arrive, are not those of the issuer, or name endpoints that are not trusted. */
async function discover(
  issuer: string,
  clientId: string,
  clientSecret: string | undefined,
): Promise<client.Configuration> {
  const configuration = await client.discovery(
    new URL(issuer),
    clientId,
    undefined,
    clientSecret === undefined ? client.None() : secretAuth(clientSecret),
    {
      timeout: TIMEOUT_S,
      [client.customFetch]: fetchOfIssuer,
      execute: issuer.startsWith("http:") ? [client.allowInsecureRequests] : [],
    },
  );
  const { authorization_endpoint = "", token_endpoint = "" } = configuration.serverMetadata();
  for (const endpoint of [authorization_endpoint, token_endpoint])
    if (!isTrustedUrl(endpoint)) throw new Error("the issuer's metadata name an endpoint without TLS");
  return configuration;
}

/** Issuers that say nothing accept the header: https://openid.net/specs/openid-connect-discovery-1_0.html */
function secretAuth(secret: string): client.ClientAuth {
  const [basic, post] = [client.ClientSecretBasic(secret), client.ClientSecretPost(secret)];
  return (server, ...rest) => {
    const { token_endpoint_auth_methods_supported: methods = ["client_secret_basic"] } = server;
    const auth = methods.includes("client_secret_basic") ? basic : post;
    auth(server, ...rest);
  };
}

/** openid-client sets a timeout, and follows no redirect. */
async function fetchOfIssuer(url: string, request: object): Promise<Response> {
  let response: Response;
  try {
    response = await boundedFetch(url, request, MAX_RESPONSE_BYTES);
  } catch (cause) {
    throw new NoAnswer("the issuer does not answer", { cause });
  }
  if (response.status >= 500) throw new NoAnswer(`the issuer answered with status ${response.status}`);
  return response;
}

function isUnanswered(error: unknown): boolean {
  return error instanceof Error && (error instanceof NoAnswer || isUnanswered(error.cause));
}

/** Returns the issuer's error, such as `invalid_client` or `access_denied`, or the code of openid-client. */
function codeOf(error: unknown): string {
  const { error: answered, code } = error as { readonly error?: unknown; readonly code?: unknown };
  const found = answered ?? code;
  return typeof found === "string" ? found.slice(0, MAX_CODE_LENGTH) : "unknown";
}

function unavailable(retryAfterMs: number, cause: unknown): Refusal {
  return new Refusal("ISSUER_UNAVAILABLE", "The issuer does not answer.", { retryAfterMs, cause });
}
