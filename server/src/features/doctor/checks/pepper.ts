import { configuredPeppers, isPepperKnown, pepperMark } from "../../../core/auth/pepper.ts";
import { countKeysUnderOtherPepper } from "../../../core/store/pepper-check.ts";
import type { Check } from "../check.ts";

/**
 * Compares the configured peppers with the installation's, and counts the API keys that need the second one.
 */
export const pepperCheck: Check = {
  name: "pepper",
  needsPostgres: true,
  async examine({ config, runner }) {
    const peppers = configuredPeppers(config);
    if (!(await isPepperKnown(runner, peppers))) {
      return [
        { id: "pepper_wrong", summary: "ONCEWARD_API_KEY_PEPPER is not the pepper of this installation." },
      ];
    }
    if (peppers.second === undefined) return [];
    const keys = await countKeysUnderOtherPepper(runner, pepperMark(peppers.current));
    const summary = `${keys} API keys are not yet stored under ONCEWARD_API_KEY_PEPPER, and may need ONCEWARD_API_KEY_SECOND_PEPPER.`;
    return [{ id: "second_pepper", summary }];
  },
};
