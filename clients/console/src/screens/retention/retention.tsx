import { Screen } from "../../shell/screen.tsx";

/** The screen "Retention". */
export default function Retention() {
  return <Screen title="Retention">{undefined}</Screen>;
}
