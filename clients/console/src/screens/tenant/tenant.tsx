import { Screen } from "../../shell/screen.tsx";

/** The screen "Tenant". */
export default function TenantScreen() {
  return <Screen title="Tenant">{undefined}</Screen>;
}
