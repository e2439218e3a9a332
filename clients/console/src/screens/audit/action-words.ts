/** The verbs of actions, as a person says what was done. */
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

/** Returns an action of the audit in words, such as "Changed namespace" for "UpdateNamespace". */
export function actionWords(action: string): string {
  const [verb = "", ...others] = action.split(/(?=[A-Z])/);
  const object = others.join(" ").toLowerCase().replace("api key", "API key");
  return [DONE[verb] ?? verb, object].join(" ").trim();
}

/** Returns why a call was denied, in words. */
export function denialWords(denial: string): string {
  return denial.toLowerCase().replaceAll("_", " ");
}

/** Returns a word with a capital first letter. */
export function capitalized(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
