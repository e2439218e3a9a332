import { Link } from "wouter";
import { formatCount } from "../../format/quantity.ts";
import { useMonth } from "./use-month.ts";

/**
 * Shows how many claims of keys that were too old were refused or ran in a namespace, in the last 30 days: every one is counted,
 * none is estimated. Shows nothing if there was none.
 */
export function LateRepeats({ namespace }: { readonly namespace: string }) {
  const { hours } = useMonth(namespace);
  const refused = hours.reduce((sum, { lateKeysRefused }) => sum + lateKeysRefused, 0n);
  const granted = hours.reduce((sum, { lateKeysGranted }) => sum + lateKeysGranted, 0n);
  if (refused + granted === 0n) return null;
  return (
    <p>
      Counted in the last 30 days: {formatCount(refused)} repeats refused because their key was too old, and{" "}
      {formatCount(granted)} that ran although it was.{" "}
      <Link href={`/namespaces/${namespace}`}>The namespace's policy</Link> decides about such keys.
    </p>
  );
}
