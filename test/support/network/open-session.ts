import type { ClientHttp2Session } from "node:http2";
import { onTestFinished } from "vitest";
import { connectHttp2 } from "./raw-grpc.ts";

/** Opens an HTTP/2 connection in the clear, which ends with the test. */
export async function openSession(port: number): Promise<ClientHttp2Session> {
  const session = await connectHttp2(port);
  onTestFinished(() => session.destroy());
  return session;
}
