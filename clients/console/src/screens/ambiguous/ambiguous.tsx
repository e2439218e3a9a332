import { Screen } from "../../shell/screen.tsx";

/** The screen "Ambiguous records". */
export default function Ambiguous() {
  return <Screen title="Ambiguous records">{undefined}</Screen>;
}
