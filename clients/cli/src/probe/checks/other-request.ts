import { type Check, effectsAre, simpleKey, unlessRefusedAnyway } from "../check.ts";
import type { Changes, Endpoint } from "../endpoint.ts";
import type { Answer } from "../exchange.ts";
import type { Scene } from "../scene.ts";
import {
  brief,
  failed,
  holds,
  isLater,
  isRefusal,
  isSuccess,
  sameAnswer,
  skipped,
  type Verdict,
} from "../verdict.ts";

/** Sends two different requests under one key. */
async function under(scene: Scene, changes: Changes) {
  const key = simpleKey();
  const request = scene.request({ key });
  const first = await scene.send(request);
  return { request, first, other: await scene.send(scene.request({ body: request.body, ...changes, key })) };
}

/** Whether the second answer is marked as a replay. */
function isMarked({ endpoint: { replayHeader = "" } }: Scene, first: Answer, second: Answer): boolean {
  const after = second.headers[replayHeader.toLowerCase()];
  return after !== undefined && after !== first.headers[replayHeader.toLowerCase()];
}

function otherOf({ otherPath, otherMethod, otherHeaders, otherBody }: Endpoint, needs: Other): Changes {
  return {
    otherPath: otherPath === undefined ? {} : { path: otherPath },
    otherMethod: otherMethod === undefined ? {} : { method: otherMethod },
    otherHeaders: otherHeaders === undefined ? {} : { as: otherHeaders },
    otherBody: otherBody === undefined ? {} : { body: otherBody },
  }[needs];
}

type Other = "otherPath" | "otherMethod" | "otherHeaders" | "otherBody";

/** Judges two different requests under one key, unless the other one is refused with any key. */
function underOneKey(
  id: string,
  fact: string,
  needs: Other,
  judge: (scene: Scene, sent: Awaited<ReturnType<typeof under>>) => Verdict | Promise<Verdict>,
): Check {
  return {
    ...{ id, fact, needs },
    async run(scene) {
      const changes = otherOf(scene.endpoint, needs);
      const verdict = await judge(scene, await under(scene, changes));
      return await unlessRefusedAnyway(scene, changes, verdict);
    },
  };
}

/** The other request gets an answer of its own: it runs, with an effect of its own, or it is refused. */
function ownAnswer(id: string, fact: string, needs: Other): Check {
  return underOneKey(id, fact, needs, async (scene, { first, other }) => {
    if (isMarked(scene, first, other)) return failed(`a replay: ${brief(other)}`);
    const effects = await scene.effects([first, other]);
    const expected = isSuccess(other) ? 2 : 1;
    if (effects === undefined && isSuccess(other)) return skipped("the number of effects is unknown");
    return holds(
      effects === undefined || effects === expected,
      `${brief(other)}, with ${effects} effects instead of ${expected}`,
    );
  });
}

/** The first request is replayed after the other one. */
function kept(id: string, fact: string, needs: Other): Check {
  const judge = async (scene: Scene, { request, first }: Awaited<ReturnType<typeof under>>) => {
    const replay = await scene.settle(request);
    return holds(sameAnswer(first, replay), `${brief(first)}, then ${brief(replay)}`);
  };
  return { ...underOneKey(id, fact, needs, judge), compares: true };
}

export const OTHER_REQUEST: readonly Check[] = [
  underOneKey("other.body", "A key with another body is refused with a 4xx.", "otherBody", (_, { other }) =>
    holds(isRefusal(other), brief(other)),
  ),
  underOneKey(
    "other.body-effect",
    "A key with another body has no second effect.",
    "otherBody",
    async (scene, { first, other }) => await effectsAre(scene, 1, [first, other]),
  ),
  kept("other.body-kept", "After another body, the first request is still replayed.", "otherBody"),
  underOneKey(
    "other.body-explained",
    "The refusal of another body has a body that explains it.",
    "otherBody",
    (_, { other }) => {
      if (!isRefusal(other)) return skipped(`nothing was refused: ${other.status}`);
      return holds(other.body.byteLength > 0, `${other.status} without a body`);
    },
  ),
  {
    id: "other.body-together",
    fact: "Of two different bodies under one key at once, at most one has an effect.",
    needs: "otherBody",
    async run(scene) {
      const key = simpleKey();
      const changes = otherOf(scene.endpoint, "otherBody");
      const answers = await scene.sendTogether([scene.request({ key }), scene.request({ key, ...changes })]);
      const isClear = answers.every((one) => isSuccess(one) || isRefusal(one) || isLater(one));
      if (!isClear) return failed(answers.map(brief).join(", "));
      return await unlessRefusedAnyway(scene, changes, await effectsAre(scene, 1, answers));
    },
  },
  ownAnswer("other.path", "Another path does not get the first one's answer under its key.", "otherPath"),
  ownAnswer(
    "other.method",
    "Another method does not get the first one's answer under its key.",
    "otherMethod",
  ),
  ownAnswer(
    "other.caller",
    "Another caller does not get the first one's answer under its key.",
    "otherHeaders",
  ),
  kept(
    "other.caller-kept",
    "After another caller used the key, the first one's request is still replayed.",
    "otherHeaders",
  ),
];
