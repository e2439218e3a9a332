import { useParams } from "wouter";
import { NamespaceRetention } from "./namespace-retention.tsx";
import { RetentionOverview } from "./overview.tsx";

/** The screen "Retention": all namespaces, or one. */
export default function Retention() {
  const { namespace } = useParams();
  if (namespace === undefined) return <RetentionOverview />;
  return <NamespaceRetention key={namespace} namespace={namespace} />;
}
