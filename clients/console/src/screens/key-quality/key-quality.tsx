import { Screen } from "../../shell/screen.tsx";

/** The screen "Key quality". */
export default function KeyQuality() {
  return <Screen title="Key quality">{undefined}</Screen>;
}
