import { Screen } from "../../shell/screen.tsx";

/** The screen "Namespace". */
export default function NamespaceScreen() {
  return <Screen title="Namespace">{undefined}</Screen>;
}
