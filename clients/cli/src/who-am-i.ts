import { randomUUID } from "node:crypto";
import type { WhoAmIResponse } from "@onceward/client/proto";
import { createIdentity } from "./clients.ts";
import type { Credentials } from "./credentials.ts";
import { asFailure } from "./session.ts";

/** A person waits, and a wrong address does not answer. */
const TIMEOUT_MS = 5_000;

/** Asks the service what it knows of the credentials, outside of a session. @throws ServiceFailure */
export async function whoAmI(credentials: Credentials): Promise<WhoAmIResponse> {
  const requestId = `cli-${randomUUID()}`;
  const client = await createIdentity(credentials);
  try {
    return await client.whoAmI({}, { timeoutMs: TIMEOUT_MS, headers: { "x-request-id": requestId } });
  } catch (error) {
    throw await asFailure(error, requestId);
  } finally {
    client.close();
  }
}
