import { Screen } from "../../shell/screen.tsx";

/** The screen "Record". */
export default function RecordScreen() {
  return <Screen title="Record">{undefined}</Screen>;
}
