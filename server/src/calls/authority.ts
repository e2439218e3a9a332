import type { Batchable } from "../claims/batch.ts";
import { type Deadline, isOver } from "../domain/deadline.ts";
import { type Ended, Failed } from "../domain/ended.ts";
import { isRefusal } from "../domain/refusal.ts";
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
export function isUndecided(ended: Ended<unknown>, call: Call): boolean {
  return ended instanceof Failed && isRefusal(ended.error, "DEADLINE_EXCEEDED") && !isOver(call);
}

/**
 * @returns what answers requests by what holds when each is decided: where the call is outdated before that, it is judged
 *   again and the requests are put again. `answer` asks the database with `decisionDeadline`.
 */
export function judgedInTime<Request extends { readonly namespace: string }, Response>(
  answer: Batchable<Request, Response>,
): Batchable<Request, Response> {
  async function answerAgain(
    requests: readonly Ended<Request>[],
    call: Call,
  ): Promise<readonly Ended<Response>[]> {
    let now: Call;
    try {
      now = await judgeAgain(
        call,
        requests.flatMap((request) => (request instanceof Failed ? [] : [request.namespace])),
      );
    } catch (error) {
      return requests.map(() => new Failed(error));
    }
    return answerAll(requests, now);
  }

  function answerAll(requests: readonly Ended<Request>[], call: Call): Answer<readonly Ended<Response>[]> {
    const ended = answer(requests, call);
    return ended instanceof Promise ? ended.then((all) => finish(all, requests, call)) : ended;
  }

  async function finish(
    ended: readonly Ended<Response>[],
    requests: readonly Ended<Request>[],
    call: Call,
  ): Promise<readonly Ended<Response>[]> {
    if (!ended.some((each) => isUndecided(each, call))) return ended;
    const places = [...ended.keys()].filter((place) => isUndecided(ended[place] as Ended<Response>, call));
    const late = await answerAgain(
      places.map((place) => requests[place] as Ended<Request>),
      call,
    );
    const all = [...ended];
    places.forEach((place, i) => {
      all[place] = late[i] as Ended<Response>;
    });
    return all;
  }

  return (requests, call) => (isOutdated(call) ? answerAgain(requests, call) : answerAll(requests, call));
}
