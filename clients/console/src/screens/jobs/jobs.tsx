import { Screen } from "../../shell/screen.tsx";

/** The screen "Jobs". */
export default function Jobs() {
  return <Screen title="Jobs">{undefined}</Screen>;
}
