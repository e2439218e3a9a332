import type { Message } from "@bufbuild/protobuf";
import type { Admission } from "../access/admission.ts";
import type { Authenticator } from "../access/authenticate.ts";
import type { Answer, Call } from "../access/call.ts";
import type { Deadline } from "../domain/operation.ts";
import { Refusal } from "../domain/refusal.ts";
import { type Principal, requireServed } from "../domain/tenant.ts";
import { BatchRequestSchema } from "../gen/onceward/v1/idempotency_pb.ts";
import { countedAddress } from "./bounds/connections.ts";
import { BUDGET_SHARE } from "./bounds/memory-limit.ts";
import { createTurnShares, type TurnShares } from "./bounds/turn-shares.ts";
import { UnansweredLog } from "./bounds/unanswered.ts";
import { type CallHead, type CallObserverOptions, ObservedCall } from "./observed-call.ts";
import { type ReceivedMessage, readMessage } from "./receive/read-message.ts";
import type { Route } from "./route.ts";

/** A call as a transport hands it to the pipeline. */
export interface IncomingCall extends CallHead {
  /** The caller's timeout; undefined if it sent none. @throws Refusal if the header is malformed. */
  readonly timeoutMs: number | undefined;
  /**
   * Reads the message. The pipeline calls it once, after authentication and authorisation; nothing is spent
   * on the message before.
   *
   * @throws Refusal; ProtocolError if the bytes are not a message of the transport's protocol.
   */
  receive(principal: Principal): Answer<ReceivedMessage>;
}

/** The steps that all calls go through, over every transport. */
export type Pipeline = ReturnType<typeof createPipeline>;

export interface PipelineOptions extends CallObserverOptions {
  readonly authenticator: Pick<Authenticator, "authenticate" | "authenticateSession" | "cachedPrincipal">;
  readonly admission: Pick<Admission, "startCall" | "countMessage" | "admitBatch">;
  /** The timeout of calls that send none. */
  readonly defaultTimeoutMs: number;
}

/**
 * Calls whose credentials are looked up in the database at once. When a replica stops, all its calls, 10,000
 * waiting ones among them, come to another replica together, before that has loaded their key. Until then, up
 * to 64 KiB of each message lie unread in its stream's window, for the milliseconds that a lookup takes.
 */
const MAX_CREDENTIAL_LOOKUPS = 16_384;
/** Complete messages of a process that are not answered yet. */
const MAX_IN_FLIGHT_BYTES = 128 * 1024 * 1024;
/** Smaller messages, such as those of a wait or of a few claims, are not counted. */
const MIN_COUNTED_BYTES = 16 * 1024;
const OVERLOADED_RETRY_AFTER_MS = 200;
/**
 * Refused calls of one tenant that are answered in a turn of the event loop: one or two milliseconds. A refusal waits for
 * nothing else, so that a tenant that repeats refused calls at once would take most of the processor.
 */
const MAX_REFUSED_PER_TURN = 8;
/** The key of operators among those of tenants: operators share one tenant's part. */
const OPERATORS = -1;
/**
 * A message may take half a minute to arrive. If it took longer than this, its caller is authenticated once
 * more.
 */
const MAX_AUTHENTICATION_AGE_MS = 500;

/**
 * Creates the pipeline of all calls: request id, log, metrics, authentication, authorisation, admission,
 * deadline, handler, errors.
 */
