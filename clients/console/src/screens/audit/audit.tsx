import { Screen } from "../../shell/screen.tsx";

/** The screen "Audit". */
export default function Audit() {
  return <Screen title="Audit">{undefined}</Screen>;
}
