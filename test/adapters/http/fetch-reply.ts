import type { Reply } from "./http-world.ts";

/** Returns a test's answer as a Response. */
export function responseOf({ status, headers = {}, cookies = [], body }: Reply): Response {
  const response = new Response(body === undefined ? null : Buffer.from(body), { status, headers });
  for (const cookie of cookies) response.headers.append("set-cookie", cookie);
  return response;
}
