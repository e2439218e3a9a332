/** The verbs of actions, as a person says what was done. */
const DONE: Readonly<Record<string, string>> = {
  Cancel: "Cancelled",
  Count: "Counted",
  Create: "Created",
  Delete: "Deleted",
  Get: "Read",
  List: "Listed",
  Renew: "Renewed",
  Resolve: "Resolved",
  Resume: "Resumed",
  Revoke: "Revoked",
  Sign: "Signed",
  Suspend: "Suspended",
  Update: "Changed",
};

const VERBS: ReadonlyMap<string, string> = new Map(
  Object.entries(DONE).map(([verb, done]) => [done.toLowerCase(), verb]),
);

/** Returns an action of the audit in words, such as "Changed namespace" for "UpdateNamespace". */
export function actionWords(action: string): string {
  const [verb = "", ...others] = action.split(/(?=[A-Z])/);
  const object = others.join(" ").toLowerCase().replace("api key", "API key");
  return [DONE[verb] ?? verb, object].join(" ").trim();
}

/** Returns the action that a person typed in words; an action's own name stays as it is. */
export function actionOf(words: string): string {
  if (!words.trim().includes(" ")) return words.trim();
  const [done = "", ...others] = words.trim().toLowerCase().split(/\s+/);
  return [VERBS.get(done) ?? done, ...others].map(capitalized).join("");
}

/** Returns why a call was denied, in words. */
export function denialWords(denial: string): string {
  return denial.toLowerCase().replaceAll("_", " ");
}

/** Returns a word with a capital first letter. */
export function capitalized(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
