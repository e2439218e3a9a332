import { Code, ConnectError } from "@connectrpc/connect";
import { OncewardError } from "../errors/errors.ts";

/** A connection that failed. */
export interface FailedConnection {
  /** Such as "http://localhost:50051". */
  readonly authority: string;
  /** Whether the server has sent anything in HTTP/2. */
  readonly spokeHttp2: boolean;
}

/**
 * Returns the error of a call whose connection failed, so that its effect is unknown. The code is UNAVAILABLE, unless
 * this process closed the connection. If the address is probably wrong, the message says so.
 */
export function connectionError(connection: FailedConnection, cause?: unknown): ConnectError | OncewardError {
  // TLS options that can't be used.
  if (cause instanceof OncewardError) return cause;
  if (cause instanceof ConnectError && cause.code === Code.Canceled) return cause;
  const meaning = meaningOf(connection, cause);
  if (cause instanceof ConnectError && cause.code === Code.Unavailable && meaning === undefined) return cause;
  const said = messageOf(cause);
  const message = meaning === undefined ? said : `${connection.authority} ${meaning} (${said})`;
  return new ConnectError(message, Code.Unavailable, undefined, undefined, cause);
}

/** Returns what the failure probably says about the address; undefined if its own message is clear. */
function meaningOf({ authority, spokeHttp2 }: FailedConnection, cause: unknown): string | undefined {
  if (spokeHttp2) return undefined;
  const isTls = authority.startsWith("https:");
  switch (nodeCodeOf(cause)) {
    case "SELF_SIGNED_CERT_IN_CHAIN":
    case "DEPTH_ZERO_SELF_SIGNED_CERT":
    case "UNABLE_TO_GET_ISSUER_CERT_LOCALLY":
    case "UNABLE_TO_VERIFY_LEAF_SIGNATURE":
      return "has a certificate of an unknown authority: pass it as tls.ca (a proxy that inspects TLS has its own)";
    case "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED":
    case "ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE":
      return "asks for a client certificate: pass tls.cert and tls.key";
    case "ECONNREFUSED":
    case "ENOTFOUND":
    case "ENETUNREACH":
    case "EHOSTUNREACH":
    case "ETIMEDOUT": {
      const variable = proxyVariable();
      return variable && `can't be reached directly, and gRPC does not use the proxy of ${variable}`;
    }
    case "ERR_SSL_WRONG_VERSION_NUMBER":
    case "ERR_SSL_PACKET_LENGTH_TOO_LONG":
      return "does not speak TLS: use http://, or another port";
    case "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL":
      return "does not speak HTTP/2 over TLS: use the port of gRPC";
    case "ECONNRESET":
    case "ERR_HTTP2_ERROR":
    case undefined:
      return isTls
        ? "does not answer in HTTP/2 over TLS: it is not ready, does not speak TLS (use http://), or is another port than gRPC's"
        : "does not answer in HTTP/2: it is not ready, is another port than gRPC's (50051 by default), or speaks TLS (use https://)";
    default:
      return undefined;
  }
}

/** Returns the name of the environment variable that names a proxy for other programs. */
function proxyVariable(): string | undefined {
  const names = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
  // biome-ignore lint/style/noProcessEnv: only to explain a failure.
  return names.find((name) => process.env[name]);
}

function messageOf(cause: unknown): string {
  if (!(cause instanceof Error)) return "the connection ended before the answer";
  // OpenSSL's own message names a line of its source.
  const code = nodeCodeOf(cause);
  if (code?.startsWith("ERR_SSL_")) return code;
  return cause instanceof ConnectError ? cause.rawMessage : cause.message;
}

/**
 * Returns the code of a Node error, such as ECONNRESET. Connect wraps the errors of connections that can't be opened.
 */
function nodeCodeOf(cause: unknown): string | undefined {
  const error = cause instanceof ConnectError ? cause.cause : cause;
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
