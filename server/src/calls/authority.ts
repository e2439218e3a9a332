import type { Batchable } from "../claims/batch.ts";
import { type Deadline, isExpired } from "../domain/deadline.ts";
import { isRefusal } from "../domain/refusal.ts";
import { Rejected, type Settled } from "../domain/settled.ts";
import type { Answer, Call } from "./call.ts";
import { loadPolicies } from "./load-policies.ts";

/** Whether a call was judged so long ago that nothing may be decided by it before it is judged again. */
export function isOutdated({ principal }: Pick<Call, "principal">): boolean {
  return performance.now() >= principal.goodUntilMs;
}

/**
 * Returns the same call as if it came now, with the policies of these namespaces loaded.
 *
 * @throws Refusal as a call is refused that comes now.
 */
export async function judgeAgain(call: Call, namespaces: readonly string[]): Promise<Call> {
  const now = await call.again();
  await loadPolicies(namespaces, now);
  return now;
}

/**
 * The deadline for what a call has the database decide: its own, or the end of its principal's time if that is sooner. What
 * is still queued then has no effect and fails with DEADLINE_EXCEEDED; `isUndecided` tells it from a call that is over.
 */
export function decisionDeadline(call: Call): Deadline {
  const { goodUntilMs } = call.principal;
  if (call.atMs <= goodUntilMs) return call;
  return {
    atMs: goodUntilMs,
    get cancelled() {
      return call.cancelled;
    },
  };
}

/** Whether the call became outdated before the database was reached, and its caller still waits. It had no effect. */
export function isUndecided(settled: Settled<unknown>, call: Call): boolean {
  return settled instanceof Rejected && isRefusal(settled.error, "DEADLINE_EXCEEDED") && !isExpired(call);
}

/**
 * @returns what answers requests by what holds when each is decided: where the call is outdated before that, it is judged
 *   again and the requests are put again. `answer` asks the database with `decisionDeadline`.
 */
export function judgedInTime<Request extends { readonly namespace: string }, Response>(
  answer: Batchable<Request, Response>,
): Batchable<Request, Response> {
  async function answerAgain(
    requests: readonly Settled<Request>[],
    call: Call,
  ): Promise<readonly Settled<Response>[]> {
    let now: Call;
    try {
      now = await judgeAgain(
        call,
        requests.flatMap((request) => (request instanceof Rejected ? [] : [request.namespace])),
      );
    } catch (error) {
      return requests.map(() => new Rejected(error));
    }
    return answerAll(requests, now);
  }

  function answerAll(
    requests: readonly Settled<Request>[],
    call: Call,
  ): Answer<readonly Settled<Response>[]> {
    const settled = answer(requests, call);
    return settled instanceof Promise ? settled.then((all) => finish(all, requests, call)) : settled;
  }

  async function finish(
    settled: readonly Settled<Response>[],
    requests: readonly Settled<Request>[],
    call: Call,
  ): Promise<readonly Settled<Response>[]> {
    if (!settled.some((each) => isUndecided(each, call))) return settled;
    const places = [...settled.keys()].filter((place) =>
      isUndecided(settled[place] as Settled<Response>, call),
    );
    const late = await answerAgain(
      places.map((place) => requests[place] as Settled<Request>),
      call,
    );
    const all = [...settled];
    places.forEach((place, i) => {
      all[place] = late[i] as Settled<Response>;
    });
    return all;
  }

  return (requests, call) => (isOutdated(call) ? answerAgain(requests, call) : answerAll(requests, call));
}