export function createPipeline(options: PipelineOptions) {
  const { authenticator, admission, defaultTimeoutMs } = options;
  const observer = { ...options, unanswered: new UnansweredLog(options.log) };
  let credentialLookups = 0;
  let callsInFlight = 0;
  const inFlight = createInFlightBytes();
  const refusals = createTurnShares<number | string>({
    maxPerTurn: MAX_REFUSED_PER_TURN,
    maxMs: Number.POSITIVE_INFINITY,
  });

  /** Returns the caller, at once if memory knows the credential. */
  function authenticate(observed: ObservedCall): Answer<Principal> {
    const verified = authenticator.cachedPrincipal(observed.head.header("authorization"));
    if (verified !== undefined) return authorize(verified, observed);
    if (credentialLookups >= MAX_CREDENTIAL_LOOKUPS)
      throw overloaded("This replica has more callers to look up than it accepts.");
    credentialLookups++;
    const lookup = lookUp(authenticator, observed).finally(() => {
      credentialLookups--;
    });
    return beforeTimeout(observed, lookup).then((principal) => authorize(principal, observed));
  }

  /** Returns the error that the caller may see, when it is its party's turn; at once if the caller leaves. */
  async function refusalInTurn(error: unknown, observed: ObservedCall) {
    await turnOf(refusals, observed);
    return observed.failed(error);
  }

  async function handle(observed: ObservedCall, incoming: IncomingCall): Promise<Message> {
    const timeoutMs = incoming.timeoutMs ?? defaultTimeoutMs;
    observed.atMs = performance.now() + timeoutMs;
    if (timeoutMs <= 0) throw tooLate("when the call arrived");
    const authenticating = authenticate(observed);
    let principal = authenticating instanceof Promise ? await authenticating : authenticating;
    const leave = admission.startCall(principal);
    let answer: Answer<Message> | undefined;
    try {
      const authenticatedAtMs = performance.now();
      const receiving = incoming.receive(principal);
      const received = receiving instanceof Promise ? await receiving : receiving;
      const receivedAtMs = performance.now();
      observed.receivedAtMs = receivedAtMs;
      if (receivedAtMs >= observed.atMs) throw tooLate("when the message had arrived");
      if (receivedAtMs - authenticatedAtMs > MAX_AUTHENTICATION_AGE_MS)
        principal = await authenticate(observed);
      const call = new AuthenticatedCall(authenticator, observed, principal);
      answer = inFlight(received.bytes.byteLength, () => answerCall(observed.route, received, call));
    } finally {
      // The work of a call may last longer than its deadline; the call counts until the work has ended.
      if (leave !== undefined) {
        if (answer instanceof Promise) answer.then(leave, leave);
        else leave();
      }
    }
    return answer instanceof Promise ? beforeTimeout(observed, answer) : answer;
  }

  function answerCall(route: Route, received: ReceivedMessage, call: Call): Answer<Message> {
    const count = route.method.input === BatchRequestSchema ? admission.admitBatch : admission.countMessage;
    const message = readMessage(route.method, received, (bytes) => count(call.principal, bytes));
    return message instanceof Promise
      ? message.then((request) => route.handle(request, call))
      : route.handle(message, call);
  }

  return {
    /**
     * Answers a call whose headers have arrived, with its reply as `encode` makes it for the transport. It
     * rejects only with FailedCall: the Refusal that the caller may see, or the transport's ProtocolError.
     */
    async answer<Reply>(
      route: Route,
      incoming: IncomingCall,
      encode: (reply: Message) => Reply,
    ): Promise<Reply> {
      const observed = new ObservedCall(observer, route, incoming);
      callsInFlight++;
      try {
        const reply = encode(await handle(observed, incoming));
        observed.answered();
        return reply;
      } catch (error) {
        throw await refusalInTurn(error, observed);
      } finally {
        callsInFlight--;
      }
    },

    /**
     * Authenticates and authorises the headers of a stream that brings calls of a route. Rejects as `answer`
     * does.
     */
    async authenticate(route: Route, head: CallHead): Promise<Principal> {
      const observed = new ObservedCall(observer, route, head);
      observed.atMs = performance.now() + defaultTimeoutMs;
      try {
        return await authenticate(observed);
      } catch (error) {
        throw await refusalInTurn(error, observed);
      }
    },

    /** Returns the number of calls that have arrived and are not answered yet. */
    callsInFlight: () => callsInFlight,
  };
}

/** Returns a function that does the work of a message, and counts the bytes of a large one until the work has ended. */
function createInFlightBytes() {
  let inFlightBytes = 0;
  return <Reply>(byteLength: number, work: () => Answer<Reply>): Answer<Reply> => {
    if (byteLength <= MIN_COUNTED_BYTES) return work();
    if (inFlightBytes + byteLength > MAX_IN_FLIGHT_BYTES * BUDGET_SHARE)
      throw overloaded("This replica has more large messages in flight than it accepts.");
    inFlightBytes += byteLength;
    return (async () => work())().finally(() => {
      inFlightBytes -= byteLength;
    });
  };
}

