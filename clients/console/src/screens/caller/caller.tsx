import { useSession } from "../../session/session.ts";
import { useSignOut } from "../../shell/header.tsx";
import { Screen } from "../../shell/screen.tsx";
import common from "../../styles/common.module.css";
import { Samples } from "../home/samples.tsx";

/** The page of a session with a caller's key: what the key is for, and how to get one that opens the console. */
export default function CallersPage() {
  const { tenant, namespaces } = useSession();
  const signOut = useSignOut();
  return (
    <Screen
      title="This key is for services"
      answer="A caller's key claims and completes operations. The console needs an administrator's key."
      actions={
        <button type="button" data-look="primary" onClick={signOut}>
          Sign in with another key
        </button>
      }
    >
      <p className={common.quiet}>
        After <code>npm start</code>, an administrator's key is in <code>.onceward/admin.key</code>.
        Elsewhere, an administrator of the tenant creates one: in the console under API keys, or with{" "}
        <code>onceward keys create --role admin</code>.
      </p>
      <h2>What this key does</h2>
      <p>
        It claims keys of the tenant {tenant}, in {namespaces.join(", ") || "all namespaces"}. Set{" "}
        <code>ONCEWARD_API_KEY</code> to it, and call:
      </p>
      <Samples />
    </Screen>
  );
}
