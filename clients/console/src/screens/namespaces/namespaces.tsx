import { Screen } from "../../shell/screen.tsx";

/** The screen "Namespaces". */
export default function Namespaces() {
  return <Screen title="Namespaces">{undefined}</Screen>;
}
