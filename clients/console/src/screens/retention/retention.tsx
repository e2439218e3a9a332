import { Redirect, useParams } from "wouter";

/** Retention is a part of its namespace: an address from before leads there. */
export default function Retention() {
  const { namespace } = useParams();
  return <Redirect to={namespace === undefined ? "/namespaces" : `/namespaces/${namespace}`} replace />;
}
