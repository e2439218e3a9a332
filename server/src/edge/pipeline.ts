import type { Message } from "@bufbuild/protobuf";
import type { Admission } from "../admission/admission.ts";
import type { Authenticator } from "../auth/authenticate.ts";
import type { Answer, Call } from "../calls/call.ts";
import type { Deadline } from "../domain/deadline.ts";
import { Refusal } from "../domain/refusal.ts";
import type { Principal } from "../domain/tenant.ts";
import { BatchRequestSchema } from "../gen/onceward/v1/idempotency_pb.ts";
import { createCallObserver, type ObservedCallOptions } from "./observed-call.ts";
import { type ReceivedMessage, readMessage } from "./read-message.ts";
import type { Refusals } from "./refusals.ts";
import type { Route } from "./route.ts";

/** What came first of a call, or of a stream of calls. */
export interface CallHead {
  /** By lower-case name. */
  header(name: string): string | undefined;
  /** Whether the caller has gone away already. */
  readonly cancelled: boolean;
}

/** A call as a transport brings it in. */
export interface IncomingCall extends CallHead {
  /** How long the caller is willing to wait; undefined if it didn't say. @throws Refusal if what it said is malformed. */
  readonly timeoutMs: number | undefined;
  /**
   * Takes the message in. Called once, when it is known who calls and that they may; until then nothing is spent on it.
   *
   * @throws Refusal, or MessageRefused if what came is no message of the transport's protocol.
   */
  receive(principal: Principal): Answer<ReceivedMessage>;
  /** Aborts when the caller goes away. */
  readonly signal: AbortSignal;
}

/** What every transport hands its calls to. */
export interface Pipeline {
  /**
   * Answers a call, as soon as its headers are there, with its reply as `encode` makes it for the transport; or rejects with
   * the Refusal that its caller is to see, or the MessageRefused of its transport, and never with anything else.
   */
  answer<Reply>(route: Route, incoming: IncomingCall, encode: (reply: Message) => Reply): Promise<Reply>;
  /** Judges by its headers whether a stream may bring calls of a route. Rejects as `answer` does. */
  authenticate(route: Route, head: CallHead): Promise<Principal>;
}

export interface PipelineOptions extends ObservedCallOptions {
  readonly authenticator: Pick<Authenticator, "authenticate" | "cachedPrincipal">;
  readonly admission: Pick<Admission, "startCall" | "countMessage" | "admitBatch">;
  /** For calls that don't say how long they wait. */
  readonly defaultTimeoutMs: number;
}

/**
 * Calls whose callers are being looked up at once. All calls of a replica that stopped, 10,000 waiting ones among them, come to
 * another one together, before it has loaded their key. What they send is not read meanwhile; it lies in the window of its
 * stream, 64 KiB at most, for the milliseconds that a look-up takes.
 */
const MAX_STRANGERS = 16_384;
/**
 * Messages that came whole and are not answered yet, in the process. Those of a call that waits, or of a few claims, are too
 * small to count.
 */
const MAX_BYTES_UNDER_WAY = 128 * 1024 * 1024;
const SMALL_BYTES = 16 * 1024;
const OVERLOADED_RETRY_AFTER_MS = 200;
/**
 * A message may take half a minute to come. Within this, the caller is who the headers said, and may do what they might;
 * after it, that is judged again.
 */
const MAX_VERDICT_AGE_MS = 500;

/**
 * What every call goes through, whatever transport it came by: request id, log, metrics, authentication, authorisation,
 * admission, deadline, handler, errors.
 */