/** Resolves when it is the party's turn; at once when the caller leaves, so that nothing waits for no one. */
function turnOf(shares: TurnShares<number | string>, observed: ObservedCall): Promise<void> {
  return new Promise((resolve) => {
    let signal: AbortSignal | undefined;
    const end = () => {
      signal?.removeEventListener("abort", leave);
      resolve();
    };
    const drop = shares.run(partyOf(observed), end);
    const leave = () => {
      drop?.();
      end();
    };
    if (drop === undefined) return;
    signal = observed.head.signal;
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave);
  });
}

/** Returns the party that refusals are counted for: the tenant, or while the caller is not known, its address. */
function partyOf({ principal, head }: ObservedCall): number | string {
  if (principal === undefined) return countedAddress(head.peer ?? "");
  return principal.role === "OPERATOR" ? OPERATORS : principal.tenant.id;
}

/** Returns the principal of the `authorization` header, or without one, of the session's cookie. */
function lookUp(authenticator: PipelineOptions["authenticator"], observed: ObservedCall): Promise<Principal> {
  const credential = observed.head.header("authorization");
  const cookie = credential === undefined ? observed.head.sessionCookie : undefined;
  return cookie === undefined
    ? authenticator.authenticate(credential, observed)
    : authenticator.authenticateSession(cookie, observed);
}

/**
 * Returns the caller, which is the actor of the call's denials from now on.
 *
 * @throws Refusal TENANT_MOVING, TENANT_SUSPENDED, ROLE_DENIED.
 */
function authorize(principal: Principal, observed: ObservedCall): Principal {
  const { role } = observed.route;
  observed.principal = principal;
  if (principal.role !== "OPERATOR") requireServed(principal.tenant);
  if (role !== undefined && principal.role !== role)
    throw new Refusal(
      "ROLE_DENIED",
      `This RPC is for the role ${role}; the credential has the role ${principal.role}.`,
    );
  return principal;
}

class AuthenticatedCall implements Call {
  readonly #authenticator: PipelineOptions["authenticator"];
  readonly #observed: ObservedCall;
  readonly principal: Principal;
  constructor(authenticator: PipelineOptions["authenticator"], observed: ObservedCall, principal: Principal) {
    this.#authenticator = authenticator;
    this.#observed = observed;
    this.principal = principal;
  }
  /**
   * Does not count as a credential lookup: all waiting calls may be authenticated once more, however many
   * they are.
   */
  async again(): Promise<Call> {
    const found = await lookUp(this.#authenticator, this.#observed);
    const principal = authorize(found, this.#observed);
    return new AuthenticatedCall(this.#authenticator, this.#observed, principal);
  }
  refusalOf(error: unknown): Refusal {
    return this.#observed.toRefusal(error);
  }
  get receivedAtMs(): number {
    return this.#observed.receivedAtMs;
  }
  get requestId(): string {
    return this.#observed.requestId;
  }
  get atMs(): number {
    return this.#observed.atMs;
  }
  get cancelled(): boolean {
    return this.#observed.head.cancelled;
  }
  get signal(): AbortSignal {
    return this.#observed.head.signal;
  }
}

function overloaded(message: string): Refusal {
  return new Refusal("OVERLOADED", message, { retryAfterMs: OVERLOADED_RETRY_AFTER_MS });
}

/** Returns the refusal of a call that had no effect. */
function tooLate(when: string): Refusal {
  return new Refusal("DEADLINE_EXCEEDED", `The deadline had passed ${when}.`);
}

/** Rejects at the deadline. The work continues: a write that was sent may still have its effect. */
function beforeTimeout<Reply>({ atMs }: Deadline, work: Promise<Reply>): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const metadata = { effect: "unknown" };
      reject(
        new Refusal("DEADLINE_EXCEEDED", "The deadline passed while the call was in progress.", { metadata }),
      );
    }, atMs - performance.now());
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
