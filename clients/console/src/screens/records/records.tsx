import { Screen } from "../../shell/screen.tsx";

/** The screen "Records". */
export default function Records() {
  return <Screen title="Records">{undefined}</Screen>;
}
