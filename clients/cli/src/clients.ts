import type { Onceward, OncewardOptions } from "@onceward/client";
import type { Identity, Operator, TenantAdmin } from "@onceward/client/admin";
import type { Credentials } from "./credentials.ts";

/*
 * The services' clients. HTTP/2 and the clients are most of the time in which this program starts, so they are loaded when a
 * command connects, and not for its help.
 */

/** Loads the clients. */
export const loadClients = () => import("@onceward/client/admin");

/** Creates a client of a tenant's administration. @throws OncewardError for an invalid address or key. */
export async function createTenantAdmin(credentials: Credentials): Promise<TenantAdmin> {
  return (await loadClients()).createTenantAdmin(credentials);
}

/** Creates a client of the service's operation. @throws OncewardError for an invalid address or key. */
export async function createOperator(credentials: Credentials): Promise<Operator> {
  return (await loadClients()).createOperator(credentials);
}

/** Creates a client that identifies its credential. @throws OncewardError for an invalid address or key. */
export async function createIdentity(credentials: Credentials): Promise<Identity> {
  return (await loadClients()).createIdentity(credentials);
}

/** Creates a client of callers, and of what they run. @throws OncewardError for an invalid address or key. */
export async function createOnceward(options: OncewardOptions): Promise<Onceward> {
  return (await import("@onceward/client")).createOnceward(options);
}
