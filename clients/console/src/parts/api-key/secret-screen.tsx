import { type ComponentType, type ReactNode, useState } from "react";
import { Screen } from "../../shell/screen.tsx";
import { DialogButton } from "../confirm-dialog.tsx";
import { type CreateProps, type NewSecret, SecretPanel } from "./secret-panel.tsx";

interface SecretScreenProps {
  readonly title: string;
  readonly lead: string;
  /** The button that opens the form. */
  readonly action: string;
  readonly form: ComponentType<CreateProps>;
  readonly children: (created: CreateProps["created"]) => ReactNode;
}

/**
 * A screen on which keys are created. A secret lives in this component's state alone: no cache and no address has it, and it is gone
 * when the screen is left.
 */
export function SecretScreen({ title, lead, action, form: Form, children }: SecretScreenProps) {
  const [secret, setSecret] = useState<NewSecret>();
  const actions = (
    <DialogButton action={action} dialog={(close) => <Form created={setSecret} close={close} />} />
  );
  return (
    <Screen {...{ title, lead, actions }}>
      {secret !== undefined && <SecretPanel secret={secret} hide={() => setSecret(undefined)} />}
      {children(setSecret)}
    </Screen>
  );
}
