import { Screen } from "../../shell/screen.tsx";

/** The screen "Fleet". */
export default function Fleet() {
  return <Screen title="Fleet">{undefined}</Screen>;
}
