import { ACTIONS } from "@onceward/words/audit-actions";

/** The verbs of actions, as a person says what was done. A verb that is missing here is said as it is. */
const DONE: Readonly<Record<string, string>> = {
  Cancel: "Cancelled",
  Count: "Counted",
  Create: "Created",
  Delete: "Deleted",
  Export: "Exported",
  Extend: "Extended",
  Get: "Read",
  Import: "Imported",
  List: "Listed",
  Renew: "Renewed",
  Resolve: "Resolved",
  Resume: "Resumed",
  Revoke: "Revoked",
  Sign: "Signed",
  Suspend: "Suspended",
  Update: "Changed",
};

/** The verbs of actions that were not done, where a person uses another one. */
const ASKED: Readonly<Record<string, string>> = { Get: "Read", Update: "Change" };

/** Returns an action of the audit in words, such as "Changed namespace" for "UpdateNamespace". */
export function actionWords(action: string, verbs: typeof DONE = DONE): string {
  const [verb = "", ...others] = action.split(/(?=[A-Z])/);
  const object = others.join(" ").toLowerCase().replace("api key", "API key");
  return [verbs[verb] ?? verb, object].join(" ").trim();
}

/** Returns an action that was denied in words, such as "Change namespace". */
export function deniedWords(action: string): string {
  return actionWords(action, ASKED);
}

/** Returns why a call was denied, in words. */
export function denialWords(denial: string): string {
  return denial.toLowerCase().replaceAll("_", " ");
}

/** Every action of the audit by its name, with its words; sorted by them. */
export const ACTION_OPTIONS: Readonly<Record<string, string>> = Object.fromEntries(
  ACTIONS.map((action) => [action, actionWords(action)] as const).toSorted(([, a], [, b]) =>
    a.localeCompare(b),
  ),
);

/** Returns why a text is not an action, with the actions that contain it. */
export function unknownAction(text: string): string {
  const typed = text.toLowerCase().replaceAll(" ", "");
  const similar = Object.entries(ACTION_OPTIONS).flatMap(([action, words]) =>
    [action, words.replaceAll(" ", "")].some((name) => name.toLowerCase().includes(typed)) ? [words] : [],
  );
  const hint = similar.length === 0 ? "Choose one of the list." : `Did you mean ${similar.join(", ")}?`;
  return `There is no action ${text}. ${hint}`;
}
