import { Screen } from "../../shell/screen.tsx";

/** The screen "Tenants". */
export default function Tenants() {
  return <Screen title="Tenants">{undefined}</Screen>;
}
