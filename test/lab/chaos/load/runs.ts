import { OncewardError, TerminalError } from "../../../../clients/typescript/src/errors/errors.ts";
import type { Codec } from "../../../../clients/typescript/src/run/codec.ts";
import { createOnceward } from "../../../../clients/typescript/src/run/onceward.ts";
import {
  didNotHappen,
  happened,
  type Resolution,
  stillOpen,
  type UnresolvedClaim,
} from "../../../../clients/typescript/src/run/resolution.ts";
import { credentialOf } from "../../../../clients/typescript/src/transport/credentials.ts";
import { createUnaryTransport } from "../../../../clients/typescript/src/transport/grpc-transport.ts";
import { Replicas } from "../../../../clients/typescript/src/transport/replicas.ts";
import { SessionManager } from "../../../../clients/typescript/src/transport/session-manager.ts";
import { fingerprintOf } from "../../../support/calls/verbs.ts";
import type { Random } from "../../../support/random.ts";
import type { Journal } from "../../history/journal.ts";
import { marked } from "../../history/messages.ts";
import { recordingTransport } from "../../history/recorder.ts";
import type { ClientPlan } from "./messages.ts";
import type { Outside } from "./sessions.ts";
import type { Target } from "./spaces.ts";

/** Uses the service as a program does: through the `run` of its client. */
export interface Runs {
  /** Runs the target's effect through `run`, unless it was completed before; half of the runs look first where its outcome is unknown. */
  runOnce(target: Target): Promise<void>;
  close(): Promise<void>;
}

const WAIT_MS = 1500;
/** Short: each attempt of unknown outcome makes the key's history harder to judge. */
const TIMEOUT_MS = 500;
/** Most holders charge within this time after their lease, if at all. */
const OPEN_MS = 1000;

/** A codec for texts that name their tenant. */
const textCodec: Codec<string> = {
  encode: (text) => ({ payload: Buffer.from(text), contentType: "text/plain" }),
  decode: ({ payload }) => Buffer.from(payload).toString(),
};

/** @see Runs */
export function createRuns(plan: ClientPlan, journal: Journal, outside: Outside, random: Random): Runs {
  const clients = new Map(
    Object.entries(plan.apiKeys).map(([tenant, apiKey]) => {
      const transport = connectAll(plan, tenant, apiKey, journal);
      const owner = marked(tenant, `${plan.client} by its client`);
      return [tenant, createOnceward({ transport, owner, waitMs: WAIT_MS, timeoutMs: TIMEOUT_MS })];
    }),
  );

  /** Has the effect. @throws before any effect, and if another holder has taken over. */
  async function haveEffect(target: Target, token: number): Promise<string> {
    const draw = random.next();
    if (draw < 0.1) throw new Error("not now");
    if (draw < 0.2) throw new TerminalError(marked(target.tenant, "declined"));
    const opened = target.fenced ? await outside.open(target, token) : "open";
    const became = opened === "open" ? await outside.charge(target, token) : opened;
    if (became === "superseded") throw new Error("another holder has taken over");
    return textOf(target, token);
  }

  const textOf = (target: Target, token: number) =>
    marked(target.tenant, `${target.namespace}/${target.key} by ${plan.client} #${token}`);

  /** Asks the provider what became of an earlier attempt, which may still charge if it has not. */
  async function resolve(target: Target, claim: UnresolvedClaim): Promise<Resolution> {
    if (random.next() < 0.1) throw new Error("the provider does not answer");
    if ((await outside.look(target)) === "charged")
      return happened(textOf(target, Number(claim.fencingToken)));
    return claim.msSinceEffectMayHaveBegun < OPEN_MS ? stillOpen({ retryAfterMs: 300 }) : didNotHappen();
  }

  return {
    async runOnce(target) {
      const { tenant, namespace, key } = target;
      const client = clients.get(tenant);
      if (client === undefined) throw new Error(`there is no client for ${tenant}`);
      const resolving = { resolve: (claim: UnresolvedClaim) => resolve(target, claim) };
      const options = {
        ...{ namespace, key, fingerprint: fingerprintOf(key), codec: textCodec },
        ...(random.next() < 0.5 && resolving),
      };
      await client
        .run(options, ({ fencingToken }) => haveEffect(target, Number(fencingToken)))
        .catch(unlessExpected);
    },
    async close() {
      await Promise.all([...clients.values()].map((client) => client.close()));
    },
  };
}

/** Connects to all replicas as the client does for several addresses, and records each attempt. */
function connectAll(plan: ClientPlan, tenant: string, apiKey: string, journal: Journal): Replicas {
  const { client, replicas } = plan;
  return new Replicas(
    replicas.map(({ name, grpcPort }) => {
      const sessions = new SessionManager(`http://127.0.0.1:${grpcPort}`);
      const transport = createUnaryTransport(sessions, credentialOf({ apiKey }));
      return {
        transport: recordingTransport(transport, { journal, client, replica: name, tenant }),
        isReachable: () => sessions.isReachable(),
        close: () => sessions.abort(),
      };
    }),
  );
}

/** Ignores the errors that a run may end with; the provider counts effects. @throws anything else. */
function unlessExpected(error: unknown): void {
  const isOwn =
    error instanceof Error && ["not now", "another holder has taken over"].includes(error.message);
  if (!isOwn && !(error instanceof OncewardError) && !(error instanceof TerminalError)) throw error;
}
