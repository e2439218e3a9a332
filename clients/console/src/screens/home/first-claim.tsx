import { ApiKey_Role } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useState } from "react";
import { CreateKeyDialog } from "../../parts/api-key/create-key-dialog.tsx";
import { type NewSecret, SecretPanel } from "../../parts/api-key/secret-panel.tsx";
import { DialogButton } from "../../parts/confirm-dialog.tsx";
import common from "../../styles/common.module.css";
import { useCreateKey } from "../api-keys/use-key-calls.ts";
import { Samples } from "./samples.tsx";

/** What a tenant does that has made no claim: a key, and a program. Home shows the claim as soon as it came. */
export default function FirstClaim() {
  const create = useCreateKey();
  // In this component's state alone: no cache and no address has a secret.
  const [secret, setSecret] = useState<NewSecret>();
  return (
    <>
      <h2>1. Create a caller's key</h2>
      {secret === undefined ? (
        <DialogButton
          action="Create a caller's key"
          look="primary"
          dialog={(close) => (
            <CreateKeyDialog
              title="Create a caller's key"
              roles={[ApiKey_Role.CALLER]}
              create={create}
              created={setSecret}
              close={close}
            />
          )}
        />
      ) : (
        <SecretPanel secret={secret} hide={() => setSecret(undefined)} />
      )}
      <h2>2. Claim with it</h2>
      <p>
        Set <code>ONCEWARD_API_KEY</code> to the key. A service claims before an effect, and completes after
        it.
      </p>
      <Samples />
      <p role="status" className={common.quiet}>
        Waiting for the first claim. It is shown here within 15 s.
      </p>
    </>
  );
}
