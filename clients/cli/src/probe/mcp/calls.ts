import { type Check, effectsAre } from "../check.ts";
import { OTHER_REQUEST } from "../checks/other-request.ts";
import { SAME_KEY } from "../checks/same-key.ts";
import { TWINS } from "../checks/twins.ts";
import type { Answer, Cut } from "../exchange.ts";
import type { Scene } from "../scene.ts";
import { brief, failed, holds, isSuccess, sameAnswer, skipped, type Verdict } from "../verdict.ts";

/** Cuts a call off, and repeats it twice. Waits for its effect, which may come late. */
async function repeatCut(scene: Scene, cut: Cut) {
  const request = scene.request();
  await scene.sendAndCut(request, cut);
  const answers = [await scene.settle(request), await scene.settle(request)] as const;
  await scene.wait(scene.endpoint.lateMs);
  return answers;
}

/** Judges the effects of calls, which may all be refused: then there may be none. */
async function atMostOneEffect(scene: Scene, answers: readonly Answer[]): Promise<Verdict> {
  const effects = await scene.effects(answers);
  if (effects === undefined) return skipped("the number of effects is unknown");
  return holds(effects === 1 || (effects === 0 && !answers.some(isSuccess)), `${effects} effects`);
}

/** Returns a check of requests under the name and in the words of one of calls. */
function alike(id: string, other: string, fact: string): Check {
  const check = [...SAME_KEY, ...TWINS, ...OTHER_REQUEST].find((one) => one.id === other);
  if (check === undefined) throw new Error(`there is no check ${other}`);
  return { ...check, id, fact };
}

/** Checks of one tool, each with calls of its own. */
export const CALLS: readonly Check[] = [
  alike("call.repeated", "same-key.effect", "A call made twice has one effect."),
  alike("call.twins", "twins.2", "Two calls with one key at once have one effect."),
  {
    id: "call.lost",
    fact: "A call whose session ended early, repeated, has one effect and one answer, or is refused.",
    async run(scene) {
      const answers = await repeatCut(scene, "after the request");
      const [first, second] = answers;
      if (!answers.some(isSuccess)) return await atMostOneEffect(scene, answers);
      if (!sameAnswer(first, second)) return failed(`${brief(first)}, then ${brief(second)}`);
      return await effectsAre(scene, 1, answers);
    },
  },
  {
    id: "call.restart",
    fact: "A call repeated after a restart has one effect.",
    needs: "restartCommand",
    async run(scene) {
      const request = scene.request();
      const first = await scene.send(request);
      await scene.restart();
      return await effectsAre(scene, 1, [first, await scene.settle(request)]);
    },
  },
  alike("call.other-arguments", "other.body-effect", "A key with other arguments has no second effect."),
  {
    id: "call.cancelled",
    fact: "A cancelled call, repeated, has one effect, or is refused.",
    async run(scene) {
      return await atMostOneEffect(scene, await repeatCut(scene, "with a cancellation"));
    },
  },
];