export function createPipeline(options: PipelineOptions): Pipeline {
  const { authenticator, admission, defaultTimeoutMs } = options;
  const observe = createCallObserver(options);
  let strangers = 0;
  let bytesUnderWay = 0;

  /** Judges by the headers who calls, and whether they may; at once if memory knows. */
  function authenticate(
    route: Route,
    head: CallHead,
    deadline: Deadline,
    refusals: Refusals,
  ): Answer<Principal> {
    const credential = head.header("authorization");
    const known = authenticator.cachedPrincipal(credential);
    if (known !== undefined) return authorize(known, route, refusals);
    if (strangers >= MAX_STRANGERS) throw tooManyStrangers();
    strangers++;
    const forget = () => {
      strangers--;
    };
    const judged = authenticator.authenticate(credential, deadline).finally(forget);
    return beforeTimeout(deadline, judged).then((principal) => authorize(principal, route, refusals));
  }

  async function handle(route: Route, incoming: IncomingCall, refusals: Refusals): Promise<Message> {
    const timeoutMs = incoming.timeoutMs ?? defaultTimeoutMs;
    const deadline = new CallDeadline(incoming, performance.now() + timeoutMs);
    if (timeoutMs <= 0) throw tooLate("when the call arrived");
    const judging = authenticate(route, incoming, deadline, refusals);
    let principal = judging instanceof Promise ? await judging : judging;
    const leave = admission.startCall(principal);
    let answer: Answer<Message> | undefined;
    try {
      const judgedAtMs = performance.now();
      const receiving = incoming.receive(principal);
      const received = receiving instanceof Promise ? await receiving : receiving;
      const receivedAtMs = performance.now();
      if (receivedAtMs >= deadline.atMs) throw tooLate("when the message had come");
      if (receivedAtMs - judgedAtMs > MAX_VERDICT_AGE_MS)
        principal = await authenticate(route, incoming, deadline, refusals);
      // A caller that was looked up before is no stranger: however many wait, each may be judged again.
      const again = async (): Promise<Call> => {
        const now = await authenticator.authenticate(incoming.header("authorization"), deadline);
        authorize(now, route, refusals);
        return new AuthenticatedCall(incoming, deadline, now, refusals, again);
      };
      const call = new AuthenticatedCall(incoming, deadline, principal, refusals, again);
      answer = answerTo(route, received, call);
    } finally {
      // What is past its deadline may still be at work, and counts until it has ended.
      if (leave !== undefined) {
        if (answer instanceof Promise) answer.then(leave, leave);
        else leave();
      }
    }
    return answer instanceof Promise ? beforeTimeout(deadline, answer) : answer;
  }

  /** Answers a call whose message counts as under way until then, if it is large enough to matter. */
  function answerTo(route: Route, received: ReceivedMessage, call: Call): Answer<Message> {
    const { byteLength } = received.bytes;
    if (byteLength <= SMALL_BYTES) return answerNow(route, received, call);
    if (bytesUnderWay + byteLength > MAX_BYTES_UNDER_WAY) throw tooManyBytes();
    bytesUnderWay += byteLength;
    const end = () => {
      bytesUnderWay -= byteLength;
    };
    const answer = (async () => answerNow(route, received, call))();
    answer.then(end, end);
    return answer;
  }

  function answerNow(route: Route, received: ReceivedMessage, call: Call): Answer<Message> {
    const count = route.method.input === BatchRequestSchema ? admission.admitBatch : admission.countMessage;
    const message = readMessage(route.method, received, (bytes) => count(call.principal, bytes));
    return message instanceof Promise
      ? message.then((request) => route.handle(request, call))
      : route.handle(message, call);
  }

  return {
    async answer(route, incoming, encode) {
      const observed = observe(route, incoming.header("x-request-id"));
      try {
        const reply = encode(await handle(route, incoming, observed.refusals));
        observed.answered();
        return reply;
      } catch (error) {
        throw observed.refused(error);
      }
    },

    async authenticate(route, head) {
      const observed = observe(route, head.header("x-request-id"));
      const deadline = new CallDeadline(head, performance.now() + defaultTimeoutMs);
      try {
        return await authenticate(route, head, deadline, observed.refusals);
      } catch (error) {
        throw observed.refused(error);
      }
    },
  };
}

/**
 * Returns the caller, whom a refusal is noted for from now on.
 *
 * @throws Refusal TENANT_SUSPENDED, ROLE_DENIED.
 */
function authorize(principal: Principal, route: Route, refusals: Refusals): Principal {
  refusals.principal = principal;
  if (principal.role !== "OPERATOR" && principal.tenant.suspended) {
    throw new Refusal("TENANT_SUSPENDED", "The operator has suspended this tenant.");
  }
  if (principal.role !== route.role) {
    throw new Refusal("ROLE_DENIED", `This RPC is for the role ${route.role}.`);
  }
  return principal;
}

class CallDeadline implements Deadline {
  readonly #head: CallHead;
  readonly atMs: number;
  constructor(head: CallHead, atMs: number) {
    this.#head = head;
    this.atMs = atMs;
  }
  get cancelled(): boolean {
    return this.#head.cancelled;
  }
}

class AuthenticatedCall implements Call {
  readonly #incoming: IncomingCall;
  readonly #refusals: Refusals;
  readonly atMs: number;
  readonly principal: Principal;
  readonly again: () => Promise<Call>;
  constructor(
    incoming: IncomingCall,
    deadline: Deadline,
    principal: Principal,
    refusals: Refusals,
    again: () => Promise<Call>,
  ) {
    this.#incoming = incoming;
    this.#refusals = refusals;
    this.atMs = deadline.atMs;
    this.principal = principal;
    this.again = again;
  }
  refusalOf(error: unknown): Refusal {
    return this.#refusals.of(error);
  }
  get requestId(): string {
    return this.#refusals.requestId();
  }
  get cancelled(): boolean {
    return this.#incoming.cancelled;
  }
  get signal(): AbortSignal {
    return this.#incoming.signal;
  }
}

function tooManyStrangers(): Refusal {
  return overloaded("This replica has more callers to look up than it takes on.");
}

function tooManyBytes(): Refusal {
  return overloaded("This replica has more large messages under way than it takes on.");
}

function overloaded(message: string): Refusal {
  return new Refusal("OVERLOADED", message, { retryAfterMs: OVERLOADED_RETRY_AFTER_MS });
}

/** Before it had any effect. */
function tooLate(when: string): Refusal {
  return new Refusal("DEADLINE_EXCEEDED", `The deadline had passed ${when}.`);
}

/** Rejects when the time is up, whether or not the work goes on: a write that was sent may still have its effect. */
function beforeTimeout<Reply>({ atMs }: Deadline, work: Promise<Reply>): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const metadata = { effect: "unknown" };
      reject(
        new Refusal("DEADLINE_EXCEEDED", "The deadline passed while the call was under way.", { metadata }),
      );
    }, atMs - performance.now());
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
