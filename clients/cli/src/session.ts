import { randomUUID } from "node:crypto";
import type { CallOptions } from "@connectrpc/connect";
import type { Command } from "commander";
import { CellOutput, printCells, readCells } from "./cells.ts";
import { createOperator, createTenantAdmin, loadClients } from "./clients.ts";
import { type Credentials, type GlobalOptions, keySource, resolveCredentials } from "./credentials.ts";
import { EXIT, exitCodeOf, ServiceFailure } from "./failure.ts";
import type { Host } from "./host.ts";
import { requireNames } from "./known-names.ts";
import { Output } from "./output.ts";
import type { KeyRole } from "./profiles.ts";

/** Longer than the service takes for a preview; few people would wait longer. */
const CALL_TIMEOUT_MS = 30_000;

/** Of a cell: one that does not answer is not to hold up what the others answered. */
const CELL_TIMEOUT_MS = 10_000;

/** The role that each service needs; a command of another service names its role. */
const ROLES: ReadonlyMap<unknown, KeyRole> = new Map<unknown, KeyRole>([
  [createTenantAdmin, "admin"],
  [createOperator, "operator"],
]);

/** The client and output of one command. */
export interface Session<Client> {
  readonly host: Host;
  readonly client: Client;
  /** The service's URL. */
  readonly address: string;
  /** Identifies the command's calls in the server's log. */
  readonly requestId: string;
  /** The options of every call. */
  readonly call: CallOptions;
  readonly output: Output;
}

/** Wraps a command's action: it gets a session whose client is closed when the action ends. */
export type WithSession<Client> = <Args extends unknown[]>(
  action: (session: Session<Client>, ...args: Args) => Promise<void>,
) => (...args: [...Args, Command]) => Promise<void>;

/**
 * Returns the wrapper for a group of commands.
 *
 * @param connect creates the client of the service that they call.
 * @param role chooses among the API keys of a profile. Undefined: any key is valid for the service.
 */
export function sessions<Client extends { close(): void }>(
  host: Host,
  connect: (credentials: Credentials) => Promise<Client>,
  role = ROLES.get(connect),
): WithSession<Client> {
  return <Args extends unknown[]>(action: (session: Session<Client>, ...args: Args) => Promise<void>) =>
    async (...given: [...Args, Command]) => {
      const made = given.at(-1) as Command;
      const globals: GlobalOptions = made.optsWithGlobals();
      const requestId = `cli-${randomUUID()}`;
      const output = new Output(host, globals.json === true, made.opts());
      const sessionOf = (client: Client, { address }: Credentials, timeoutMs = CALL_TIMEOUT_MS) => {
        const call: CallOptions = { timeoutMs, headers: { "x-request-id": requestId } };
        return { host, client, address, requestId, call, output };
      };
      // Commander passes the command itself after the arguments and the options.
      const act = (session: Session<Client>) => action(session, ...(given.slice(0, -1) as unknown[] as Args));
      if (made.opts().allCells && role !== undefined) {
        const cells = (await readCells(host, globals, role)).map(async ([name, credentials]) => {
          const kept = new CellOutput(name, host, globals.json === true, made.opts());
          try {
            const client = await connect(credentials);
            const session = sessionOf(client, credentials, CELL_TIMEOUT_MS);
            await act({ ...session, output: kept }).finally(() => client.close());
          } catch (error) {
            kept.fail(await asFailure(error, requestId));
          }
          return kept;
        });
        return printCells(output, await Promise.all(cells), made.opts().limit);
      }
      const credentials = await resolveCredentials(host, globals, role);
      const client = await connect(credentials);
      const session = sessionOf(client, credentials);
      const requireNamed = () => requireNames(client, session.call, made);
      try {
        await act(session);
        if (output.isEmptyList) await requireNamed();
        output.finish();
      } catch (error) {
        const failure = await asFailure(error, requestId);
        if (failure instanceof ServiceFailure && failure.cause.reason === "ROLE_DENIED") {
          throw new ServiceFailure(failure.cause, requestId, keySource(host, globals));
        }
        // In JSON the service names a missing record as audit events and log lines do, also one in a namespace without records.
        const isNotFound = failure instanceof ServiceFailure && exitCodeOf(failure) === EXIT.notFound;
        if (isNotFound && globals.json !== true) await requireNamed();
        throw failure;
      } finally {
        client.close();
      }
    };
}

/** Returns an error of a call as a ServiceFailure, and any other error as it is. */
export async function asFailure(error: unknown, requestId: string): Promise<unknown> {
  if (!(error instanceof Error) || error.name !== "ConnectError") return error;
  const { errorFromCall } = await loadClients();
  return new ServiceFailure(errorFromCall(error), requestId);
}
