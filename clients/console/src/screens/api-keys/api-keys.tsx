import { Screen } from "../../shell/screen.tsx";

/** The screen "API keys". */
export default function ApiKeys() {
  return <Screen title="API keys">{undefined}</Screen>;
}
